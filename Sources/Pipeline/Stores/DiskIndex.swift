import Glibc
import Synchronization

/// The index of one cache folder behind one connection, with what is noted in memory and not yet written.
///
/// @unchecked Sendable because `DiskStore` keeps it in a `Mutex`: one thread at a time calls any of it.
final class DiskIndex: @unchecked Sendable {
    let files: BodyFiles
    let pack: PackFile
    let configuration: DiskStoreConfiguration
    var policies: PerTier<any EvictionPolicy>
    let ghosts: PerTier<KeyFile>
    /// Which entry has a body, by its digest: for bytes that are there to be stored once.
    let holders: KeyFile
    /// Uses of rows since those were written, and those of them that are not in the file yet.
    let uses: UsesFile
    var notedUses = NotedUses()
    /// Counters since the last transaction, how often they were changed, and since when they wait.
    var noted = PerTier { _ in StoreCounters() }
    var notes = 0
    var countedSince = 0.0
    /// Of the write transaction under way: what the tiers hold, slots it freed, and whether it has given one away.
    var states = PerTier { _ in TierState() }
    var freed: [(place: Int, units: Int)] = []
    var known = Known()
    /// Small bodies that are not in their slots yet, and their bytes.
    var packed: [(place: Int, bytes: [UInt8])] = []
    var packedBytes = 0
    var hasPacked = false
    /// How many originals have lost their numbers.
    var forgotten = 0
    private(set) var isWriting = false
    /// The version of the index that `states` and `known` are of; nil when they may be of none.
    private var tiersVersion: UInt32?
    /// Pages in the log at which it is moved into the index.
    var logLimit = DiskSchema.logPages
    /// Marks of the bodies renamed in by the transaction that runs.
    var marks: [String] = []
    /// Whether files of an index that is gone are still to be deleted.
    var isSweeping = false
    private var writes = 0
    /// Whether the transaction under way takes in the writes that are made meanwhile.
    private var isTogether = false
    private var opened: SQLiteConnection?
    private var inode: UInt64 = 0
    private var place = PlaceCheck()
    private var isClosed = false
    /// The generation as other processes read it.
    let shared: GenerationPage
    private var hasPurged = false

    let rebuilds = RebuildCount()

    var path: String { "\(files.folder)/cache.sqlite" }

    init(folder: String, configuration: DiskStoreConfiguration, policy: any EvictionPolicy) throws(StoreError) {
        files = BodyFiles(folder: folder)
        pack = PackFile(folder: folder)
        ghosts = PerTier { KeyFile(path: "\(folder)/ghosts.\($0.rawValue)") }
        holders = KeyFile(path: "\(folder)/holders")
        uses = UsesFile(path: "\(folder)/uses")
        policies = PerTier { _ in policy }
        shared = GenerationPage(folder: folder)
        self.configuration = configuration
        try files.claim()
        let removed = files.removeFalseFolders()
        if removed > 0 { note(.originals) { $0.corrupt += removed } }
        do throws(StoreError) {
            try open()
        } catch {
            guard error.code == .damaged else { throw error }
            try rebuild()
        }
    }

    var connection: SQLiteConnection {
        get throws(StoreError) {
            guard let opened else { throw StoreError(.closed, "the store is closed", path: files.folder) }
            return opened
        }
    }

    static func now() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    // MARK: Opening, rebuilding

    private func open() throws(StoreError) {
        do throws(StoreError) {
            try openOnce()
        } catch {
            guard error.code == .full else { throw error }
            // Its shared memory takes some room too, and is made anew by who opens it first.
            try files.reserve.lent { () throws(StoreError) in try openOnce() }
        }
    }

    private func openOnce() throws(StoreError) {
        let (connection, isNew) = try connect()
        if isNew {
            let lock = try FolderLock(path: "\(files.folder)/rebuild.lock")
            defer { lock.unlock() }
            // Set aside by who had the lock: what is written to it now nobody would find.
            if connection.hasMoved { throw StoreError(.damaged, "the index was replaced", path: path) }
            try create(on: connection)
        }
        try adopt(connection)
    }

    /// Goes on with this connection.
    private func adopt(_ connection: SQLiteConnection) throws(StoreError) {
        try readTiers(connection)
        tiersVersion = nil
        pack.detach()
        detachTables()
        addUseFunctions(to: connection)
        isSweeping = try connection.first("SELECT 1 FROM state WHERE name = 'sweep'") { _ in true } ?? false
        opened = connection
        inode = currentInode()
        reclaim()
        files.reserve.take(looksInside: true)
        shareGeneration()
        // From now on whoever calls waits, without the lock that others need to look something up.
        connection.wait(milliseconds: 0)
        connection.countLog()
        logLimit = DiskSchema.logPages
    }

