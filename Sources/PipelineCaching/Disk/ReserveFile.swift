import Glibc

/// The space reserve: a file that is truncated if the file system has no room for the WAL of a deletion. It is filled
/// again when there is room.
struct ReserveFile: Sendable {
    /// The size of the reserve in bytes.
    static let bytes = 4 << 20

    let path: String

    init(folder: String) { path = "\(folder)/reserve" }

    private var length: Int {
        var info = stat()
        return lstat(path, &info) == 0 && BodyFiles.isOurs(info) ? Int(info.st_size) : 0
    }

    /// Whether the reserve has its full size.
    var isFilled: Bool { length >= Self.bytes }

    /// Returns the reserved space to the file system.
    ///
    /// - Returns: false if no space was reserved.
    func giveUp() -> Bool { length > 0 && truncate(path, 0) == 0 }

    /// Fills the reserve to its full size.
    ///
    /// - Returns: false if the file system has no room for it. Other errors are ignored, although later deletions may
    ///   then fail.
    @discardableResult
    func fill() -> Bool {
        if isFilled { return true }
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard file >= 0 else { return errno != ENOSPC && errno != EDQUOT }
        defer { close(file) }
        let cause = posix_fallocate(file, 0, off_t(Self.bytes))
        // A partial reserve is useless but takes up space.
        if cause == ENOSPC || cause == EDQUOT { ftruncate(file, 0) }
        return cause != ENOSPC && cause != EDQUOT
    }
}
