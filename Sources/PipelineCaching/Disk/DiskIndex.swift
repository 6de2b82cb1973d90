import PipelineSupport
import Glibc
import Synchronization

/// The index of one cache folder: its write connection, opening, rebuilding and write transactions.
///
/// `@unchecked Sendable` because `DiskStore` keeps it in a `Mutex`, so only one thread at a time calls it.
final class DiskIndex: @unchecked Sendable {
    let files: BodyFiles
    let configuration: DiskStoreConfiguration
    /// The current budgets, which may change.
    let budgets: DiskBudgets
    let notes: LookupNotes
    /// The eviction policies, with their clocks after the last transaction.
    var policies = PerTier { _ in GreedyDualSizeFrequency() }
    /// The file from which other processes read the generation.
    let shared: GenerationPage
    /// Whether bodies of a former index still need to be deleted.
    private(set) var isSweeping = false
    /// The tiers whose sums were recomputed because they exceeded the budget.
    var recounted: Set<DiskTable> = []
    private(set) var writes = 0
    /// The current transaction. Nested calls to `write` join it.
    private var current: IndexTransaction?
    private var opened: SQLiteConnection?
    private var inode: UInt64 = 0
    private var isClosed = false
    /// The number of pages in the WAL at which it is checkpointed.
    private var logLimit = DiskSchema.logPages
    /// The checkpoint lock, or nil if the SQLite library does not need it.
    private let checkpoints: CheckpointLock?

    var path: String { "\(files.folder)/cache.sqlite" }

    init(
        folder: String, configuration: DiskStoreConfiguration, notes: LookupNotes
    ) throws(StoreError) {
        files = BodyFiles(folder: folder)
        shared = GenerationPage(folder: folder)
        self.configuration = configuration
        budgets = DiskBudgets(configuration)
        self.notes = notes
        try files.claim()
        checkpoints = SQLiteConnection.hasResetBug ? CheckpointLock(path: "\(folder)/rebuild.lock") : nil
        try openOrRebuild()
    }

    var connection: SQLiteConnection {
        get throws(StoreError) {
            guard let opened else { throw StoreError(.closed, "the store is closed", path: files.folder) }
            return opened
        }
    }

    // MARK: Opening

    private func openOrRebuild() throws(StoreError) {
        do throws(StoreError) {
            try open()
        } catch {
            guard error.code == .damaged else { throw error }
            try rebuild()
        }
    }

    private func open() throws(StoreError) {
        let (connection, isNew) = try connect()
        if isNew {
            let lock = try FolderLock(path: "\(files.folder)/rebuild.lock")
            defer { lock.unlock() }
            // The previous lock holder may have renamed this database. Writes to it would be lost.
            if connection.hasMoved { throw StoreError(.damaged, "the index was replaced", path: path) }
            try create(on: connection)
        }
        try adopt(connection)
    }

    /// Makes this connection the write connection.
    private func adopt(_ connection: SQLiteConnection) throws(StoreError) {
        isSweeping = try connection.first("SELECT 1 FROM state WHERE name = 'sweep'") { _ in true } ?? false
        opened = connection
        inode = currentInode()
        reclaim()
        files.reserve.fill()
        shareGeneration()
        // From now on, `DiskStore.perform` waits for other processes, without holding the lock.
        connection.wait(milliseconds: 0)
        connection.countLog()
        logLimit = DiskSchema.logPages
    }

