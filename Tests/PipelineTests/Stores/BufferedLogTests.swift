import Glibc
import Testing

@testable import Pipeline

/// The log as a killed process would leave it: what has committed is in it, whatever SQLite wrote in between.
@Suite struct BufferedLogTests {
    let folder = CacheFolder()

    /// What another program would copy while nobody writes; without the shared memory that goes with the log.
    private func copy(_ from: String, _ to: String) throws {
        for suffix in ["-shm", "-wal", ""] { unlink("\(folder.path)/\(to)\(suffix)") }
        for suffix in ["", "-wal"] {
            let bytes = try #require(folder.contents("\(from)\(suffix)"))
            folder.overwrite(to + suffix, at: 0, with: bytes)
        }
    }

    private func rows(_ connection: SQLiteConnection) throws -> [Int: Int] {
        let rows = try connection.rows("SELECT id, data FROM t") { ($0.integer(0), $0.blob(1)?.hashValue ?? 0) }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// - Parameter cached: pages in memory; with few of them a transaction writes pages to the log before it ends, and
    ///   again where it changes them once more.
    @Test(arguments: [3, 2_000], ["NORMAL", "FULL"])
    func `what has committed is found by who opens a copy, in whole transactions`(
        cached: Int, synchronous: String
    ) throws {
        mkdir(folder.path, 0o700)
        let path = "\(folder.path)/one"
        let connections = try (0..<2).map { _ in
            let connection = try SQLiteConnection(path: path, busyMilliseconds: 1_000)
            try connection.execute(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=\(synchronous); PRAGMA cache_size=\(cached)")
            return connection
        }
        defer { for connection in connections { connection.close() } }
        try connections[0].execute("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)")
        var random = SystemRandomNumberGenerator()
        for round in 0..<40 {
            let connection = connections[round / 5 % 2]
            try connection.write { () throws(StoreError) in
                for _ in 0..<Int.random(in: 1...60, using: &random) {
                    let data = bytes(Int.random(in: 0...9_000, using: &random), seed: Int(random.next() >> 2))
                    try connection.run(
                        "INSERT OR REPLACE INTO t VALUES (?1, ?2)", .integer(.random(in: 0..<30, using: &random)),
                        .blob(data))
                }
            }
            if round % 7 == 3 {
                #expect(throws: StoreError.self) {
                    try connection.write { () throws(StoreError) in
                        for id in 0..<30 {
                            try connection.run("INSERT OR REPLACE INTO t VALUES (?1, 'no')", .integer(id))
                        }
                        throw StoreError(.invalid, "undone")
                    }
                }
            }
            if round % 11 == 10 { _ = connection.restartLog(waiting: 100) }
            try copy("one", "two")
            let copied = try SQLiteConnection(path: "\(folder.path)/two", busyMilliseconds: 0)
            defer { copied.close() }
            #expect(try copied.first("PRAGMA integrity_check") { $0.text(0) } == "ok")
            #expect(try rows(copied) == rows(connection), "after transaction \(round)")
        }
    }

    @Test func `what was undone is not written over what another process has committed since`() throws {
        mkdir(folder.path, 0o700)
        let connections = try (0..<2).map { _ in
            let connection = try SQLiteConnection(path: "\(folder.path)/one", busyMilliseconds: 1_000)
            try connection.execute("PRAGMA journal_mode=WAL; PRAGMA cache_size=3")
            return connection
        }
        defer { for connection in connections { connection.close() } }
        try connections[0].execute("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)")
        func put(_ connection: SQLiteConnection, _ seed: Int) throws(StoreError) {
            for id in 0..<8 {
                try connection.run(
                    "INSERT OR REPLACE INTO t VALUES (?1, ?2)", .integer(id), .blob(bytes(3_000, seed: seed + id)))
            }
        }
        for round in 0..<10 {
            #expect(throws: StoreError.self) {
                _ = try connections[0].write { () throws(StoreError) in
                    try put(connections[0], 1_000 + round)
                    throw StoreError(.invalid, "undone")
                }
            }
            _ = try connections[1].write { () throws(StoreError) in try put(connections[1], 100 * round) }
            let found = try rows(connections[0])
            _ = try connections[0].write { () throws(StoreError) in
                try connections[0].run("INSERT OR REPLACE INTO t VALUES (9, 'x')")
            }
            try copy("one", "two")
            let copied = try SQLiteConnection(path: "\(folder.path)/two", busyMilliseconds: 0)
            defer { copied.close() }
            #expect(try copied.first("PRAGMA integrity_check") { $0.text(0) } == "ok")
            for id in 0..<8 { #expect(try rows(copied)[id] == found[id], "row \(id) after round \(round)") }
        }
    }
}
