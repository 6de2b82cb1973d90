import CSQLite
import Glibc
import PipelineSupport

/// Prevents checkpoints and write transactions of different processes from overlapping, for versions of SQLite in which
/// the overlap can corrupt a database. This is the WAL-reset bug of versions 3.7.0 to 3.51.2, fixed in 3.51.3, 3.50.7
/// and 3.44.6 (sqlite.org/wal.html#walresetbug).
///
/// The lock is on the first byte of a file (open-file-description locks, fcntl(2)). A write transaction holds a shared
/// lock, and a checkpoint holds an exclusive lock. The kernel releases the lock when a process terminates.
///
/// `@unchecked Sendable` because the descriptor never changes.
final class CheckpointLock: @unchecked Sendable {
    private let file: CInt

    /// Opens the lock file. If that fails, no lock is needed, because the folder cannot be written to either.
    init(path: String) { file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600) }

    deinit { if file >= 0 { close(file) } }

    /// Acquires the lock without waiting. Returns false if another process holds the lock.
    func lock(exclusively: Bool) -> Bool { set(exclusively ? F_WRLCK : F_RDLCK) }

    func unlock() { _ = set(F_UNLCK) }

    private func set(_ type: CInt) -> Bool {
        var range = flock(l_type: Int16(type), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 1, l_pid: 0)
        // This is `F_OFD_SETLK`, which Swift does not import.
        return file < 0 || uninterrupted { fcntl(file, 37, &range) } == 0 || errno != EAGAIN && errno != EACCES
    }
}

extension SQLiteConnection {
    /// Whether the SQLite library in use has the WAL-reset bug.
    static var hasResetBug: Bool { hasResetBug(version: Int(sqlite3_libversion_number())) }

    /// Returns whether a version of SQLite has the WAL-reset bug.
    ///
    /// - Parameter version: a version as returned by `sqlite3_libversion_number`, such as 3040001.
    static func hasResetBug(version: Int) -> Bool {
        switch version {
        case 3_044_006..<3_045_000, 3_050_007..<3_051_000, 3_051_003...: false
        default: true
        }
    }
}
