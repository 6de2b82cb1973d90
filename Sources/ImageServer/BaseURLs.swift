import Pipeline
package import PipelineFetching
package import PipelineSupport

/// Maps names to base URLs, so that a source may be written as `name:path`.
package struct BaseURLs: Sendable, Hashable {
    private enum Base: Sendable, Hashable {
        /// A URL that ends in `/`, and a policy that allows only URLs below it, regardless of how the origin interprets
        /// `..`, `//` and `%2F`.
        case url(String, HostPolicy)
        case folder(OpenFolder)
    }

    private let bases: [String: Base]
    /// The base name of sources that do not begin with a name.
    private let defaultName: String?

    /// Reserved names, which have a different meaning before a colon.
    private static let reservedNames: Set<String> = [
        "http", "https", "s3", "b64", "file", "data", "id", "bytes", "sample", "mask", "overlay",
    ]

    /// An empty map.
    static let none = BaseURLs()

    private init() { (bases, defaultName) = ([:], nil) }

    /// Opens the folders. They stay open as long as the value or a copy of it exists. If a folder is replaced later, by
    /// a link or a rename, the next request opens the new folder.
    ///
    /// - Parameters:
    ///   - texts: Base URLs by name: http, https or s3 URLs without credentials or a query, or folders on this machine
    ///     as a path or `file:///PATH`.
    ///   - followsLinks: Whether symbolic links in folders may lead to other places within the same folder. Defaults to
    ///     false.
    ///   - defaultName: The base name of sources without a name. With `photos`, the source `a/b.jpg` means `photos:a/b.jpg`.
    ///     If nil, the default, such sources are refused.
    package init(
        _ texts: [String: String], followsLinks: Bool = false, defaultName: String? = nil
    ) throws(InvalidSetting) {
        var bases: [String: Base] = [:]
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
            guard Self.isName(name) else {
                throw InvalidSetting(
                    "`\(name)` is not a valid name for a base URL: a name consists of at most 32 letters, digits, `_` or `-`, begins "
                        + "with a letter, and is not one of \(Self.reservedNames.sorted().joined(separator: ", "))")
            }
            if case .file(let path) = ImageSource(text), text.hasPrefix("file://") {
                do throws(LocalFile.Failure) {
                    bases[name] = .folder(try OpenFolder(name, at: path, followsLinks: followsLinks))
                } catch {
                    throw InvalidSetting("`\(name)`: \(error.message)")
                }
                continue
            }
            var folder = text
            while folder.hasSuffix("/") { folder.removeLast() }
            // The message contains the text already, so only the reason is needed.
            guard !folder.contains("*"), let pattern = try? HostPattern(folder),
                let below = try? SourceURL(named: folder + "/x")
            else {
                throw InvalidSetting("`\(name)` must be an http, https, s3 or file URL without credentials or a query")
            }
            bases[name] = .url(String(below.normalized.dropLast()), HostPolicy(allow: [pattern]))
        }
        if let defaultName, bases[defaultName] == nil {
            throw InvalidSetting("no base URL has the name `\(defaultName)`")
        }
        self.bases = bases
        self.defaultName = defaultName
    }

    /// A resolved source.
    package struct Resolved: Sendable {
        /// A URL or a file name.
        package var text: String
        /// The folder that contains the file, or nil if the source is a URL.
        package var folder: OpenFolder?
    }

    /// The folders, sorted by name.
    var folders: [OpenFolder] {
        bases.values.compactMap { if case .folder(let folder) = $0 { folder } else { nil } }.sorted {
            $0.name < $1.name
        }
    }

    /// Returns the URL or the file of a source. The file need not exist. Returns the source unchanged if it does not
    /// begin with one of the names.
    ///
    /// - Throws: a `Problem` with status 400 if the path leads out of the base URL.
    package func resolved(_ source: String) throws(Problem) -> Resolved {
        // Neither a scheme nor a name can contain a slash (RFC 3986 §4.2).
        if let defaultName, !source.utf8.prefix(while: { $0 != UInt8(ascii: "/") }).contains(UInt8(ascii: ":")) {
            return try resolved("\(defaultName):\(source.hasPrefix("/") ? source.dropFirst() : source[...])")
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
            throw Problem(.invalidSource, "the part after `\(source[...colon])` is not a valid URL path")
        }
        guard policy.refusal(of: url) == nil else {
            throw Problem(.invalidSource, "the path leads outside the base URL `\(source[..<colon])`")
        }
        return Resolved(text: text)
    }

    /// Whether a source has the form `name:path`, even if the name is unknown. A path that begins with `//` is
    /// excluded, because it belongs to a URL, which may contain credentials.
    package static func mayName(_ source: String) -> Bool {
        guard let colon = source.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return isName(String(source[..<colon])) && !source[colon...].dropFirst().hasPrefix("//")
    }

    private static func isName(_ name: String) -> Bool {
        guard let first = name.utf8.first, (0x61...0x7A).contains(first | 0x20), name.utf8.count <= 32,
            !reservedNames.contains(name.lowercased())
        else { return false }
        return name.utf8.allSatisfy(\.isOfName)
    }
}
