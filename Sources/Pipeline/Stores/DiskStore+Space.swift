import Glibc

/// What a file system has, in bytes.
struct FileSystemSpace: Sendable, Hashable {
    var total: Int
    /// What programs without privileges may still fill.
    var free: Int

    init(total: Int, free: Int) {
        self.total = total
        self.free = free
    }

    /// nil where the system does not tell.
    init?(holding path: String) {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        total = Int(status.f_blocks) * Int(status.f_frsize)
        free = Int(status.f_bavail) * Int(status.f_frsize)
    }

    /// What a store leaves where nobody said how much: a gigabyte, or a twentieth where that is less; 16 MB at least, since
    /// the log of the index may take half of that before it is moved into the index.
    var ordinaryFloor: Int { min(1_000_000_000, max(16_000_000, total / 20)) }
}

extension DiskStore {
    /// Entries that leave in one transaction; other processes get their turn in between.
    static let step = 512
    /// Steps that one entry on its way in takes at most; the next one goes on.
    private static let stepsForNewcomer = 16

    /// What is free on the file system now, and what the store leaves of it; nil where the system does not tell.
    public func freeSpace() -> (free: Int, floor: Int)? {
        space(folder).map { ($0.free, configuration.freeSpace ?? $0.ordinaryFloor) }
    }

    /// Makes sure that the file system keeps its floor when `count` more bytes are written: evicts where it would not.
    ///
    /// - Throws: `.full` where that did not help, counted as refused.
    func makeRoom(for count: Int, in tier: DiskTier) throws(StoreError) {
        try stepDown(tier)
        guard configuration.freeSpace != 0 else { return }
        for step in 0..<Self.stepsForNewcomer {
            guard let (free, floor) = freeSpace(), free - count < floor else { return }
            if step == 0 {
                // The log of the index may be all that is too much. Where somebody is reading it, it stays.
                try? perform { index throws(StoreError) in try index.emptyLog() }
                continue
            }
            let missing = floor - free + count
            let evicted = try perform { index throws(StoreError) in
                try index.write { _ throws(StoreError) in
                    let (largest, held) = try index.largest()
                    return try index.evict(largest, entries: .max, bytes: held - missing, atMost: Self.step)
                }
            }
            guard evicted > 0 else { break }
            shrink()
        }
        guard let (free, floor) = freeSpace(), free - count < floor else { return }
        try perform { index throws(StoreError) in index.note(tier) { $0.refused += 1 } }
        throw StoreError(
            .full,
            "the file system has \(free) bytes left, of which the cache leaves \(floor) to others: free some, or set a "
                + "lower floor", path: folder)
    }

    /// Evicts, once after opening, what exceeds a budget that was larger before: in steps, not with the newcomer.
    private func stepDown(_ tier: DiskTier) throws(StoreError) {
        let tiers = tier == .originals ? [DiskTier.originals, .records] : [tier]
        for tier in tiers {
            guard takesDown(tier) else { continue }
            var hasEvicted = false
            while true {
                let evicted = try perform { index throws(StoreError) in
                    try index.write { _ throws(StoreError) in
                        try index.evict(tier, entries: .max, bytes: index.budget(of: tier), atMost: Self.step)
                    }
                }
                guard evicted > 0 else { break }
                hasEvicted = true
                yieldToOthers()
            }
            if hasEvicted { shrink(onlyLargeGaps: true) }
        }
    }

    /// Runs a transaction that only deletes. Where the file system has no room for its part of the log, once more with the
    /// room that is kept for it, and for fewer entries, whose own room is given back before the next.
    ///
    /// - Parameter body: is told how many of what it deletes it may take on at most.
    func deleting<Result: Sendable>(
        atMost limit: Int = step, _ body: (_ index: DiskIndex, _ limit: Int) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        do throws(StoreError) {
            return try perform { index throws(StoreError) in try body(index, limit) }
        } catch {
            guard error.code == .full else { throw error }
        }
        let result = try perform { index throws(StoreError) in
            index.releaseReserve()
            return try body(index, max(1, limit / 32))
        }
        shrink()
        return result
    }

    /// Gives pages of the index and slots of small bodies that nothing uses any more back to the file system, some at a
    /// time.
    ///
    /// - Parameter onlyLargeGaps: leaves free slots to what is stored next while they are a quarter of the file at most.
    func shrink(onlyLargeGaps: Bool = false) {
        // What stays is used by what is stored next, and the next call tries again.
        while true {
            let hasMore = try? perform { index throws(StoreError) in
                if onlyLargeGaps, try index.freeShare() <= 0.25 { return false }
                return try index.shrinkPack(slots: Self.step)
            }
            guard hasMore == true else { break }
            yieldToOthers()
        }
        var hasShrunk = false
        while true {
            let hasMore = try? perform { index throws(StoreError) in
                let unused = try index.unusedPages()
                if unused > 0 { try index.shrink(pages: Self.step) }
                hasShrunk = hasShrunk || unused > 0
                return unused > Self.step
            }
            guard hasMore == true else { break }
            yieldToOthers()
        }
        if hasShrunk { try? perform { index throws(StoreError) in try index.checkpoint() } }
        files.takeReserve(floor: configuration.freeSpace)
    }

    /// A moment between two transactions in a row: processes that wait for the index ask now and then, and who asks
    /// without pause would keep them out.
    func yieldToOthers() { usleep(1_000) }
}

/// Inside a write transaction of the caller.
extension DiskIndex {
    /// Evicts from a tier that holds more than so many entries or bytes.
    /// - Returns: how many entries went.
    @discardableResult
    func evict(_ tier: DiskTier, entries: Int, bytes: Int, atMost limit: Int) throws(StoreError) -> Int {
        for evicted in 0..<limit {
            let held = try sums()[tier]
            guard held.entries > entries || held.bytes > bytes, try evictOne(tier, upTo: .infinity)
            else { return evicted }
        }
        return limit
    }

    /// The tier with bodies that holds more, and how much.
    fileprivate func largest() throws(StoreError) -> (tier: DiskTier, bytes: Int) {
        let held = try sums()
        let originals = held.originals.bytes
        let variants = held.variants.bytes
        return originals > variants ? (.originals, originals) : (.variants, variants)
    }
}
