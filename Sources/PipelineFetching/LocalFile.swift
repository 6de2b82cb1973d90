import PipelineSupport
import Glibc

/// A regular file opened for one read; its identity changes whenever the file may have changed.
package final class LocalFile: Sendable {
    package struct Failure: Error, Sendable {
        package var isMissing: Bool
        package var isTooLarge = false
        package var message: String
    }

    private let descriptor: Int32
    private let path: String
    package let byteCount: Int
    /// Device, inode, size, modification and status-change times.
    package let identity: String

    private init(descriptor: Int32, path: String, status: stat) {
        self.descriptor = descriptor
        self.path = path
        byteCount = Int(status.st_size)
        identity =
            "\(status.st_dev):\(status.st_ino):\(status.st_size)"
            + ":\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec):\(status.st_ctim.tv_sec).\(status.st_ctim.tv_nsec)"
    }

    deinit { close(descriptor) }

    /// Opens a regular file, without blocking on devices or pipes; `byteLimit` is checked before anything is read.
    package static func open(_ path: String, byteLimit: Int) throws(Failure) -> LocalFile {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            throw Failure(
                isMissing: code == ENOENT || code == ENOTDIR,
                message: "\(path): \(String(cString: strerror(code)))")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Failure(isMissing: false, message: "\(path) is not a regular file")
        }
        guard status.st_size <= byteLimit else {
            close(descriptor)
            throw Failure(
                isMissing: false, isTooLarge: true,
                message: "\(path) has \(status.st_size) bytes; the limit (limits.bytes) is \(byteLimit)")
        }
        return LocalFile(descriptor: descriptor, path: path, status: status)
    }

    /// Reads the whole content; a file truncated while it is read is an error, so that no partial content is digested.
    package func bytes() throws(Failure) -> [UInt8] {
        guard let bytes = FileIO.bytes(byteCount, of: descriptor) else {
            let code = errno
            throw Failure(
                isMissing: false,
                message: code == 0
                    ? "\(path) was truncated while it was read; try again"
                    : "\(path): \(String(cString: strerror(code)))")
        }
        return bytes
    }
}
