import PipelineCaching
import PipelineFetching
import PipelineSupport
import Glibc
import Synchronization
import Variants

/// A mask or overlay by name: its bytes, and the digest that goes into variant keys.
struct NamedFile: Sendable {
    var bytes: [UInt8]
    var digest: String
}

/// Looks names up in one folder; a file is read again only when it has changed.
final class MaskFolder: Sendable {
    /// What the folder holds; the raw value is the word for it in messages.
    enum Kind: String, Sendable { case mask, overlay }
    /// Extensions tried; a name found under two of them is a configuration error, since either could be meant.
    static let extensions = ["png", "webp", "jpg", "jpeg", "gif", "tif", "tiff", "avif"]
    /// A file larger than this is refused; masks and overlays are small.
    static let byteLimit = 20_000_000

    private let folder: String?
    private let kind: Kind
    private let known = Mutex<[String: (identity: String, file: NamedFile)]>([:])

    init(_ folder: String?, of kind: Kind = .mask) {
        self.folder = folder
        self.kind = kind
    }

    /// Names of what the folder holds, sorted; at most 200. Blocks on the file system.
    var names: [String] {
        guard let folder, let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: Set<String> = []
        while let item = readdir(stream), names.count < 200 {
            let file = withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: UInt8.self, capacity: 256) { String(decodingCString: $0, as: UTF8.self) }
            }
            let parts = file.split(separator: ".", omittingEmptySubsequences: false)
            let isName = parts[0].utf8.allSatisfy { SourceURL.isUnreserved($0) && $0 != UInt8(ascii: "~") }
            if parts.count == 2, isName, 1...64 ~= parts[0].utf8.count, Self.extensions.contains(String(parts[1])) {
                names.insert(String(parts[0]))
            }
        }
        return names.sorted()
    }

    /// Blocks on the file system.
    func file(named name: String) throws(PipelineError) -> NamedFile {
        guard let folder else {
            throw PipelineError(
                .maskUnavailable,
                "\(kind) `\(name)`: no \(kind) folder is configured; set `\(kind)s` to a folder holding \(name).png")
        }
        let candidates: [String] = Self.extensions.map { "\(folder)/\(name).\($0)" }
        let found = candidates.filter { access($0, F_OK) == 0 }
        guard let path = found.first else {
            throw PipelineError(
                .maskUnavailable,
                "\(kind) `\(name)`: no \(name).png (or \(Self.extensions.dropFirst().joined(separator: ", "))) in \(folder)"
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
