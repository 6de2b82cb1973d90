import Glibc

/// The space reserve: a file that is truncated if the file system has no room for the WAL of a deletion, and is filled
/// again when there is room.
struct ReserveFile: Sendable {
    /// Bytes that are reserved.
    static let bytes = 4 << 20

    let path: String

    init(folder: String) { path = "\(folder)/reserve" }

    private var length: Int {
        var info = stat()
        return lstat(path, &info) == 0 && BodyFiles.isOurs(info) ? Int(info.st_size) : 0
    }

    /// Whether it has its full size.
    var isFilled: Bool { length >= Self.bytes }

    /// Returns all of the space to the file system.
    ///
    /// - Returns: false if there was none.
    func giveUp() -> Bool { length > 0 && truncate(path, 0) == 0 }

    /// Fills the reserve to its full size.
    ///
    /// - Returns: false if the file system has no room for it. Other errors are ignored: deletions may fail later.
    @discardableResult
    func fill() -> Bool {
        if isFilled { return true }
        for _ in 0..<2 {
            let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard file >= 0 else {
                if errno == ENOSPC || errno == EDQUOT { return false }
                // A link or a folder is in its place. Other errors, such as a lack of descriptors, are temporary.
                guard errno == ELOOP || errno == EISDIR || errno == ENXIO else { return true }
                BodyFiles.delete(path)
                continue
            }
            defer { close(file) }
            let cause = posix_fallocate(file, 0, off_t(Self.bytes))
            // A partial reserve would only take space from others.
            if cause == ENOSPC || cause == EDQUOT { ftruncate(file, 0) }
            return cause != ENOSPC && cause != EDQUOT
        }
        return true
    }
}