    /// Connects, and checks the version before writing anything.
    private func connect() throws(StoreError) -> (SQLiteConnection, isNew: Bool) {
        guard files.ownsDatabase() else {
            throw StoreError(.damaged, "the index is not a regular file owned by this user", path: path)
        }
        // Another process may still have the database open. SQLite would then wait for a lock that is never released.
        if Self.size(path) == 0, Self.size("\(path)-wal") > 0 {
            throw StoreError(.damaged, "the index was truncated", path: path)
        }
        let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(configuration.busyMilliseconds))
        // SQLite has created the database, but not yet its other files, which get the same mode.
        _ = files.ownsDatabase()
        if checkpoints != nil { connection.keepLog() }
        let isNew = try checkVersion(connection)
        // SQLite finds the WAL by the database's name, so it would open the WAL of the database's replacement.
        if connection.hasMoved { throw StoreError(.damaged, "the index was replaced", path: path) }
        try connection.execute(
            """
            PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA secure_delete=OFF; \
            PRAGMA cache_size=-\(DiskSchema.cachedKilobytes); \
            PRAGMA journal_size_limit=\(DiskSchema.logPages * 3 / 2 * DiskSchema.pageSize); \
            PRAGMA synchronous=\(configuration.fsync ? "FULL" : "NORMAL");
            """)
        return (connection, isNew)
    }

    /// Creates the tables. The caller holds the folder lock. Another process may already have created them.
    ///
    /// - Parameters:
    ///   - generation: the minimum for the first generation. If this is 0 and no `generation` file exists, the first
    ///     generation is the time in milliseconds, so that an index in a new folder does not repeat the generations of
    ///     a deleted index.
    ///   - counters: event counters to keep.
    ///   - texts: strings to keep.
    private func create(
        on connection: SQLiteConnection, generation: UInt64 = 0, counters: PerTier<StoreCounters>? = nil,
        texts: [(String, String)] = []
    ) throws(StoreError) {
        guard try checkVersion(connection) else { return }
        writes += 1
        try connection.execute(
            "PRAGMA page_size=\(DiskSchema.pageSize); PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL")
        try connection.write { () throws(StoreError) in
            try connection.execute(DiskSchema.statements)
            // The bodies of a former index are orphaned now.
            if files.hasBodies { try connection.run("INSERT INTO state VALUES ('sweep', 0)") }
            // The generation is higher than the former index's, so that processes that have read the former generation
            // treat all their entries as purged.
            var first = generation
            if shared.attach(), shared.value < Self.generationLimit { first = max(first, shared.value + 1) }
            if first > 0 {
                try connection.run("UPDATE state SET value = ?1 WHERE name = 'floor'", .integer(Int(first)))
            }
            if first == 0 { first = UInt64(SystemClock.unix.seconds * 1_000) }
            try connection.run("UPDATE state SET value = ?1 WHERE name = 'generation'", .integer(Int(first)))
            // If this fails, `shareGeneration` tries again in another transaction.
            try? announce(first)
            for tier in DiskTable.allCases { if let counters { try connection.add(counters[tier], to: tier) } }
            for (name, text) in texts { try connection.store(text, named: name) }
            try connection.execute(
                """
                PRAGMA application_id=\(DiskSchema.applicationID); PRAGMA user_version=\(DiskSchema.version);
                """)
        }
        if configuration.fsync { try BodyFiles.syncFolder(files.folder) }
    }

    /// Reopens the database if another process replaced it, if the folder was deleted, or if the previous attempt
    /// failed.
    func reopenIfReplaced() throws(StoreError) {
        // A transaction in progress finishes on the database that it began with.
        guard !isClosed, current == nil, opened == nil || currentInode() != inode else { return }
        disconnect()
        inode = 0
        try files.claim()
        try openOrRebuild()
    }

    private func disconnect() {
        opened?.close()
        opened = nil
        notes.dropAccesses()
    }

    // MARK: Rebuilding

    /// Renames a damaged database to `cache.sqlite.damaged` and creates an empty database, unless another process has
    /// already done so.
    ///
    /// - Parameter isCertain: whether the damage is certain. If false, a database that is intact when it is reopened is
    ///   kept.
    func rebuild(isCertain: Bool = true) throws(StoreError) {
        do throws(StoreError) {
            try rebuildOnce(isCertain: isCertain)
        } catch {
            // Another process may be opening the same new database, so check again before renaming it.
            guard error.code == .damaged else { throw error }
            try rebuildOnce(isCertain: false)
        }
    }

    private func rebuildOnce(isCertain: Bool) throws(StoreError) {
        let before = inode
        disconnect()
        let lock = try FolderLock(path: "\(files.folder)/rebuild.lock")
        defer { lock.unlock() }
        if before == 0 || currentInode() == before {
            // If there was no index before, the previous lock holder may have repaired it.
            if !isCertain || before == 0, let (sound, isNew) = try soundConnection(), !isNew || before == 0 {
                // Other processes may have it open and be waiting to create its tables, so it stays in place.
                if isNew { try create(on: sound) }
                return try adopt(sound)
            }
            for suffix in ["", "-wal", "-shm"] { rename("\(path)\(suffix)", "\(path).damaged\(suffix)") }
            files.removeFormer()
        }
        let (connection, isNew) = try connect()
        if isNew {
            notes.rebuilds.add(1, ordering: .relaxed)
            try create(on: connection)
            try connection.run("UPDATE tiers SET corrupt = corrupt + 1 WHERE name = 'records'")
        }
        try adopt(connection)
    }

    /// Returns a connection if the database is intact or empty, or nil if it is damaged. The caller holds the folder
    /// lock.
    private func soundConnection() throws(StoreError) -> (SQLiteConnection, isNew: Bool)? {
        // Another process that opens the database may delete an unneeded WAL during the check.
        for _ in 0..<3 {
            do throws(StoreError) {
                let (connection, isNew) = try connect()
                if !isNew {
                    for table in DiskSchema.tables {
                        _ = try connection.first("SELECT * FROM \(table) LIMIT 1") { _ in }
                    }
                }
                return (connection, isNew)
            } catch {
                guard error.code == .damaged else { throw error }
            }
        }
        return nil
    }

    /// Replaces the database with an empty one and unlinks the old database. This needs no free space. Event counters
    /// and strings are kept.
    ///
    /// - Returns: the counters, including the previous contents of the tiers.
    func replace() throws(StoreError) -> PerTier<StoreCounters> {
        let lock = try FolderLock(path: "\(files.folder)/rebuild.lock")
        defer { lock.unlock() }
        let connection = try connection
        // The write lock prevents commits by other processes in the meantime. The next transaction of each process
        // finds the database unlinked and fails before it writes.
        let (counters, generation, texts) = try connection.write { () throws(StoreError) in
            if connection.hasMoved { throw StoreError(.damaged, "the index was replaced", path: path) }
            let found = (try connection.counters(), try connection.generation() + 1, try connection.texts())
            for suffix in ["", "-wal", "-shm"] { unlink("\(path)\(suffix)") }
            return found
        }
        disconnect()
        files.removeFormer()
        let (new, isNew) = try connect()
        if isNew { try create(on: new, generation: generation, counters: counters, texts: texts) }
        try adopt(new)
        return counters
    }

    /// Stores the recorded counters and accesses, and closes the index. Every later call throws `.closed`.
    func close() {
        opened?.wait(milliseconds: Int32(configuration.busyMilliseconds))
        let hasStored = writes > 0
        // If this fails, some counts and access times are lost, but no entries.
        if opened != nil { try? storeNotes() }
        isClosed = true
        guard let opened else { return }
        // A process that stored nothing leaves a short WAL to the next process, because a checkpoint waits for the
        // disk.
        if !hasStored, !configuration.fsync, Self.size("\(path)-wal") <= DiskSchema.keptLogBytes {
            opened.keepLog()
        } else if checkpoints != nil {
            // This checkpoint replaces the one that SQLite performs when it closes the last connection.
            opened.wait(milliseconds: 0)
            checkpoint(truncates: true)
        }
        opened.close()
        self.opened = nil
    }

    static func size(_ path: String) -> Int {
        var info = stat()
        return stat(path, &info) == 0 ? Int(info.st_size) : 0
    }

    private func currentInode() -> UInt64 {
        var info = stat()
        return lstat(path, &info) == 0 ? UInt64(info.st_ino) : 0
    }

    // MARK: Transactions

    /// Runs a write transaction, or joins the current one. After the commit, deletes files that no row refers to any
    /// more.
    func write<Result>(_ body: (IndexTransaction) throws(StoreError) -> Result) throws(StoreError) -> Result {
        if let current { return try body(current) }
        let transaction = IndexTransaction(self, try connection)
        let counters = notes.takeCounters()
        defer { current = nil }
        let result: Result
        do throws(StoreError) {
            result = try maintain { _ throws(StoreError) in
                try transaction.begin()
                current = transaction
                let result = try body(transaction)
                try transaction.finish(counters)
                return result
            }
        } catch {
            notes.add(counters)
            // Files that were renamed but not committed are deleted through their intent files, now or later.
            current = nil
            if !transaction.intents.isEmpty { reclaim() }
            throw error
        }
        current = nil
        policies = transaction.policies
        notes.update(policies)
        for intent in transaction.intents { unlink(intent) }
        if transaction.hasDiscarded { deleteDiscarded() }
        if isSweeping { sweep() }
        writes += 1
        if writes % 64 == 0 { reclaim() }
        shortenLog(transaction.connection)
        return result
    }

    /// Runs housekeeping in a transaction that neither counts nor evicts anything.
    func maintain<Result>(_ body: (SQLiteConnection) throws(StoreError) -> Result) throws(StoreError) -> Result {
        let connection = try connection
        if current != nil { return try body(connection) }
        guard checkpoints?.lock(exclusively: false) != false else {
            throw StoreError(.busy, "another process is checkpointing the index", path: path)
        }
        defer { checkpoints?.unlock() }
        return try connection.write { () throws(StoreError) in
            // Another process may have replaced the database before this process acquired the write lock.
            if connection.hasMoved { throw StoreError(.damaged, "the index was replaced", path: path) }
            return try body(connection)
        }
    }

    /// The number of rows per transaction when accesses are stored.
    private static let rowsAtOnce = 512

    /// Stores the recorded counters and accesses. If that fails, they stay in memory.
    func storeNotes() throws(StoreError) {
        var due = notes.takeAccesses()[...]
        let counters = notes.counters
        if due.isEmpty, DiskTable.allCases.allSatisfy({ counters[$0] == StoreCounters() }) { return }
        repeat {
            let step = due.prefix(Self.rowsAtOnce)
            do throws(StoreError) {
                try write { transaction throws(StoreError) in
                    for (row, access) in step { try transaction.store(access, of: row) }
                }
            } catch {
                notes.add(due)
                throw error
            }
            due = due.dropFirst(step.count)
        } while !due.isEmpty
    }

    // MARK: WAL

    /// Checkpoints the WAL if it is long. If readers block part of it, retries after `logPages / 2` more pages.
    func shortenLog(_ connection: SQLiteConnection) {
        let pages = connection.pagesInLog
        guard pages >= logLimit else { return }
        logLimit = checkpoint(truncates: false) ? DiskSchema.logPages : pages + DiskSchema.logPages / 2
    }

    /// Copies the WAL into the database. Returns whether all of it was copied. Failures are not reported, because the
    /// WAL stays, and the next attempt reports them if they matter.
    @discardableResult
    func checkpoint(truncates: Bool) -> Bool {
        guard let opened, current == nil, checkpoints?.lock(exclusively: true) != false else { return false }
        defer { checkpoints?.unlock() }
        return (try? opened.checkpoint(truncates: truncates)) ?? false
    }

    // MARK: Generations

    /// The lowest generation that is treated as damage, because wrong high bits would otherwise freeze the counter.
    static let generationLimit: UInt64 = 1 << 62

    /// Sets the shared generation to the index's generation, and creates its file if it is missing. The file is ahead
    /// if a process was killed between announcing a purge and committing it. Failures are not reported, because their
    /// only effect is that a process learns of other processes' purges later, when it reads the index.
    func shareGeneration() {
        guard opened != nil else { return }
        if !shared.isReplaced || shared.attach(), let now = try? connection.generation(), shared.value == now { return }
        try? maintain { connection throws(StoreError) in try announce(try connection.generation()) }
    }

    /// Announces a generation to all processes. The caller holds the write lock.
    func announce(_ generation: UInt64) throws(StoreError) {
        if shared.isReplaced, !shared.attach() { return try shared.create(generation, in: files) }
        if shared.value != generation { try shared.write(generation) }
    }

    // MARK: Deleting files

    /// The number of files deleted per transaction, so that other processes can write in between.
    private static let filesAtOnce = 64

    /// Deletes some of the body files that no row refers to any more. This happens under the write lock, so that no
    /// process reuses the files in the meantime. If the process is killed or the disk is full, the names stay in the
    /// index, and the next write tries again.
    ///
    /// - Returns: whether more files remain.
    @discardableResult
    func deleteDiscarded() -> Bool {
        let count = try? maintain { connection throws(StoreError) in
            let digests = try connection.rows("SELECT digest FROM discarded LIMIT \(Self.filesAtOnce)") {
                $0.digestKey(0)
            }
            for digest in digests {
                if let digest { files.remove(digest.text) }
                try connection.run("DELETE FROM discarded WHERE digest = ?1", digest.map { .digest($0) } ?? .null)
            }
            return digests.count
        }
        return count == Self.filesAtOnce
    }

    /// Deletes bodies of processes that terminated between rename and commit, and abandoned temporary files.
    func reclaim() {
        for path in files.abandoned(after: configuration.graceSeconds) { unlink(path) }
        guard !files.intents().isEmpty else { return }
        try? maintain { connection throws(StoreError) in
            // List them again under the write lock, because then every process that created one of them has committed
            // or terminated.
            for intent in files.intents() {
                if try !connection.isNamed(intent.digest) { files.remove(intent.digest) }
                unlink(intent.path)
            }
        }
    }

    /// The number of files examined per step of `sweep`.
    private static let sweepStep = 256

    /// Garbage-collects some of the bodies of a former index. A row of `state` stores the position.
    ///
    /// - Returns: false if this failed.
    @discardableResult
    func sweep() -> Bool {
        let isDone = try? maintain { connection throws(StoreError) in
            guard var at = try connection.first("SELECT value FROM state WHERE name = 'sweep'", read: { $0.count(0) })
            else { return true }
            var examined = 0
            while at < BodyFiles.prefixes.count, examined < Self.sweepStep {
                for digest in files.bodies(in: BodyFiles.prefixes[at]) {
                    examined += 1
                    if try !connection.isNamed(digest) { files.remove(digest) }
                }
                at += 1
            }
            if at < BodyFiles.prefixes.count {
                try connection.run("UPDATE state SET value = ?1 WHERE name = 'sweep'", .integer(at))
                return false
            }
            try connection.run("DELETE FROM state WHERE name = 'sweep'")
            return true
        }
        if isDone == true { isSweeping = false }
        return isDone != nil
    }
}
