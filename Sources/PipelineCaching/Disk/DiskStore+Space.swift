import Glibc
import PipelineSupport
import Synchronization

extension FileSystemSpace {
    /// The default floor: a gigabyte, or a twentieth of the file system if that is less; 16 MB at least, because the
    /// WAL may take half of that before it is checkpointed.
    package var ordinaryFloor: Int { min(DiskStoreConfiguration.usualFreeSpace, max(16_000_000, total / 20)) }
}

extension DiskStore {
    /// The maximum number of eviction steps in one store; the next one continues.
    private static let stepsForNewcomer = 16

    /// The free space of the file system, and how much of it the store must leave, in bytes; nil if `statvfs` fails.
    package func freeSpace() -> (free: Int, floor: Int)? {
        space(folder).map { ($0.free, configuration.freeSpace ?? $0.ordinaryFloor) }
    }

    /// Evicts until `count` more bytes can be written above the file system's floor, and fills the space reserve.
    ///
    /// - Throws: `.full` if that did not free enough.
    func makeRoom(for count: Int, in tier: DiskTable) throws(StoreError) {
        try stepDown(tier)
        if count <= Self.smallBytes, SystemClock.coarseNanoseconds < ampleUntil.load(ordering: .relaxed) { return }
        if configuration.freeSpace != 0 { try keepFloor(for: count) }
        guard files.reserve.fill() else {
            throw refusal(
                "the file system is full: the cache cannot reserve the \(ReserveFile.bytes) bytes it needs for deletions "
                    + "and stores nothing until it can. Free some space")
        }
        if let (free, floor) = freeSpace(), free - floor >= Self.ampleBytes {
            ampleUntil.store(SystemClock.coarseNanoseconds &+ Self.ampleLifetime, ordering: .relaxed)
        }
    }

    /// If `ampleBytes` are free above the floor, more than is ever written within `ampleLifetime` (nanoseconds), bodies
    /// of at most `smallBytes` are stored without a `statvfs` each time, which would cost a tenth of storing them.
    private static let ampleBytes = 1_000_000_000
    private static let ampleLifetime: UInt64 = 50_000_000
    private static let smallBytes = 1 << 20

    private func keepFloor(for count: Int) throws(StoreError) {
        for step in 0..<Self.stepsForNewcomer {
            guard let (free, floor) = freeSpace(), free - count < floor else { return }
            if step == 0 {
                // Checkpointing the WAL may free enough.
                _ = try? perform { index throws(StoreError) in index.checkpoint(truncates: true) }
                continue
            }
            let missing = floor - free + count
            let evicted = try deleting { index, limit throws(StoreError) in
                try index.write { transaction throws(StoreError) in
                    let (originals, variants) = (transaction.tiers.originals.bytes, transaction.tiers.variants.bytes)
                    let largest = originals > variants ? DiskTable.originals : .variants
                    return try transaction.evict(
                        largest, entries: .max, bytes: max(originals, variants) - missing, atMost: limit)
                }
            }
            guard evicted > 0 else { break }
            shrink(completely: true)
        }
        guard let (free, floor) = freeSpace(), free - count < floor else { return }
        throw refusal(
            "the file system has \(free) bytes left, and the cache must leave \(floor) free: free some space, or set "
                + "a lower floor")
    }

    private func refusal(_ message: String) -> StoreError { StoreError(.full, message, path: folder) }

    /// Changes the budgets of bodies, and evicts what exceeds them.
    func resize(originals: Int, variants: Int) throws(StoreError) {
        budgets.set(originals: originals, variants: variants)
        broughtDown.withLock { $0.removeAll() }
        for tier in [DiskTable.originals, .variants] { try stepDown(tier) }
    }

    /// Evicts, once after opening, what exceeds a lowered budget: in steps, not in a newcomer's transaction.
    private func stepDown(_ tier: DiskTable) throws(StoreError) {
        for tier in tier == .originals ? [DiskTable.originals, .records] : [tier] where takesDown(tier) {
            var hasEvicted = false
            while try evictStep(tier, entries: .max, bytes: budgets[tier]) > 0 { hasEvicted = true }
            if hasEvicted { shrink() }
        }
    }

    /// Evicts some of what exceeds these bounds; returns the number of entries evicted.
    func evictStep(_ tier: DiskTable, entries: Int, bytes: Int) throws(StoreError) -> Int {
        let evicted = try deleting { index, limit throws(StoreError) in
            try index.write { transaction throws(StoreError) in
                try transaction.evict(tier, entries: entries, bytes: bytes, atMost: limit)
            }
        }
        if evicted > 0 { yieldToOthers() }
        return evicted
    }

    // MARK: Deleting

    /// The number of entries deleted in one transaction; other processes can write in between.
    static let step = 512

    /// Runs a transaction that only deletes. If the file system has no room for its part of the WAL, releases the space
    /// reserve and retries with fewer entries.
    ///
    /// - Parameter body: is passed the maximum number of entries to delete: `limit`, or fewer.
    func deleting<Result: Sendable>(
        atMost limit: Int = step, _ body: (_ index: DiskIndex, _ limit: Int) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        // For when there is hardly any room for the WAL.
        let less = max(1, limit / 32)
        for attempt in 0...2 {
            do throws(StoreError) {
                let result = try perform { index throws(StoreError) in try body(index, attempt == 0 ? limit : less) }
                // What is left of the space reserve is for deletions.
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
            .full, "the file system has no room to log a deletion: free some space, or clear the cache", path: folder)
    }

    /// Deletes files that lost their last row, returns unused pages of the index to the file system, in steps, and
    /// fills the space reserve.
    ///
    /// - Parameter completely: whether to return the unused pages that may stay, too.
    func shrink(completely: Bool = false) {
        while (try? perform { index throws(StoreError) in index.deleteDiscarded() }) == true { yieldToOthers() }
        returnPages(completely: completely)
        _ = try? perform { index throws(StoreError) in
            // The checkpoint truncates the file by the pages that were returned, and the WAL, which may be in the way of
            // the space reserve.
            let isLonger = try index.isLongerThanItsPages()
            if isLonger || !files.reserve.fill() { index.checkpoint(truncates: true) }
        }
        files.reserve.fill()
    }

    /// Returns unused pages of the index to the file system if they are too many, in steps between which other
    /// processes can write. An error stops it: pages that stay are reused, and the next deletion tries again.
    private func returnPages(completely: Bool) {
        while (try? perform { index throws(StoreError) in try index.returnPages(completely: completely) }) == true {
            yieldToOthers()
        }
    }

    /// Pauses between two transactions, so that other processes, which poll for the write lock, get their turn.
    func yieldToOthers() { usleep(1_000) }
}
