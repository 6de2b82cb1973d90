import CSQLite
import Glibc
import Synchronization

/// A value bound to a statement.
enum SQLiteValue {
    case integer(Int)
    case real(Double)
    case text(String)
    case blob([UInt8])
    /// A blob of 32 bytes.
    case digest(DigestKey)
    case null
}

/// The current row of a statement. It is valid only within the closure that receives it.
struct SQLiteRow {
    fileprivate let statement: OpaquePointer

    func integer(_ column: Int32) -> Int { Int(sqlite3_column_int64(statement, column)) }

    /// Returns a count, clamped so that sums and products of counts cannot overflow. The database has no checksums, so
    /// any bit may be wrong.
    func count(_ column: Int32) -> Int { min(max(0, integer(column)), 1 << 44) }
    /// Returns a count that is small enough to multiply with another one, such as a width in pixels.
    func side(_ column: Int32) -> Int { min(count(column), Int(Int32.max)) }

    func real(_ column: Int32) -> Double { sqlite3_column_double(statement, column) }
    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_NULL }

    func text(_ column: Int32) -> String {
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        let count = Int(sqlite3_column_bytes(statement, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Returns a digest, or an empty string if the column does not contain a blob of 32 bytes.
    func digest(_ column: Int32) -> String { digestKey(column)?.text ?? "" }

    /// Returns a digest. Returns nil if the column does not contain a blob of 32 bytes.
    func digestKey(_ column: Int32) -> DigestKey? {
        guard let start = sqlite3_column_blob(statement, column) else { return nil }
        return DigestKey(
            bytes: UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
    }

    /// Returns a blob, or nil if the value is NULL.
    func blob(_ column: Int32) -> [UInt8]? {
        if isNull(column) { return nil }
        // Get the pointer first, because the call may convert the value. It is nil for an empty blob.
        guard let start = sqlite3_column_blob(statement, column) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
    }
}

/// A connection to an SQLite database. All calls that open or query a database are in this file.
///
/// `@unchecked Sendable` because its owner keeps it under a lock, so only one thread at a time calls it. SQLite itself
/// is opened without its own mutexes.
final class SQLiteConnection: @unchecked Sendable {
    let path: String
    private var handle: OpaquePointer?
    private var statements: [String: OpaquePointer] = [:]
    /// The number of pages in the WAL after the last commit of this connection.
    private let logged = UnsafeMutablePointer<CInt>.allocate(capacity: 1)

    /// Opens or creates the database without reading it. The WAL is kept when the last connection is closed. Otherwise,
    /// SQLite would delete the WAL by name, and if another process has set this database aside, that name belongs to
    /// the WAL of its replacement.
    convenience init(path: String, busyMilliseconds: Int32) throws(StoreError) {
        try self.init(path: path, flags: SQLITE_OPEN_CREATE, busyMilliseconds: busyMilliseconds)
    }

    /// Opens an existing database for reading. Closing it does not checkpoint the WAL.
    convenience init(reading path: String) throws(StoreError) {
        try self.init(path: path, flags: 0, busyMilliseconds: 0)
        keepLog()
    }

    private init(path: String, flags: CInt, busyMilliseconds: Int32) throws(StoreError) {
        self.path = path
        logged.initialize(to: 0)
        let flags = flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
        let status = sqlite3_open_v2(path, &handle, flags, nil)
        guard status == SQLITE_OK else {
            let failure = failure(status)
            close()
            throw failure
        }
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, busyMilliseconds)
        var persistLog: CInt = 1
        sqlite3_file_control(handle, nil, SQLITE_FCNTL_PERSIST_WAL, &persistLog)
    }

    deinit {
        close()
        logged.deallocate()
    }

    func close() {
        for statement in statements.values { sqlite3_finalize(statement) }
        statements = [:]
        sqlite3_close_v2(handle)
        handle = nil
    }

    /// Disables the checkpoint on close. The next process that opens the database finds the WAL.
    func keepLog() { database_keep_log(handle) }

    /// Whether the file could be opened only for reading.
    var isReadOnly: Bool { sqlite3_db_readonly(handle, "main") == 1 }

    /// Whether the open file is no longer the file at its path.
    var hasMoved: Bool {
        var moved: CInt = 0
        return sqlite3_file_control(handle, nil, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0
    }

    /// Whether the complete database file and its WAL can be read.
    var isReadable: Bool {
        [SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER].allSatisfy { which in
            var file: UnsafeMutablePointer<sqlite3_file>?
            guard sqlite3_file_control(handle, nil, which, &file) == SQLITE_OK, let file else { return false }
            guard let methods = file.pointee.pMethods else { return true }
            var length: Int64 = 0
            guard methods.pointee.xFileSize(file, &length) == SQLITE_OK else { return false }
            var piece = [UInt8](repeating: 0, count: DiskSchema.pageSize)
            return stride(from: 0, to: length, by: piece.count).allSatisfy { at in
                methods.pointee.xRead(file, &piece, CInt(min(Int64(piece.count), length - at)), at) == SQLITE_OK
            }
        }
    }

    /// Returns the 100 bytes of a database's header. Returns nil if the file is not a database. Does not acquire a lock
    /// or open other files. SQLite keeps the descriptor until its locks on the file are released elsewhere in this
    /// process.
    static func header(of path: String) -> [UInt8]? {
        var handle: OpaquePointer?
        defer { sqlite3_close(handle) }
        var info = stat()
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG,
            sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nil) == SQLITE_OK,
            sqlite3_file_control(handle, nil, SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK, let file
        else { return nil }
        var header = [UInt8](repeating: 0, count: 100)
        guard file.pointee.pMethods.pointee.xRead(file, &header, CInt(header.count), 0) == SQLITE_OK,
            header.starts(with: Array("SQLite format 3\0".utf8))
        else { return nil }
        return header
    }

    /// Runs statements without bound values. Ignores any rows.
    func execute(_ sql: String) throws(StoreError) {
        errno = 0
        let status = sqlite3_exec(handle, sql, nil, nil, nil)
        if status != SQLITE_OK { throw failure(status, of: errno) }
    }

    /// Runs one statement.
    ///
    /// - Returns: the number of rows that it inserted, changed or deleted.
    @discardableResult
    func run(_ sql: String, _ values: SQLiteValue...) throws(StoreError) -> Int {
        try run(sql, values: values)
    }

    /// Runs one statement with an array of values.
    @discardableResult
    func run(_ sql: String, values: [SQLiteValue]) throws(StoreError) -> Int {
        try step(sql, values) { _ in true }
        return Int(sqlite3_changes64(handle))
    }

    var lastInsertedRow: Int { Int(sqlite3_last_insert_rowid(handle)) }

    func rows<Result>(
        _ sql: String, _ values: SQLiteValue..., read: (SQLiteRow) -> Result
    ) throws(StoreError) -> [Result] {
        try rows(sql, values: values, read: read)
    }

    /// Returns the results of `read` for all rows of a statement with an array of values.
    func rows<Result>(
        _ sql: String, values: [SQLiteValue], read: (SQLiteRow) -> Result
    ) throws(StoreError) -> [Result] {
        var results: [Result] = []
        try step(sql, values) { row in
            results.append(read(row))
            return true
        }
        return results
    }

    /// Returns the result of `read` for the first row. Returns nil if there are no rows.
    func first<Result>(
        _ sql: String, _ values: SQLiteValue..., read: (SQLiteRow) -> Result
    ) throws(StoreError) -> Result? {
        var result: Result?
        try step(sql, values) { row in
            result = read(row)
            return false
        }
        return result
    }

    /// The number of rows that statements of this connection have visited in full table scans.
    var rowsScanned: Int {
        statements.values.reduce(0) { $0 + Int(sqlite3_stmt_status($1, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0)) }
    }

    /// Disables automatic checkpoints and counts the pages in the WAL instead.
    func countLog() {
        sqlite3_wal_hook(
            handle,
            { count, _, _, pages in
                count?.assumingMemoryBound(to: CInt.self).pointee = pages
                return SQLITE_OK
            }, logged)
    }

    /// The number of pages in the WAL after the last commit. Valid only after `countLog()` has been called.
    var pagesInLog: Int { Int(logged.pointee) }

    /// Copies the WAL into the database, except for pages that readers still block.
    ///
    /// - Parameter truncates: whether to truncate the WAL as well. This waits for readers up to the busy timeout.
    /// - Returns: whether all of the WAL was copied.
    /// - Throws: `.full` if the file system has no room for the database to grow.
    @discardableResult
    func checkpoint(truncates: Bool = false) throws(StoreError) -> Bool {
        var (length, copied): (CInt, CInt) = (0, 0)
        errno = 0
        let mode = truncates ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
        let status = sqlite3_wal_checkpoint_v2(handle, nil, mode, &length, &copied)
        if status & 0xFF == SQLITE_BUSY { return false }
        guard status == SQLITE_OK else { throw failure(status, of: errno) }
        if copied == length { logged.pointee = 0 }
        return copied == length
    }

    /// Sets how long a statement waits for another process, in milliseconds. With 0, the statement fails at once.
    func wait(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    /// Runs `body` as one write transaction. The write lock is acquired first, because upgrading a read lock later
    /// could fail. An error rolls the transaction back. If the file is read-only, SQLite uses a read transaction
    /// instead.
    func write<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        // Use a cached statement, because parsing it each time would cost as much as a look-up.
        try run("BEGIN IMMEDIATE")
        do throws(StoreError) {
            let result = try body()
            try run("COMMIT")
            return result
        } catch {
            // Some errors, such as a full disk, have already rolled the transaction back. A second error would hide the
            // first.
            if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }

    /// Runs a statement and passes each row to `goesOn` until `goesOn` returns false.
    private func step(
        _ sql: String, _ values: [SQLiteValue], _ goesOn: (SQLiteRow) -> Bool
    ) throws(StoreError) {
        let statement = try prepared(sql)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (offset, value) in values.enumerated() { try bind(value, at: Int32(offset + 1), of: statement) }
        while true {
            errno = 0
            let status = sqlite3_step(statement)
            if status == SQLITE_DONE { return }
            guard status == SQLITE_ROW else { throw failure(status, of: errno) }
            if !goesOn(SQLiteRow(statement: statement)) { return }
        }
    }

    private func prepared(_ sql: String) throws(StoreError) -> OpaquePointer {
        if let statement = statements[sql] { return statement }
        guard handle != nil else { throw StoreError(.closed, "the store is closed", path: path) }
        var statement: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        errno = 0
        let status = sqlite3_prepare_v3(handle, sql, -1, flags, &statement, nil)
        if status == SQLITE_ERROR {
            // All statements are fixed and correct, so an unknown name means that the schema is damaged.
            throw StoreError(.damaged, "the index is damaged: \(String(cString: sqlite3_errmsg(handle)))", path: path)
        }
        if status != SQLITE_OK { throw failure(status, of: errno) }
        guard let statement else { throw StoreError(.damaged, "empty statement", path: path) }
        statements[sql] = statement
        return statement
    }

    private func bind(_ value: SQLiteValue, at index: Int32, of statement: OpaquePointer) throws(StoreError) {
        // SQLITE_TRANSIENT: SQLite copies the bytes before the call returns.
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        let status: CInt
        switch value {
        case .integer(let number): status = sqlite3_bind_int64(statement, index, Int64(number))
        case .real(let number): status = sqlite3_bind_double(statement, index, number)
        case .null: status = sqlite3_bind_null(statement, index)
        case .text(let text):
            var text = text
            status = text.withUTF8 { bytes in
                bytes.withMemoryRebound(to: CChar.self) {
                    sqlite3_bind_text(statement, index, $0.baseAddress, Int32($0.count), transient)
                }
            }
        case .blob(let bytes):
            status =
                bytes.isEmpty
                ? sqlite3_bind_zeroblob(statement, index, 0)
                : bytes.withUnsafeBytes {
                    sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), transient)
                }
        case .digest(let key):
            status = key.withBytes {
                sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), transient)
            }
        }
        if status != SQLITE_OK { throw failure(status) }
    }

    /// Returns the error for a status.
    ///
    /// - Parameter number: the value of errno after the call. The caller must set it to 0 before the call.
    private func failure(_ status: CInt, of number: CInt = 0) -> StoreError {
        guard let handle else { return StoreError(.closed, "the store is closed", path: path) }
        let text = String(cString: sqlite3_errmsg(handle))
        let cause = sqlite3_system_errno(handle)
        switch status & 0xFF {
        case SQLITE_FULL: return StoreError(.full, "the file system is full; free some space", path: path)
        case SQLITE_IOERR where cause == ENOSPC || cause == EDQUOT:
            return StoreError(.full, "the file system is full; free some space", path: path)
        case SQLITE_IOERR where [2, 23].contains(status >> 8):
            // SQLITE_IOERR_SHORT_READ: the WAL does not match its shared memory. SQLITE_IOERR_DELETE_NOENT: another
            // process is replacing a damaged index with an empty one and has just deleted the old WAL.
            return StoreError(.damaged, "the index is damaged: \(text)", path: path)
        case SQLITE_READONLY where status >> 8 == 4:
            // SQLITE_READONLY_DBMOVED: another process has replaced this index.
            return StoreError(.damaged, "the index was replaced", path: path)
        case SQLITE_CORRUPT where [EIO, ENXIO].contains(number):
            // SQLite reports EIO during a read as corruption (SQLITE_IOERR_CORRUPTFS), but the file may be intact.
            return StoreError(.io, "the index cannot be read: \(String(cString: strerror(number)))", path: path)
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            return StoreError(.damaged, "the index is damaged: \(text)", path: path)
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL:
            return StoreError(.busy, "another process has locked the index: \(text)", path: path)
        case SQLITE_CANTOPEN, SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH:
            return StoreError(.unavailable, "the index cannot be opened for writing: \(text)", path: path)
        default:
            return StoreError(.io, "the index cannot be read or written: \(text) (SQLite code \(status))", path: path)
        }
    }
}
