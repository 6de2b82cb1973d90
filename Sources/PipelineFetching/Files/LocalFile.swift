package import PipelineSupport
import Glibc

/// A regular file that is open for reading, with an identity that changes whenever the content may have changed.
package final class LocalFile: Sendable {
    package struct Failure: Error, Sendable {
        package var isMissing: Bool
        package var isTooLarge = false
        package var message: String
        /// The failure in detail, which is shown only in the log. Clients only learn that the file does not exist.
        package var logged: String?
    }

    /// The content of the open file.
    package let body: SpooledBody
    private let path: String
    /// The device, inode, size, modification time and status-change time.
    package let identity: String
    /// The time of the last modification in Unix seconds.
    let modified: Int

    private init(descriptor: Int32, path: String, status: stat) {
        body = SpooledBody(descriptor: descriptor, count: Int(status.st_size))
        self.path = path
        modified = status.st_mtim.tv_sec
        identity =
            "\(status.st_dev):\(status.st_ino):\(status.st_size)"
            + ":\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec):\(status.st_ctim.tv_sec).\(status.st_ctim.tv_nsec)"
    }

    /// Opens a regular file without blocking on devices or pipes. Checks `byteLimit` before reading anything.
    package static func open(_ path: String, byteLimit: Int) throws(Failure) -> LocalFile {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            throw Failure(
                isMissing: code == ENOENT || code == ENOTDIR,
                message: "\(SourceURL.redacting(path)): \(String(cString: strerror(code)))")
        }
        return try LocalFile(descriptor, SourceURL.redacting(path), byteLimit: byteLimit)
    }

    /// - Parameters:
    ///   - descriptor: a descriptor open for reading. It is closed if this initializer throws.
    ///   - path: the file's name in messages.
    convenience init(_ descriptor: Int32, _ path: String, byteLimit: Int) throws(Failure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Failure(isMissing: false, message: "\(path) is not a regular file")
        }
        guard status.st_size <= byteLimit else {
            close(descriptor)
            throw Failure(
                isMissing: false, isTooLarge: true,
                message: "\(path) has \(status.st_size) bytes; the maximum is \(byteLimit) (limits.bytes)")
        }
        self.init(descriptor: descriptor, path: path, status: status)
    }

    /// Reads the complete content. Throws if the file is truncated while it is read, so that partial content is never
    /// digested.
    package func bytes() throws(Failure) -> [UInt8] {
        guard let bytes = body.bytes() else {
            throw Failure(
                isMissing: false,
                message:
                    "\(path) cannot be read completely, because it is being changed or the disk is failing; try again")
        }
        return bytes
    }
}
