import Glibc
import Synchronization

/// What a look-up reads from: a connection of its own, or the index's within its lock.
struct IndexView {
    let connection: SQLiteConnection
    let notes: LookupNotes
    /// Where rows that cannot be read are removed; nil on a connection of its own.
    let index: DiskIndex?
    /// Removes a row that cannot be read and counts it.
    /// - Throws: where the view may not write: who looks it up again within the index's lock removes it.
    func removeDamaged(_ tier: DiskTier, row: Int) throws(StoreError) {
        guard let index else { throw StoreError(.damaged, "a row of the index is damaged", path: connection.path) }
        index.note(tier) { $0.corrupt += 1 }
        try index.write { _ throws(StoreError) in try index.removeRow(tier, row) }
    }
}

/// Connections that look-ups read with, so that none waits for who stores, evicts, purges or moves the log into the index:
/// readers of a write-ahead log never do (sqlite.org/wal.html).
final class IndexReaders: Sendable {
    struct Reader: Sendable {
        let connection: SQLiteConnection
        /// Of the index it reads.
        fileprivate let inode: UInt64
    }

    private struct State {
        var idle: [Reader] = []
        var isClosed = false
    }

    /// Connections kept for later: as many as look up at once. Each has 1 MB of pages at most.
    private static let (most, cachedKilobytes) = (8, 1024)
    private let path: String
    private let state = Mutex(State())

    init(path: String) { self.path = path }

    deinit { close() }

    /// A connection to the index that lies under its name now; nil where there is none that can be read, or after `close()`.
    func take() -> Reader? {
        var info = stat()
        guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        let inode = UInt64(info.st_ino)
        let (found, others, isClosed) = state.withLock { state -> (Reader?, [Reader], Bool) in
            if let last = state.idle.last, last.inode == inode { return (state.idle.removeLast(), [], state.isClosed) }
            // Another index lies there.
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
        // Whoever fails here looks up within the lock of the index, and is told there what is wrong.
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

    /// Closes what is idle now, and what is given back later.
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
    /// Whether it is an index of this version; sets how it is read.
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
