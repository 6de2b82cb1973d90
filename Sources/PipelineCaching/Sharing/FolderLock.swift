import Glibc
import PipelineSupport

/// An exclusive lock on a cache folder, between processes and between stores of one process.
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

    /// Closing the file releases the lock, and so does the end of the process.
    func unlock() { Glibc.close(file) }
}

/// Locks or unlocks one byte of an open file without waiting (open-file-description locks, fcntl(2)); the kernel drops
/// the lock however the process terminates.
///
/// - Returns: nil on success, else errno.
func lockByte(_ type: CInt, _ offset: off_t, of file: CInt) -> CInt? {
    var range = flock(l_type: Int16(type), l_whence: Int16(SEEK_SET), l_start: offset, l_len: 1, l_pid: 0)
    // F_OFD_SETLK, whose definition Swift does not import.
    return uninterrupted { fcntl(file, 37, &range) } == 0 ? nil : errno
}
