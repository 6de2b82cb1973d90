import CSQLite
import Glibc

/// Keeps checkpoints and write transactions of all processes from overlapping, for versions of SQLite in which that can
/// corrupt a database: the WAL-reset bug of 3.7.0 to 3.51.2, fixed in 3.51.3, 3.50.7 and 3.44.6
/// (sqlite.org/wal.html#walresetbug).
///
/// The lock is the first byte of a file (open-file-description locks, fcntl(2)): a write transaction holds it shared, a
/// checkpoint exclusively. The kernel releases it when a process terminates.
///
/// @unchecked Sendable because the descriptor never changes.
final class CheckpointLock: @unchecked Sendable {
    private let file: CInt

    /// Locks nothing if the file cannot be opened: the folder cannot be written then either.
    init(path: String) { file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600) }

    deinit { if file >= 0 { close(file) } }

    /// Acquires the lock without waiting; false if another process holds it.
    func lock(exclusively: Bool) -> Bool { set(exclusively ? F_WRLCK : F_RDLCK) }

    func unlock() { _ = set(F_UNLCK) }

    private func set(_ type: CInt) -> Bool {
        guard file >= 0, let cause = lockByte(type, 0, of: file) else { return true }
        return cause != EAGAIN && cause != EACCES
    }
}

extension SQLiteConnection {
    /// Whether the SQLite library in use has the WAL-reset bug.
    static var hasResetBug: Bool { hasResetBug(version: Int(sqlite3_libversion_number())) }

    /// - Parameter version: as returned by `sqlite3_libversion_number`, such as 3040001.
    static func hasResetBug(version: Int) -> Bool {
        switch version {
        case 3_044_006..<3_045_000, 3_050_007..<3_051_000, 3_051_003...: false
        default: true
        }
    }
}
