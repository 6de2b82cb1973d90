import PipelineSupport
import Glibc

/// An error about a file or folder that cannot be read or written. A single-source command exits with code 8 if writing
/// its output fails.
struct FileError: Error, Sendable, Hashable, CustomStringConvertible {
    var action: String
    var path: String
    var message: String
    /// The message, for example `cannot open /x: No such file or directory`.
    var description: String { "cannot \(action) \(path): \(message)" }

    init(_ action: String, _ path: String, _ message: String) {
        self.action = action
        self.path = path
        self.message = message
    }

    init(_ action: String, _ path: String, errno: Int32 = Glibc.errno) {
        let folder = path.splitAtLastSlash?.folder ?? ""
        let isFolderMissing = action == "write" && errno == ENOENT && !folder.isEmpty && access(folder, F_OK) != 0
        self.init(
            action, path,
            isFolderMissing
                ? "the folder \(folder) does not exist; create it with `mkdir -p \(folder)`"
                : String(cString: strerror(errno)))
    }
}

enum FileText {
    /// Reads a complete file as UTF-8, up to `limit` bytes.
    static func read(_ path: String, limit: Int) throws(FileError) -> String {
        String(decoding: try bytes(path, limit: limit), as: UTF8.self)
    }

    /// Reads a complete file, up to `limit` bytes.
    static func bytes(_ path: String, limit: Int) throws(FileError) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileError("open", path) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while bytes.count <= limit {
            let count = uninterrupted { Glibc.read(file, &buffer, buffer.count) }
            if count == 0 { break }
            guard count > 0 else { throw FileError("read", path) }
            bytes.append(contentsOf: buffer[..<count])
        }
        guard bytes.count <= limit else { throw FileError("read", path, errno: EFBIG) }
        return bytes
    }
}
