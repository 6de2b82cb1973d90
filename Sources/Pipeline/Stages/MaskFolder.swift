import PipelineCaching
import PipelineFetching
import PipelineSupport
import Glibc
import Synchronization
import Variants

/// The bytes of a mask or overlay, and the digest that becomes part of variant keys.
struct NamedFile: Sendable {
    var bytes: [UInt8]
    var digest: String
}

/// Looks up masks or overlays by name in a folder. A file is read again only after it has changed.
final class MaskFolder: Sendable {
    /// The kind of pictures in the folder. The raw value is used in messages.
    enum Kind: String, Sendable { case mask, overlay }
    /// The extensions to try. A name that exists with two of them is a configuration error, because it is ambiguous.
    static let extensions = ["png", "webp", "jpg", "jpeg", "gif", "tif", "tiff", "avif"]
    /// The maximum size of a file in bytes. Masks and overlays are small.
    static let byteLimit = 20_000_000

    private let folder: String?
    private let kind: Kind
    private let known = Mutex<[String: (identity: String, file: NamedFile)]>([:])

    init(_ folder: String?, of kind: Kind = .mask) {
        self.folder = folder?.isEmpty == true ? nil : folder
        self.kind = kind
    }

    /// The sorted names of the pictures in the folder, at most 200. Blocks on the file system.
    var names: [String] {
        var names: Set<String> = []
        forEachName(in: folder ?? "") { file in
            let parts = String(decoding: file, as: UTF8.self).split(separator: ".", omittingEmptySubsequences: false)
            let isName = parts[0].utf8.allSatisfy { SourceURL.isUnreserved($0) && $0 != UInt8(ascii: "~") }
            if parts.count == 2, isName, 1...64 ~= parts[0].utf8.count, Self.extensions.contains(String(parts[1])) {
                names.insert(String(parts[0]))
            }
            return names.count < 200
        }
        return names.sorted()
    }

    /// Returns the picture with a name. Blocks on the file system.
    func file(named name: String) throws(PipelineError) -> NamedFile {
        guard let folder else {
            throw PipelineError(
                .maskUnavailable,
                "\(kind) `\(name)`: no \(kind) folder is configured; set `\(kind)s` to a folder that contains \(name).png"
            )
        }
        let candidates: [String] = Self.extensions.map { "\(folder)/\(name).\($0)" }
        let found = candidates.filter { access($0, F_OK) == 0 }
        guard let path = found.first else {
            throw PipelineError(
                .maskUnavailable,
                "\(kind) `\(name)`: no \(name).png (or \(Self.extensions.dropFirst().joined(separator: ", "))) exists in \(folder)"
            )
        }
        guard found.count == 1 else {
            throw PipelineError(
                .maskUnavailable,
                "\(kind) `\(name)` is ambiguous: \(found.joined(separator: " and ")); keep one of them")
        }
        let read: LocalFile
        do throws(LocalFile.Failure) {
            read = try LocalFile.open(path, byteLimit: Self.byteLimit)
            if let cached = known.withLock({ $0[name] }), cached.identity == read.identity { return cached.file }
            let bytes = try read.bytes()
            let file = NamedFile(bytes: bytes, digest: sha256Hex(bytes))
            known.withLock { $0[name] = (read.identity, file) }
            return file
        } catch {
            throw PipelineError(.maskUnavailable, "\(kind) `\(name)`: \(error.message)", cause: error)
        }
    }
}
