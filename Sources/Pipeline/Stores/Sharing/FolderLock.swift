import Glibc

/// An exclusive lock on a cache folder, between processes and between stores of one process.
struct FolderLock: ~Copyable {
    private let file: CInt

    init(path: String) throws(StoreError) {
        file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw BodyFiles.failure("cannot open the lock of the cache", errno, path) }
        while flock(file, LOCK_EX) != 0 {
            guard errno == EINTR else {
                let cause = errno
                Glibc.close(file)
                throw BodyFiles.failure("cannot lock the cache", cause, path)
            }
        }
    }

    /// Closing the file releases the lock, as the end of the process does.
    func unlock() { Glibc.close(file) }
}
