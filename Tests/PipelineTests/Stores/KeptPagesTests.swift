import Glibc
import Testing

@testable import Pipeline

/// Pages that are kept from one read transaction to the next, whatever others write meanwhile.
@Suite struct KeptPagesTests {
    let folder = CacheFolder()
    private var path: String { "\(folder.path)/one" }

    private func connect() throws -> SQLiteConnection {
        let connection = try SQLiteConnection(path: path, busyMilliseconds: 5_000)
        // So few pages that all are read again and again.
        try connection.execute(
            "PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA cache_size=3")
        connection.wait(milliseconds: 5_000)
        return connection
    }

    private func rows(_ connection: SQLiteConnection) throws(StoreError) -> [Int: [UInt8]] {
        let rows = try connection.rows("SELECT id, data FROM t") { ($0.integer(0), $0.blob(1) ?? []) }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    private func isSound(_ connection: SQLiteConnection) throws -> Bool {
        try connection.first("PRAGMA integrity_check") { $0.text(0) } == "ok"
    }

    @Test(arguments: [1, 2]) func `are those of what has committed`(seed: Int) throws {
        mkdir(folder.path, 0o700)
        let writers = [try connect(), try connect()]
        let readers = [try connect(), try connect()]
        defer { for connection in writers + readers { connection.close() } }
        try writers[0].execute("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB)")
        var random = SystemRandomNumberGenerator()
        var expected: [Int: [UInt8]] = [:]
        for round in 0..<40 {
            let writer = writers[Int.random(in: 0..<2, using: &random)]
            // One that reads all the while keeps the log from beginning anew, and what is moved from being all of it.
            let isHeld = round % 3 == 0
            let before = expected
            if isHeld {
                try readers[1].beginReading()
                #expect(try rows(readers[1]) == before)
            }
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let undone = Int.random(in: 0..<4, using: &random) == 0
                var after = expected
                do throws(StoreError) {
                    try writer.write { () throws(StoreError) in
                        for _ in 0..<Int.random(in: 1...12, using: &random) {
                            let id = Int.random(in: 0..<40, using: &random)
                            if Int.random(in: 0..<4, using: &random) == 0 {
                                after[id] = nil
                                try writer.run("DELETE FROM t WHERE id = ?1", .integer(id))
                            } else {
                                let data = bytes(
                                    Int.random(in: 0...6_000, using: &random), seed: Int(random.next() >> 2))
                                after[id] = data
                                try writer.run("INSERT OR REPLACE INTO t VALUES (?1, ?2)", .integer(id), .blob(data))
                            }
                        }
                        // Of what has not committed nothing is kept, in whichever transaction it is read back.
                        guard try rows(writer) == after else { throw StoreError(.damaged, "not what was written") }
                        if undone { throw StoreError(.invalid, "undone") }
                    }
                    expected = after
                } catch {
                    guard error.code == .invalid else { throw error }
                }
            }
            try readers[0].beginReading()
            #expect(try rows(readers[0]) == expected, "round \(round)")
            switch Int.random(in: 0..<8, using: &random) {
            case 0: _ = writer.restartLog(waiting: isHeld ? 0 : 100)
            case 1: _ = try? writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
            case 2: _ = try? writer.execute("PRAGMA incremental_vacuum(20)")
            case 3: _ = try? writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            default: break
            }
            #expect(try rows(readers[0]) == expected, "round \(round), the same transaction")
            if round % 10 == 9 { #expect(try isSound(readers[0])) }
            readers[0].endReading()
            if isHeld {
                #expect(try rows(readers[1]) == before, "round \(round), as it was before")
                readers[1].endReading()
            }
        }
    }

    /// Three on one database with a table of several pages and an empty one.
    private func filled() throws -> (SQLiteConnection, SQLiteConnection, SQLiteConnection) {
        mkdir(folder.path, 0o700)
        let writer = try connect()
        try writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, data BLOB); CREATE TABLE o (id INTEGER)")
        for id in 0..<8 {
            try writer.run("INSERT INTO t VALUES (?1, ?2)", .integer(id), .blob(bytes(3_000, seed: id)))
        }
        return (writer, try connect(), try connect())
    }

    @Test func `are read from memory by who reads them again, until a checkpoint may have changed them`() throws {
        let (writer, reader, other) = try filled()
        defer { for connection in [writer, reader, other] { connection.close() } }
        let root = try #require(
            try writer.first("SELECT rootpage FROM sqlite_schema WHERE name = 't'") { $0.integer(0) })
        let expected = try rows(writer)
        #expect(writer.restartLog(waiting: 0))
        // Who writes next begins the log anew.
        try writer.run("INSERT INTO o VALUES (0)")
        func read() throws -> [Int: [UInt8]] {
            try reader.beginReading()
            defer { reader.endReading() }
            return try rows(reader)
        }
        #expect(try read() == expected)
        // Zeros in the place of the table: whoever reads the file finds that it is damaged. With the commit SQLite forgets
        // what it has read itself.
        folder.overwrite("one", at: (root - 1) * 4096, with: [UInt8](repeating: 0, count: 4096))
        try writer.run("INSERT INTO o VALUES (1)")
        #expect(try read() == expected)
        #expect(throws: StoreError.self) { _ = try rows(other) }
        #expect(writer.restartLog(waiting: 0))
        try writer.run("INSERT INTO o VALUES (2)")
        #expect(throws: StoreError.self) { _ = try rows(other) }
        #expect(throws: StoreError.self) { _ = try read() }
    }

    @Test func `are not those of who began to read before the shared memory of the log was mended`() throws {
        let (writer, reader, other) = try filled()
        defer { for connection in [writer, reader, other] { connection.close() } }
        let before = try rows(writer)
        #expect(writer.restartLog(waiting: 0))
        try writer.run("INSERT INTO o VALUES (0)")
        try reader.beginReading()
        #expect(try reader.first("SELECT count(*) FROM o") { $0.integer(0) } == 1)
        try writer.run("UPDATE t SET data = ?1 WHERE id = 3", .blob([1]))
        let after = try rows(writer)
        // One copy of its header is not like the other, as a writer leaves it that is killed as it commits.
        folder.overwrite("one-shm", at: 0, with: [UInt8](repeating: 0, count: 48))
        #expect(try rows(other) == after)
        #expect(try rows(reader) == before)
        reader.endReading()
        #expect(writer.restartLog(waiting: 0))
        try reader.beginReading()
        #expect(try rows(reader) == after)
        reader.endReading()
    }
}
