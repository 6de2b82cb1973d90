import Glibc
import PipelineSupport

/// An exclusive lock on a cache folder. It excludes other processes and other stores in the same process.
struct FolderLock: ~Copyable {
    private let file: CInt

    init(path: String) throws(StoreError) {
        file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw BodyFiles.failure("cannot open the cache's lock file", errno, path) }
        guard uninterrupted({ flock(file, LOCK_EX) }) == 0 else {
            let cause = errno
            Glibc.close(file)
            throw BodyFiles.failure("cannot lock the cache", cause, path)
        }
    }

    /// Releases the lock by closing the file. The lock is also released when the process terminates.
    func unlock() { Glibc.close(file) }
}
