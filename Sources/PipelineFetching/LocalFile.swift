package import PipelineSupport
import Glibc

/// A regular file opened for one read; its identity changes whenever the file may have changed.
package final class LocalFile: Sendable {
    package struct Failure: Error, Sendable {
        package var isMissing: Bool
        package var isTooLarge = false
        package var message: String
        /// What happened, for the log alone: clients are told that the file is not there.
        package var logged: String?
    }

    /// The open file.
    package let body: SpooledBody
    private let path: String
    /// Device, inode, size, modification and status-change times.
    package let identity: String
    /// Unix seconds of the last modification.
    let modified: Int

    private init(descriptor: Int32, path: String, status: stat) {
        body = SpooledBody(descriptor: descriptor, count: Int(status.st_size))
        self.path = path
        modified = status.st_mtim.tv_sec
        identity =
            "\(status.st_dev):\(status.st_ino):\(status.st_size)"
            + ":\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec):\(status.st_ctim.tv_sec).\(status.st_ctim.tv_nsec)"
    }

    /// Opens a regular file, without blocking on devices or pipes; `byteLimit` is checked before anything is read.
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
    ///   - descriptor: open for reading; closed if this throws.
    ///   - path: its name in messages.
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
                message: "\(path) has \(status.st_size) bytes; the limit (limits.bytes) is \(byteLimit)")
        }
        self.init(descriptor: descriptor, path: path, status: status)
    }

    /// Reads the whole content; a file truncated while it is read is an error, so that no partial content is digested.
    package func bytes() throws(Failure) -> [UInt8] {
        guard let bytes = body.bytes() else {
            throw Failure(
                isMissing: false, message: "\(path) cannot be read whole: it is being changed, or the disk fails")
        }
        return bytes
    }
}
