import Pipeline
package import PipelineFetching

/// Names for URLs, so that a source may be written `name:path`.
public struct BaseURLs: Sendable, Hashable {
    /// Why a setting cannot be followed.
    public struct Refusal: Error {
        public let text: String
    }

    private enum Base: Sendable, Hashable {
        /// A URL that ends in `/`, and a policy that admits what lies below it, however an origin reads `..`, `//` and `%2F`.
        case url(String, HostPolicy)
        case folder(OpenFolder)
    }

    private let bases: [String: Base]
    /// The name that sources without one have.
    private let usual: String?

    /// Names that mean something else before a colon.
    private static let taken: Set<String> = [
        "http", "https", "s3", "b64", "file", "data", "id", "bytes", "sample", "mask", "overlay",
    ]

    /// No names.
    public static let none = BaseURLs()

    private init() { (bases, usual) = ([:], nil) }

    /// Opens the folders, which stay open as long as the value or a copy of it. A folder that is replaced later, by a link
    /// that is switched or by a rename, is opened by the next request.
    ///
    /// - Parameters:
    ///   - texts: http, https or s3 URLs by name, without credentials and query; a path is taken for a folder. Also
    ///     `file:///PATH` of a folder on this machine.
    ///   - followsLinks: whether symbolic links in folders may lead to other places below the same folder.
    ///   - usual: one of the names, for sources without one: with `photos` the source `a/b.jpg` is `photos:a/b.jpg`. nil, the
    ///     default, refuses such sources.
    public init(_ texts: [String: String], followsLinks: Bool = false, usual: String? = nil) throws(Refusal) {
        var bases: [String: Base] = [:]
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
            guard Self.isName(name) else {
                throw Refusal(
                    text:
                        "`\(name)` cannot name a base URL: a name has at most 32 letters, digits, `_` and `-`, begins "
                        + "with a letter, and is none of \(Self.taken.sorted().joined(separator: ", "))")
            }
            if case .file(let path) = ImageSource(text), text.hasPrefix("file://") {
                do throws(LocalFile.Failure) {
                    bases[name] = .folder(try OpenFolder(name, at: path, followsLinks: followsLinks))
                } catch {
                    throw Refusal(text: "`\(name)`: \(error.message)")
                }
                continue
            }
            var folder = text
            while folder.hasSuffix("/") { folder.removeLast() }
            // Only the reason is needed: the text is in the message already.
            guard !folder.contains("*"), let pattern = try? HostPattern(folder),
                let below = try? SourceURL(named: folder + "/x")
            else { throw Refusal(text: "`\(name)` is no http, https, s3 or file URL without credentials and query") }
            bases[name] = .url(String(below.normalised.dropLast()), HostPolicy(allow: [pattern]))
        }
        if let usual, bases[usual] == nil { throw Refusal(text: "no base URL is called `\(usual)`") }
        self.bases = bases
        self.usual = usual
    }

    /// What a source stands for.
    package struct Resolved: Sendable {
        /// A URL, or a file's name.
        package var text: String
        /// The folder that has the file.
        package var folder: OpenFolder?
    }

    /// The names of folders.
    var folders: [OpenFolder] {
        bases.values.compactMap { if case .folder(let folder) = $0 { folder } else { nil } }.sorted {
            $0.name < $1.name
        }
    }

    /// The URL that a source stands for, or the file, which need not be there; the source itself if it does not begin with
    /// one of the names.
    ///
    /// - Throws: `Problem`: 400 for a path that leads out of the base URL.
    package func resolved(_ source: String) throws(Problem) -> Resolved {
        // Neither a scheme nor a name can hold a slash (RFC 3986 §4.2).
        if let usual, !source.utf8.prefix(while: { $0 != UInt8(ascii: "/") }).contains(UInt8(ascii: ":")) {
            return try resolved("\(usual):\(source.hasPrefix("/") ? source.dropFirst() : source[...])")
        }
        guard !bases.isEmpty, let colon = source.utf8.firstIndex(of: UInt8(ascii: ":")),
            let base = bases[String(source[..<colon])]
        else { return Resolved(text: source) }
        let path = source[source.utf8.index(after: colon)...]
        let (text, policy): (String, HostPolicy)
        switch base {
        case .folder(let folder): return Resolved(text: folder.name + ":" + OpenFolder.canonical(path), folder: folder)
        case .url(let url, let below): (text, policy) = (url + path, below)
        }
        let url: SourceURL
        do throws(SourceError) { url = try SourceURL(named: text) } catch {
            throw Problem(.invalidSource, "what follows `\(source[...colon])` is no path of a URL")
        }
        guard policy.refusal(of: url) == nil else {
            throw Problem(.invalidSource, "the path leads out of the base URL `\(source[..<colon])`")
        }
        return Resolved(text: text)
    }

    /// Whether a source has the form `name:path`, whatever names there are. A path that begins with `//` does not count: it
    /// would be a URL's, which may hold credentials.
    package static func mayName(_ source: String) -> Bool {
        guard let colon = source.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return isName(String(source[..<colon])) && !source[colon...].dropFirst().hasPrefix("//")
    }

    private static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, (0x61...0x7A).contains(first | 0x20), name.utf8.count <= 32,
            !taken.contains(name.lowercased())
        else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"): true
            default: false
            }
        }
    }
}