    /// Lets go of the files beside the index in which keys are looked up.
    private func detachTables() {
        for table in DiskTier.allCases.map({ ghosts[$0] }) + [holders, uses] { table.detach() }
    }

    /// Connects and looks at the version, before anything is written.
    private func connect() throws(StoreError) -> (SQLiteConnection, isNew: Bool) {
        // Made here for this user alone: SQLite gives its log and its shared memory the same mode. A file that is
        // there is not opened: closing it would release the locks this process holds on it through SQLite.
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if file >= 0 {
            Glibc.close(file)
        } else if errno != EEXIST {
            throw BodyFiles.failure("cannot open the cache", errno, path)
        }
        guard files.ownsDatabase() else {
            throw StoreError(.damaged, "the index is no file of this user", path: path)
        }
        // Somebody may have it open still: SQLite would wait for a lock that is never given up.
        if Self.size(path) == 0, Self.size("\(path)-wal") > 0 {
            throw StoreError(.damaged, "the index was cut off", path: path)
        }
        let connection = try SQLiteConnection(path: path, busyMilliseconds: Int32(configuration.busyMilliseconds))
        let isNew = try checkVersion(connection)
        try connection.execute(
            """
            PRAGMA mmap_size=0; PRAGMA trusted_schema=OFF; PRAGMA secure_delete=OFF; PRAGMA cache_size=-\(DiskSchema.cachedKilobytes);
            PRAGMA journal_size_limit=\(DiskSchema.logPages * 3 / 2 * DiskSchema.pageSize);
            PRAGMA synchronous=\(configuration.fsync ? "FULL" : "NORMAL");
            """)
        return (connection, isNew)
    }

    /// - Returns: whether the database is still empty.
    private func checkVersion(_ connection: SQLiteConnection) throws(StoreError) -> Bool {
        // In one statement: another process may be making the tables, and numbers of before and after would not agree.
        let found = try connection.first(
            """
            SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) \
            FROM pragma_user_version, pragma_application_id
            """
        ) { (version: $0.integer(0), application: $0.integer(1), tables: $0.integer(2)) }
        let (version, application) = (found?.version ?? 0, found?.application ?? 0)
        if version == 0, application == 0, found?.tables == 0 { return true }
        guard application == DiskSchema.applicationID else {
            throw StoreError(.unavailable, "this database belongs to another program; name another folder", path: path)
        }
        guard version <= DiskSchema.version else {
            throw StoreError(
                .newerVersion,
                "the cache has version \(version), this program knows versions up to \(DiskSchema.version): "
                    + "update the program or name another folder", path: path)
        }
        guard version == DiskSchema.version else {
            // Not migrated: the cache fills again.
            throw StoreError(
                .damaged, "the index has version \(version), which this program no longer reads", path: path)
        }
        return false
    }

    /// Makes the tables. The caller holds the folder lock; another process may have been first.
    private func create(on connection: SQLiteConnection) throws(StoreError) {
        guard try checkVersion(connection) else { return }
        writes += 1
        try connection.execute(
            "PRAGMA page_size=\(DiskSchema.pageSize); PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL")
        try connection.write { () throws(StoreError) in
            try connection.execute(DiskSchema.statements)
            // Bodies of an index that is gone: nothing names them any more.
            if files.hasBodies { try connection.run("INSERT INTO state VALUES ('sweep', 0)") }
            pack.discard()
            // In place of an index that other processes have read: what they hold of it counts as purged.
            if shared.attach() {
                try connection.run(
                    "UPDATE state SET value = ?1 WHERE name IN ('generation', 'floor')",
                    .integer(Int(truncatingIfNeeded: shared.value &+ 1)))
            }
            try connection.execute(
                """
                PRAGMA application_id=\(DiskSchema.applicationID); PRAGMA user_version=\(DiskSchema.version);
                """)
        }
    }

    /// Connects anew when another process has put a new database in the place of ours, when the folder has been
    /// deleted, and when the attempt before failed.
    func reopenIfReplaced() throws(StoreError) {
        // A transaction under way ends where it began.
        guard !isClosed, !isWriting, opened == nil || !place.finds(inode, at: path) else { return }
        opened?.close()
        opened = nil
        inode = 0
        forgetNotes()
        notedUses = NotedUses()
        try files.claim()
        do throws(StoreError) {
            try open()
        } catch {
            guard error.code == .damaged else { throw error }
            try rebuild()
        }
    }

