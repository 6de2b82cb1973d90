package import PipelineSupport
import Glibc
import Synchronization
/// Stores originals, their records and their variants in a folder, within budgets in bytes.
///
/// One SQLite database contains the index and small bodies. Larger bodies are files named by digest
/// (docs/entry-format.md). Several stores, in one or several processes, may use one folder on a local file system.
/// Every call blocks for as long as its I/O takes, so use separate threads. Damage is never an error: a damaged entry
/// is deleted, counted and reported as a miss.
package final class DiskStore: Sendable {
    package let folder: String
    package let configuration: DiskStoreConfiguration
    let budgets: DiskBudgets
    private let state: Mutex<DiskIndex>
    let files: BodyFiles
    let generationPage: GenerationPage
    /// The tiers that were brought within their budgets since this store was opened.
    let broughtDown = Mutex<Set<DiskTable>>([])
    /// The read connections for look-ups.
    private let readers: IndexReaders
    /// Counters and accesses that look-ups have recorded and that are not stored yet.
    let notes: LookupNotes
    /// The thread that merges the notes if no writer has done so for a while. It starts on first use.
    private let merger = Mutex<OwnedThreads?>(nil)
    private let isMerging = Atomic<Bool>(false)
    /// The time until which the file system is assumed to have ample free space.
    let ampleUntil = Atomic<UInt64>(0)
    /// Measures the file system that holds the folder.
    let space: @Sendable (_ folder: String) -> FileSystemSpace?

    /// The number of times that this store set a damaged database aside as `cache.sqlite.damaged` and started an empty
    /// database.
    package var rebuilds: Int { notes.rebuilds.load(ordering: .relaxed) }

    /// A warning to log once if the stored entries are lost. Otherwise nil.
    var notice: String? {
        rebuilds == 0
            ? nil
            : "the cache index in \(folder) was damaged or written by an older version; it was renamed to "
                + "cache.sqlite.damaged and replaced with an empty index (`pipectl cache clear` removes the renamed file)"
    }

    /// Opens the cache in `folder`, creating the folder and the cache if they do not exist.
    ///
    /// - Throws: `.unavailable` if the folder cannot be created or opened; `.newerVersion` if a newer version of this
    ///   program wrote the cache, which is then left unchanged.
    package init(
        folder: String, configuration: DiskStoreConfiguration = DiskStoreConfiguration(),
        space: @escaping @Sendable (String) -> FileSystemSpace? = { FileSystemSpace(holding: $0) }
    ) throws(StoreError) {
        self.folder = folder
        self.space = space
        self.configuration = configuration
        notes = LookupNotes(limit: configuration.touchBatch)
        let index = try DiskIndex(folder: folder, configuration: configuration, notes: notes)
        files = index.files
        budgets = index.budgets
        readers = IndexReaders(path: index.path)
        generationPage = index.shared
        state = Mutex(index)
    }

    deinit { close() }

    /// Returns whether the caller must bring a tier within its budget. Returns true only once per tier.
    func takesDown(_ tier: DiskTable) -> Bool { broughtDown.withLock { $0.insert(tier).inserted } }

    /// Writes the counters and accesses recorded in memory, and closes the files. Later calls throw `.closed`.
    package func close() {
        readers.close()
        merger.withLock { $0.take() }?.stop()
        state.withLock { $0.close() }
    }

    /// Writes the counters and accesses recorded in memory to the index.
    package func flush() throws(StoreError) {
        try perform { index throws(StoreError) in try index.storeNotes() }
    }

    /// Runs `body` on the index under its lock. If the index is damaged, reopens it and repeats `body` once, because
    /// another process may be replacing it. If it is still damaged, repeats `body` on a new index. If another process
    /// is writing, retries for `busyMilliseconds` without holding the lock in between.
    func perform<Result: Sendable>(
        _ body: (DiskIndex) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        // An error rolls back the complete transaction. The caller that began it handles damage.
        if let batch = Self.batch, batch.owner == ObjectIdentifier(self) { return try body(batch.index) }
        var waited = 0
        while true {
            do throws(StoreError) {
                return try performOnce(body)
            } catch {
                guard error.code == .busy, waited < configuration.busyMilliseconds * 1_000 else { throw error }
                let pause = min(5_000, 500 + waited / 8)
                usleep(UInt32(pause))
                waited += pause
            }
        }
    }

    /// Runs a look-up on a read connection, so that it does not wait for writers. If that fails, or if this is called
    /// within `inOneTransaction`, runs the look-up on the write connection under the index's lock, which handles
    /// damage.
    ///
    /// - Parameters:
    ///   - tier: the tier for which a miss is counted if nothing is found.
    ///   - body: the look-up, which may run twice.
    func lookUp<Result: Sendable>(
        missing tier: DiskTable? = nil, _ body: (IndexView) throws(StoreError) -> Result?
    ) throws(StoreError) -> Result? {
        let found: Result?
        if Self.batch?.owner != ObjectIdentifier(self), let read = look(body) {
            found = read
        } else {
            found = try perform { index throws(StoreError) in
                try body(IndexView(connection: try index.connection, notes: notes, index: index))
            }
        }
        if found == nil, let tier { notes.note(tier) { $0.misses += 1 } }
        return found
    }

    /// Runs the look-up on a read connection. Returns nil if that fails. The caller must then acquire the index's lock.
    private func look<Result: Sendable>(_ body: (IndexView) throws(StoreError) -> Result?) -> Result?? {
        guard let reader = readers.take() else { return nil }
        let view = IndexView(connection: reader.connection, notes: notes, index: nil)
        do throws(StoreError) {
            let found = try body(view)
            readers.giveBack(reader)
            if notes.isDue { mergeNotes() }
            return .some(found)
        } catch {
            // The error is not reported here, because the caller repeats the look-up on the write connection, which
            // reports a lasting error.
            reader.connection.close()
            return nil
        }
    }

    /// Merges the notes into the index on a background thread.
    private func mergeNotes() {
        guard !isMerging.exchange(true, ordering: .acquiring) else { return }
        merger.withLock { threads in
            if threads == nil { threads = OwnedThreads(count: 1) }
            // The thread does not outlive the store, because `close()` joins it.
            threads?.submit { [unowned(unsafe) self] in
                // The error is not reported here, because the next write fails with the same error and reports it.
                try? flush()
                isMerging.store(false, ordering: .releasing)
            }
        }
    }

    private func performOnce<Result: Sendable>(
        _ body: (DiskIndex) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try state.withLock { index throws(StoreError) -> Result in
            try index.reopenIfReplaced()
            for isCertain in [false, true] {
                do throws(StoreError) {
                    return try body(index)
                } catch {
                    guard error.code == .damaged else { throw error }
                    try index.rebuild(isCertain: isCertain)
                }
            }
            return try body(index)
        }
    }

    // MARK: Storing together

    /// A transaction shared by several stores on one thread.
    private struct Batch: Sendable {
        var owner: ObjectIdentifier
        var index: DiskIndex
    }

    @TaskLocal private static var batch: Batch?
    /// The number of bytes that the stores in one transaction are assumed to need.
    private static let togetherBytes = 1 << 20

    /// Runs the stores in `body`, on the calling thread, as one transaction, in which either all of them succeed or
    /// none does. This costs about half as much as storing entries one by one.
    ///
    /// Other writers wait until the transaction has committed, so use it for a few small bodies. `body` may run twice
    /// if damage is found.
    ///
    /// - Throws: errors from `body`. Nothing is stored in that case.
    package func inOneTransaction(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        // Evict before the transaction begins, because evicted space is freed only by a commit.
        for tier in [DiskTable.originals, .variants] { try makeRoom(for: Self.togetherBytes, in: tier) }
        try perform { index throws(StoreError) in
            try index.write { _ throws(StoreError) in
                let batch = Batch(owner: ObjectIdentifier(self), index: index)
                let result = Self.$batch.withValue(batch) { Result { () throws(StoreError) in try body() } }
                try result.get()
            }
        }
    }

    // MARK: Bodies

    /// The result of a look-up, before the body is checked.
    struct UncheckedEntry: Sendable {
        var row: Int
        var digest: DigestKey
        /// The time that a hit saves, in milliseconds.
        var cost: Double
        var body: IndexTransaction.StoredBody
        /// The body, or nil if it is a file.
        var bytes: [UInt8]?
    }

    /// Returns the entry that `look` finds in a tier, with its body. Returns nil if `look` finds no entry, or finds a
    /// damaged entry, which is removed. The body is checked without holding the lock. Counts a hit or a miss.
    ///
    /// - Parameter longest: the size in bytes of the longest body to read into memory. A longer body is returned as an
    ///   open file.
    func found<Entry: Sendable>(
        in tier: DiskTable, longest: Int,
        _ look: (IndexView) throws(StoreError) -> (entry: Entry, located: UncheckedEntry)?
    ) throws(StoreError) -> (entry: Entry, body: EntryBody)? {
        for isLast in [false, true] {
            guard let found = try lookUp(missing: tier, look) else { return nil }
            do throws(StoreError) {
                if let body = try whole(found.located, longest: longest) {
                    notes.note(tier) {
                        $0.hits += 1
                        $0.bytesSaved += body.count
                        $0.millisecondsSaved += found.located.cost
                    }
                    notes.use(tier, row: found.located.row)
                    return (found.entry, body)
                }
            } catch {
                // A disk error is not damage, but the caller gets no body.
                notes.note(tier) { $0.misses += 1 }
                throw error
            }
            // Another process may have evicted or replaced the entry between the look-up and the read of its file.
            if try confirmedFault(of: found.located.row, in: tier, removes: true) != nil || isLast { break }
        }
        notes.note(tier) { $0.misses += 1 }
        return nil
    }

    /// Returns the body if its length and checksum match its row.
    func whole(_ located: UncheckedEntry, longest: Int) throws(StoreError) -> EntryBody? {
        let body = located.body
        let found: EntryBody?
        if !body.isFile {
            found = located.bytes.map(EntryBody.bytes)
        } else if body.length > longest {
            found = try files.opened(located.digest.text, length: body.length).map(EntryBody.file)
        } else {
            found = try files.read(located.digest.text, length: body.length).map(EntryBody.bytes)
        }
        guard let found, found.count == body.length else { return nil }
        guard let checksum = found.checksum(of: located.digest) else {
            throw StoreError(.io, "cannot read a body", path: files.path(located.digest.text))
        }
        return checksum == body.checksum ? found : nil
    }

    /// Stores a body together with what `insert` writes. Either both are stored or neither is.
    func storing<Result: Sendable>(
        _ digest: String, _ body: EntryBody?, tier: DiskTable,
        insert: (IndexTransaction, IncomingBody) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        guard let key = DigestKey(digest) else {
            throw StoreError(.invalid, "not a digest of 64 hexadecimal digits: \(digest.prefix(80))")
        }
        if Self.batch?.owner != ObjectIdentifier(self) {
            do throws(StoreError) {
                try makeRoom(for: body?.count ?? 0, in: tier)
            } catch {
                if error.code == .full { notes.note(tier) { $0.refused += 1 } }
                throw error
            }
        } else if let (free, floor) = freeSpace(), free - (body?.count ?? 0) < floor {
            // Space freed by eviction becomes available only at commit, so a batch that does not fit is retried entry
            // by entry.
            throw StoreError(.full, "not enough free space for a group of bodies", path: folder)
        }
        guard let incoming = IncomingBody(key: key, digest: digest, content: body) else {
            throw StoreError(
                .io,
                "a body of \(body?.count ?? 0) bytes cannot be stored, because it cannot be read back; check the disk for errors"
            )
        }
        defer { if let temporary = incoming.temporary { unlink(temporary) } }
        if let body, body.count > configuration.inlineLimit,
            DiskTable.charge(body: body.count) <= budgets[tier]
        {
            // The file is written before the write lock is acquired, unless the same bytes are already stored.
            let isStored = files.holds(digest, length: body.count)
            if !isStored { incoming.temporary = try files.writeTemporary(body, sync: configuration.fsync) }
        }
        return try perform { index throws(StoreError) in
            try index.write { transaction throws(StoreError) in try insert(transaction, incoming) }
        }
    }

    /// A body to store, and its temporary file if it has one.
    final class IncomingBody {
        let key: DigestKey
        let digest: String
        let content: EntryBody?
        let checksum: UInt32
        var temporary: String?

        /// Creates an incoming body. Returns nil if a file cannot be read.
        init?(key: DigestKey, digest: String, content: EntryBody?) {
            guard let checksum = content.map({ $0.checksum(of: key) }) ?? 0 else { return nil }
            self.key = key
            self.digest = digest
            self.content = content
            self.checksum = checksum
        }
    }
}
