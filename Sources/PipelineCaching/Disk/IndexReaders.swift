import Glibc
import Synchronization

/// The connection for a look-up: a read connection, or the write connection while the index's lock is held.
struct IndexView {
    let connection: SQLiteConnection
    let notes: LookupNotes
    /// The index, which can remove damaged rows, or nil on a read connection.
    let index: DiskIndex?
    /// Removes a damaged row and counts it.
    ///
    /// - Throws: `.damaged` on a read connection. The look-up is then repeated under the index's lock.
    func removeDamaged(_ tier: DiskTable, row: Int) throws(StoreError) {
        guard let index else { throw StoreError(.damaged, "a row of the index is damaged", path: connection.path) }
        notes.note(tier) { $0.corrupt += 1 }
        try index.write { transaction throws(StoreError) in try transaction.removeRow(tier, row) }
    }
}

/// A pool of read connections. Look-ups on them do not wait for stores, evictions, purges or checkpoints, because the
/// writer does not block WAL readers (sqlite.org/wal.html).
final class IndexReaders: Sendable {
    struct Reader: Sendable {
        let connection: SQLiteConnection
        /// The inode of the open database file.
        fileprivate let inode: UInt64
    }

    private struct State {
        var idle: [Reader] = []
        var isClosed = false
    }

    /// The maximum number of idle connections, and the size of the page cache of each connection in kilobytes.
    private static let (most, cachedKilobytes) = (8, 4096)
    private let path: String
    private let state = Mutex(State())

    init(path: String) { self.path = path }

    deinit { close() }

    /// Returns a connection to the database file that is now at `path`. Returns nil if it cannot be opened, or after
    /// `close()`.
    func take() -> Reader? {
        var info = stat()
        guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        let inode = UInt64(info.st_ino)
        let (found, others, isClosed) = state.withLock { state -> (Reader?, [Reader], Bool) in
            if let last = state.idle.last, last.inode == inode { return (state.idle.removeLast(), [], state.isClosed) }
            // The file at `path` was replaced.
            defer { state.idle = [] }
            return (nil, state.idle, state.isClosed)
        }
        for other in others { other.connection.close() }
        if isClosed {
            found?.connection.close()
            return nil
        }
        return found ?? open(inode)
    }

    private func open(_ inode: UInt64) -> Reader? {
        // The error is not reported, because the caller falls back to the write connection, which reports it.
        guard let connection = try? SQLiteConnection(reading: path) else { return nil }
        var info = stat()
        guard (try? connection.isOurs(cachedKilobytes: Self.cachedKilobytes)) == true, lstat(path, &info) == 0,
            UInt64(info.st_ino) == inode
        else {
            connection.close()
            return nil
        }
        return Reader(connection: connection, inode: inode)
    }

    func giveBack(_ reader: Reader) {
        let isKept = state.withLock { state in
            if state.isClosed || state.idle.count >= Self.most { return false }
            state.idle.append(reader)
            return true
        }
        if !isKept { reader.connection.close() }
    }

    /// Closes the idle connections. Connections in use are closed when they are returned.
    func close() {
        let idle = state.withLock { state -> [Reader] in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle
        }
        for reader in idle { reader.connection.close() }
    }
}

extension SQLiteConnection {
    /// Configures a read connection. Returns whether the database is an index of this version.
    fileprivate func isOurs(cachedKilobytes: Int) throws(StoreError) -> Bool {
        try execute(
            "PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA query_only=ON; PRAGMA cache_size=-\(cachedKilobytes)"
        )
        let found = try first("SELECT user_version, application_id FROM pragma_user_version, pragma_application_id") {
            (version: $0.integer(0), application: $0.integer(1))
        }
        return found?.version == DiskSchema.version && found?.application == DiskSchema.applicationID
    }
}