    /// Sets a damaged database aside as `cache.sqlite.damaged` and starts an empty one, unless another process has.
    ///
    /// - Parameter isCertain: false keeps a database that seems sound when it is opened anew.
    func rebuild(isCertain: Bool = true) throws(StoreError) {
        do throws(StoreError) {
            try rebuildOnce(isCertain: isCertain)
        } catch {
            // What has been made, or found sound, a moment ago is not damaged by now: somebody opens it too.
            guard error.code == .damaged else { throw error }
            try rebuildOnce(isCertain: false)
        }
    }

    private func rebuildOnce(isCertain: Bool) throws(StoreError) {
        let before = inode
        opened?.close()
        opened = nil
        forgetNotes()
        notedUses = NotedUses()
        let lock = try FolderLock(path: "\(files.folder)/rebuild.lock")
        defer { lock.unlock() }
        if before == 0 || currentInode() == before {
            // Without an index so far, whoever held the lock before us may have repaired it.
            if !isCertain || before == 0, let (sound, isNew) = try soundConnection(), !isNew || before == 0 {
                // An empty one others may be waiting to make the tables of: it stays where they have it open.
                if isNew { try create(on: sound) }
                return try adopt(sound)
            }
            for suffix in ["", "-wal", "-shm"] { rename("\(path)\(suffix)", "\(path).damaged\(suffix)") }
        }
        let (connection, isNew) = try connect()
        if isNew {
            rebuilds.note()
            try create(on: connection)
            try connection.run("UPDATE tiers SET corrupt = corrupt + 1 WHERE name = 'records'")
        }
        try adopt(connection)
    }

    /// A connection when the database turns out to be whole, or to be empty; nil when it is damaged. The caller holds the
    /// folder lock.
    private func soundConnection() throws(StoreError) -> (SQLiteConnection, isNew: Bool)? {
        // Others that open it may take a log away that it does without, just as this one looks at it.
        for _ in 0..<3 {
            do throws(StoreError) {
                let (connection, isNew) = try connect()
                if !isNew { try connection.probe() }
                return (connection, isNew)
            } catch {
                guard error.code == .damaged else { throw error }
            }
        }
        return nil
    }

    /// Writes what is noted and closes. Nothing works afterwards.
    func close() {
        // Losing the last notes costs a few counts and no entry.
        opened?.wait(milliseconds: Int32(configuration.busyMilliseconds))
        let hasStored = writes > 0
        if opened != nil { try? flush() }
        isClosed = true
        // Moving counts alone into the index, which waits for the disk three times, is left to who stores something, or
        // comes when they have become many.
        if !hasStored, !configuration.fsync, Self.size("\(path)-wal") <= DiskSchema.keptLogBytes { opened?.keepLog() }
        // On a full file system the log's blocks are room that nobody else can take; closing would cut them off.
        if !files.reserve.isWhole { try? opened?.execute("PRAGMA journal_size_limit=-1") }
        opened?.close()
        opened = nil
        detachTables()
    }

    static func size(_ path: String) -> Int {
        var info = stat()
        return stat(path, &info) == 0 ? Int(info.st_size) : 0
    }

    private func currentInode() -> UInt64 {
        var info = stat()
        return stat(path, &info) == 0 ? UInt64(info.st_ino) : 0
    }

    // MARK: Transactions

