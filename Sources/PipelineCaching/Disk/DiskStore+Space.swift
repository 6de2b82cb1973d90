import Glibc
import PipelineSupport
import Synchronization

extension FileSystemSpace {
    /// The default floor: 1 GB, or a twentieth of the file system if that is less, but at least 16 MB, because the WAL
    /// may take half of that before it is checkpointed.
    package var ordinaryFloor: Int { min(DiskStoreConfiguration.usualFreeSpace, max(16_000_000, total / 20)) }
}

extension DiskStore {
    /// The maximum number of eviction steps per store. The next store continues.
    private static let stepsForNewcomer = 16

    /// Returns the free space of the file system and how much of it the store must leave free, in bytes. Returns nil if
    /// `statvfs` fails.
    package func freeSpace() -> (free: Int, floor: Int)? {
        space(folder).map { ($0.free, configuration.freeSpace ?? $0.ordinaryFloor) }
    }

    /// Evicts entries until `count` more bytes can be written above the file system's floor, and fills the space
    /// reserve.
    ///
    /// - Throws: `.full` if that did not free enough space.
    func makeRoom(for count: Int, in tier: DiskTable) throws(StoreError) {
        try stepDown(tier)
        if count <= Self.smallBytes, SystemClock.coarseNanoseconds < ampleUntil.load(ordering: .relaxed) { return }
        if configuration.freeSpace != 0 { try keepFloor(for: count) }
        guard files.reserve.fill() else {
            throw refusal(
                "the file system is full: the cache cannot reserve the \(ReserveFile.bytes) bytes that it needs for deletions, "
                    + "and stores nothing until it can; free some space")
        }
        if let (free, floor) = freeSpace(), free - floor >= Self.ampleBytes {
            ampleUntil.store(SystemClock.coarseNanoseconds &+ Self.ampleLifetime, ordering: .relaxed)
        }
    }

    /// The amount of free space above the floor, in bytes, that is assumed to last for `ampleLifetime` nanoseconds. It
    /// is more than can be written in that time. Meanwhile, bodies of at most `smallBytes` are stored without a call to
    /// `statvfs`, which would add a tenth to the cost of storing them.
    private static let ampleBytes = 1_000_000_000
    private static let ampleLifetime: UInt64 = 50_000_000
    private static let smallBytes = 1 << 20

    private func keepFloor(for count: Int) throws(StoreError) {
        for step in 0..<Self.stepsForNewcomer {
            guard let (free, floor) = freeSpace(), free - count < floor else { return }
            if step == 0 {
                // A checkpoint of the WAL may free enough space.
                _ = try? perform { index throws(StoreError) in index.checkpoint(truncates: true) }
                continue
            }
            let missing = floor - free + count
            let evicted = try deleting { transaction, limit throws(StoreError) in
                let (originals, variants) = (transaction.tiers.originals.bytes, transaction.tiers.variants.bytes)
                let largest = originals > variants ? DiskTable.originals : .variants
                return try transaction.evict(
                    largest, entries: .max, bytes: max(originals, variants) - missing, atMost: limit)
            }
            guard evicted > 0 else { break }
            shrink(completely: true)
        }
        guard let (free, floor) = freeSpace(), free - count < floor else { return }
        throw refusal(
            "only \(free) bytes are free on the file system, but the cache must leave \(floor) free; free some space, or set "
                + "a smaller disk.freeSpace")
    }

    private func refusal(_ message: String) -> StoreError { StoreError(.full, message, path: folder) }

    /// Changes the budgets for bodies, and evicts entries that exceed them.
    func resize(originals: Int, variants: Int) throws(StoreError) {
        budgets.set(originals: originals, variants: variants)
        broughtDown.withLock { $0.removeAll() }
        for tier in [DiskTable.originals, .variants] { try stepDown(tier) }
    }

    /// Evicts entries until the tier is within a lowered budget. Runs once after the folder was opened or the budgets
    /// were changed, and in steps, not in the transaction that stores a new entry.
    private func stepDown(_ tier: DiskTable) throws(StoreError) {
        for tier in tier == .originals ? [DiskTable.originals, .records] : [tier] where takesDown(tier) {
            var hasEvicted = false
            // The condition is almost always false, and then nothing is written.
            while try perform({ index throws(StoreError) in try index.connection.counters()[tier].bytes })
                > budgets[tier]
            {
                let evicted = try deleting { transaction, limit throws(StoreError) in
                    try transaction.evict(tier, entries: .max, bytes: budgets[tier], atMost: limit)
                }
                if evicted == 0 { break }
                hasEvicted = true
                yieldToOthers()
            }
            if hasEvicted { shrink() }
        }
    }

    // MARK: Deleting

    /// The number of entries that are deleted per transaction, so that other processes can write in between.
    static let step = 512

    /// Runs a transaction that only deletes. If the file system has no room for its part of the WAL, releases the space
    /// reserve and retries with fewer entries.
    ///
    /// - Parameter body: deletes entries, given their maximum number: `limit` or fewer.
    func deleting<Result: Sendable>(
        atMost limit: Int = step, _ body: (IndexTransaction, _ limit: Int) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        // This limit applies if there is very little room for the WAL.
        let less = max(1, limit / 32)
        for attempt in 0...2 {
            do throws(StoreError) {
                let result = try perform { index throws(StoreError) in
                    try index.write { transaction throws(StoreError) in
                        try body(transaction, attempt == 0 ? limit : less)
                    }
                }
                // The rest of the space reserve is kept for other deletions.
                if files.reserve.isFilled { returnPages(completely: false) }
                return result
            } catch {
                guard error.code == .full else { throw error }
            }
            if attempt == 0 { _ = files.reserve.giveUp() }
            // A WAL that is checkpointed and reset needs no further room.
            if attempt == 1 { _ = try perform { index throws(StoreError) in index.checkpoint(truncates: false) } }
        }
        throw StoreError(
            .full, "the file system has no space to log a deletion; free some space, or clear the cache", path: folder)
    }

    /// Deletes files that no row refers to any more, returns unused pages of the index to the file system in steps, and
    /// fills the space reserve.
    ///
    /// - Parameter completely: whether to return even the unused pages that would be kept otherwise.
    func shrink(completely: Bool = false) {
        while (try? perform { index throws(StoreError) in index.deleteDiscarded() }) == true { yieldToOthers() }
        returnPages(completely: completely)
        _ = try? perform { index throws(StoreError) in
            // The checkpoint truncates the file by the returned pages. It also truncates the WAL, which may take the
            // space for the reserve.
            let isLonger = try index.isLongerThanItsPages()
            if isLonger || !files.reserve.fill() { index.checkpoint(truncates: true) }
        }
        files.reserve.fill()
    }

    /// Returns unused pages of the index to the file system if there are too many. Other processes can write between
    /// the steps. If an error occurs, the remaining pages stay in the index for reuse, and the next deletion tries
    /// again.
    private func returnPages(completely: Bool) {
        while (try? perform { index throws(StoreError) in try index.returnPages(completely: completely) }) == true {
            yieldToOthers()
        }
    }

    /// Pauses between two transactions, so that other processes, which poll for the write lock, can acquire it.
    func yieldToOthers() { usleep(1_000) }
}
