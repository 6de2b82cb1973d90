import PipelineSupport
import Glibc

/// A failed system call, with an error message.
struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    var path: String
    var errno: Int32
    var action: String
    /// `cannot open /x: No such file or directory`.
    var description: String { "cannot \(action) \(path): \(message)" }
    var message: String { errno == 0 ? "not usable" : String(cString: strerror(errno)) }

    init(_ action: String, _ path: String, errno: Int32 = Glibc.errno) {
        self.action = action
        self.path = path
        self.errno = errno
    }
}

/// Reads small text files: configuration and files in /proc.
enum FileText {
    /// Reads a whole file as UTF-8, up to `limit` bytes.
    static func read(_ path: String, limit: Int) throws(SystemError) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw SystemError("open", path) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while bytes.count <= limit {
            let count = uninterrupted { Glibc.read(file, &buffer, buffer.count) }
            if count == 0 { break }
            guard count > 0 else { throw SystemError("read", path) }
            bytes.append(contentsOf: buffer[..<count])
        }
        guard bytes.count <= limit else { throw SystemError("read", path, errno: EFBIG) }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// The environment variables this program was started with.
enum ProcessEnvironment {
    static func all() -> [String: String] {
        // Read the kernel's copy: `environ` is a mutable global, which Swift 6 does not let us read.
        guard let text = try? FileText.read("/proc/self/environ", limit: 8 << 20) else { return [:] }
        var result: [String: String] = [:]
        for entry in text.split(separator: "\0") {
            guard let equals = entry.firstIndex(of: "="), equals != entry.startIndex else { continue }
            result[String(entry[..<equals])] = String(entry[entry.index(after: equals)...])
        }
        return result
    }
}