    /// One write transaction; what it leaves without references is deleted from the folder after it commits.
    func write<Result>(
        _ body: (SQLiteConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        if !isTogether, shared.isReplaced(looks: false) { shareGeneration() }
        let connection = try connection
        if isTogether { return try body(connection) }
        defer {
            hasPurged = false
            isWriting = false
            notedUses.settled = [:]
            (freed, packed, packedBytes, hasPacked) = ([], [], 0, false)
        }
        let result: Result
        do throws(StoreError) {
            result = try connection.write { () throws(StoreError) in
                // What has been read before holds until anybody has changed anything.
                if tiersVersion == nil || tiersVersion != connection.dataVersion {
                    try readTiers(connection)
                    holders.forget()
                }
                tiersVersion = nil
                uses.forget()
                isWriting = true
                let result = try body(connection)
                try closeSlots()
                try writeTiers(connection)
                // Last, and before it commits: who reads the new number finds the purge, or waits for it.
                if hasPurged {
                    if shared.isReplaced(), !shared.attach() { try shared.create(try generation(), in: files) }
                    try shared.write(try generation())
                }
                return result
            }
        } catch {
            // What was renamed in and not committed goes by its mark, now or, when that fails too, later.
            if !marks.isEmpty { reclaim() }
            marks = []
            throw error
        }
        tiersVersion = connection.dataVersion
        for mark in marks { unlink(mark) }
        marks = []
        forgetNotes()
        forgetSettled()
        if known.hasDiscarded { sweepDiscarded() }
        if isSweeping { sweep() }
        shortenLog(connection)
        writes += 1
        if writes % 64 == 0 { reclaim() }
        return result
    }

    /// Moves the log into the index when it has become long. SQLite would do so after every commit for as long as somebody
    /// reads in it, each time waiting for the disk: here who reads is waited for, and where that does not help the next
    /// attempt comes when the log is half as long again.
    private func shortenLog(_ connection: SQLiteConnection) {
        let pages = connection.pagesInLog
        if pages < logLimit {
            if pages < DiskSchema.logPages { logLimit = DiskSchema.logPages }
            return
        }
        logLimit = connection.restartLog(waiting: 20) ? DiskSchema.logPages : pages + DiskSchema.logPages / 2
    }

    /// One transaction for all writes that `body` makes.
    func writeTogether(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try write { _ throws(StoreError) in
            isTogether = true
            defer { isTogether = false }
            try body()
        }
    }

    /// Begins the next generation, inside a write transaction that purges.
    func nextGeneration() throws(StoreError) -> UInt64 {
        try connection.run("UPDATE state SET value = value + 1 WHERE name = 'generation'")
        hasPurged = true
        return try generation()
    }

    /// Brings the shared number to what the index says, making its file where there is none. It is ahead after a process
    /// was killed between telling of a purge and committing it. Failing costs no more than that memory learns of others'
    /// purges later, when it looks on the disk.
    func shareGeneration() {
        guard let connection = opened else { return }
        if !shared.isReplaced() || shared.attach(), let now = try? generation(), shared.value == now { return }
        try? connection.write { () throws(StoreError) in
            let now = try generation()
            if shared.isReplaced(), !shared.attach() { return try shared.create(now, in: files) }
            if shared.value != now { try shared.write(now) }
        }
    }

    /// Deletes body files that lost their last reference, under the write lock so that nobody takes them up meanwhile.
    /// The rows that name them survive a kill and a full disk; the next write tries again.
    private func sweepDiscarded() {
        guard let connection = opened else { return }
        while true {
            let waiting = try? connection.first("SELECT 1 FROM discarded LIMIT 1") { _ in true }
            guard waiting == true else { return }
            // Nothing is lost when this fails: the names stay.
            let swept: Void? = try? connection.write { () throws(StoreError) in
                let digests = try connection.rows("SELECT digest FROM discarded LIMIT 256") { $0.text(0) }
                for digest in digests {
                    files.remove(digest)
                    try connection.run("DELETE FROM discarded WHERE digest = ?1", .text(digest))
                }
            }
            guard swept != nil else { return }
        }
    }

    /// Pages of the index that hold nothing.
    func unusedPages() throws(StoreError) -> Int {
        try connection.first("PRAGMA freelist_count") { $0.count(0) } ?? 0
    }

    /// Gives at most so many unused pages back to the file system, in a transaction of its own.
    func shrink(pages: Int) throws(StoreError) {
        _ = try connection.rows("PRAGMA incremental_vacuum(\(pages))") { _ in }
    }

    /// Moves what the log holds into the index as far as nobody reads what was before; a file that has fewer pages now
    /// gets shorter with it.
    func checkpoint() throws(StoreError) {
        _ = try connection.rows("PRAGMA wal_checkpoint(PASSIVE)") { _ in }
    }

    /// Moves what the log holds into the index, and gives the log's space back.
    func emptyLog() throws(StoreError) {
        _ = try connection.rows("PRAGMA wal_checkpoint(TRUNCATE)") { _ in }
    }
}

extension SQLiteConnection {
    /// Reads a little of each of the tables that matter, to tell a sound index from a damaged one.
    fileprivate func probe() throws(StoreError) {
        for table in ["tiers", "digests", "records", "originals", "variants"] {
            _ = try first("SELECT * FROM \(table) LIMIT 1") { _ in }
        }
    }
}

/// How often a damaged database was set aside; read without the store's lock.
final class RebuildCount: Sendable {
    private let count = Atomic<Int>(0)

    var value: Int { count.load(ordering: .relaxed) }

    func note() { count.add(1, ordering: .relaxed) }
}
