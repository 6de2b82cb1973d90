import CPeer

/// A baseline for the disk tier: the same entries in a plain SQLite table of keys and bodies with an index on the
/// eviction order, without any counters, checks, sharing or budgets. The ratio to this baseline, measured beside it,
/// makes the disk tier's figures comparable across machines.
struct PeerBench {
    let path: String
    let entries: Int
    private let workload = Workload()

    init(_ folder: String, _ entries: Int) {
        path = "\(folder)/peer.sqlite"
        self.entries = entries
    }

    func run() throws {
        var handle: OpaquePointer?
        let status = sqlite3_open(path, &handle)
        guard status == SQLITE_OK, let database = handle else { throw BenchError("\(path): SQLite says \(status)") }
        defer { sqlite3_close(database) }
        for sql in [
            "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL", "PRAGMA secure_delete=OFF",
            "CREATE TABLE bodies (key BLOB PRIMARY KEY, turn INTEGER NOT NULL, body BLOB NOT NULL)",
            "CREATE INDEX turns ON bodies (turn)",
        ] { try check(sqlite3_exec(database, sql, nil, nil, nil), database) }
        try put(database)
        try hit(database)
        try evict(database)
    }

    private func put(_ database: OpaquePointer) throws {
        let begin = try Statement("BEGIN IMMEDIATE", database)
        let insert = try Statement("INSERT INTO bodies VALUES (?1, ?2, ?3)", database)
        let commit = try Statement("COMMIT", database)
        let begun = cpu()
        for number in 0..<entries {
            try begin.run()
            insert.bind(key(number), at: 1)
            sqlite3_bind_int64(insert.handle, 2, Int64(number))
            insert.bind(workload.bytes(number, length: Workload.length), at: 3)
            try insert.run()
            try commit.run()
        }
        report("peer", entries, "put", (cpu() - begun) / Double(entries), "us")
    }

    private func hit(_ database: OpaquePointer) throws {
        let select = try Statement("SELECT body FROM bodies WHERE key = ?1", database)
        var random = SplitMix(seed: 7)
        let count = min(100_000, 4 * entries)
        let keys = (0..<count).map { _ in key(Int(random.next() % UInt64(entries))) }
        var bytes = 0
        let begun = cpu()
        for key in keys {
            select.bind(key, at: 1)
            guard sqlite3_step(select.handle) == SQLITE_ROW else { throw BenchError("an entry was not found") }
            let body = UnsafeRawBufferPointer(
                start: sqlite3_column_blob(select.handle, 0), count: Int(sqlite3_column_bytes(select.handle, 0)))
            bytes += [UInt8](body).count
            sqlite3_reset(select.handle)
        }
        report("peer", entries, "hit", (cpu() - begun) / Double(count), "us")
        guard bytes == count * Workload.length else { throw BenchError("bodies are missing") }
    }

    /// Deletes the oldest tenth in one transaction.
    private func evict(_ database: OpaquePointer) throws {
        let delete = try Statement(
            "DELETE FROM bodies WHERE rowid IN (SELECT rowid FROM bodies ORDER BY turn LIMIT ?1)", database)
        let count = entries / 10
        let begun = cpu()
        sqlite3_bind_int64(delete.handle, 1, Int64(count))
        try delete.run()
        report("peer", entries, "evict", (cpu() - begun) / Double(count), "us")
    }

    private func key(_ number: Int) -> [UInt8] {
        var random = SplitMix(seed: UInt64(number) &* 8 &+ 1)
        return (0..<4).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
    }
}

private func check(_ status: CInt, _ database: OpaquePointer?) throws {
    guard status != SQLITE_OK, status != SQLITE_DONE else { return }
    throw BenchError("SQLite says \(String(cString: sqlite3_errmsg(database)))")
}

private final class Statement {
    let handle: OpaquePointer?
    private let database: OpaquePointer

    init(_ sql: String, _ database: OpaquePointer) throws {
        self.database = database
        var statement: OpaquePointer?
        let status = sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        handle = statement
        try check(status, database)
    }

    deinit { sqlite3_finalize(handle) }

    func bind(_ bytes: [UInt8], at position: Int32) {
        // SQLITE_TRANSIENT: SQLite copies the bytes.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        bytes.withUnsafeBytes { _ = sqlite3_bind_blob(handle, position, $0.baseAddress, Int32($0.count), transient) }
    }

    func run() throws {
        let status = sqlite3_step(handle)
        sqlite3_reset(handle)
        try check(status, database)
    }
}
