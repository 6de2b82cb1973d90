import Glibc
import Synchronization

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
    /// Steps that one entry on its way in takes at most; the next one goes on.
    private static let stepsForNewcomer = 16

    /// What is free on the file system now, and what the store leaves of it; nil where the system does not tell.
    public func freeSpace() -> (free: Int, floor: Int)? {
        space(folder).map { ($0.free, configuration.freeSpace ?? $0.ordinaryFloor) }
    }

    /// Makes sure that the file system keeps its floor when `count` more bytes are written, evicting where it would not, and
    /// that the room for deleting is whole.
    ///
    /// - Throws: `.full` if that did not free enough.
    func makeRoom(for count: Int, in tier: DiskTier) throws(StoreError) {
        try stepDown(tier)
        if count <= Self.smallBytes, hasAmpleRoom { return }
        if configuration.freeSpace != 0 { try keepFloor(for: count, in: tier) }
        // What is stored in its place would leave nothing to delete with.
        let missing = files.reserve.take()
        guard missing == 0 else {
            throw refusal(
                "the file system is full: of the \(ReserveFile.bytes) bytes that the cache keeps for deleting "
                    + "\(missing) are missing, and nothing is stored until they are there. Free some")
        }
        try payLog(for: count, in: tier)
        if let (free, floor) = freeSpace(), free - floor >= Self.ampleBytes {
            ampleUntil.store(PlaceCheck.now() &+ Self.ampleLifetime, ordering: .relaxed)
        }
    }

    /// Bytes above the floor that nobody writes within `ampleLifetime`, nanoseconds: meanwhile the file system is not
    /// asked again for each body of at most `smallBytes`, which would cost as much as a tenth of storing it.
    private static let ampleBytes = 1_000_000_000
    private static let ampleLifetime: UInt64 = 50_000_000
    private static let smallBytes = 1 << 20

    private var hasAmpleRoom: Bool { PlaceCheck.now() < ampleUntil.load(ordering: .relaxed) }

    private func keepFloor(for count: Int, in tier: DiskTier) throws(StoreError) {
        for step in 0..<Self.stepsForNewcomer {
            guard let (free, floor) = freeSpace(), free - count < floor else { return }
            if step == 0 {
                // The log of the index may be all that is too much. Where somebody is reading it, it stays.
                try? perform { index throws(StoreError) in try index.emptyLog() }
                continue
            }
            let missing = floor - free + count
            let evicted = try deleting { index, limit throws(StoreError) in
                try index.write { _ throws(StoreError) in
                    let (largest, held) = try index.largest()
                    return try index.evict(largest, entries: .max, bytes: held - missing, atMost: limit)
                }
            }
            guard evicted > 0 else { break }
            shrink()
        }
        guard let (free, floor) = freeSpace(), free - count < floor else { return }
        throw refusal(
            "the file system has \(free) bytes left, of which the cache leaves \(floor) to others: free some, or set "
                + "a lower floor")
    }

    /// More than the log of the index makes it longer by.
    private static let longestLog = 16_000_000

    /// Where the file system is nearly full, moves the log into the index while there is room for what the index gets longer
    /// by it: on a full one it would stay as it is, and deleting would need more room with each transaction.
    private func payLog(for count: Int, in tier: DiskTier) throws(StoreError) {
        // A higher floor leaves room for it, as the ordinary one does.
        guard let floor = configuration.freeSpace, floor < Self.longestLog else { return }
        func owed() throws(StoreError) -> Int { try perform { index throws(StoreError) in try index.owed() } }
        guard let free = space(folder)?.free, free - count < Self.longestLog else { return }
        let before = try owed()
        guard before > 0, free - count < before + ReserveFile.bytes else { return }
        // What it leaves undone is looked at next.
        try? perform { index throws(StoreError) in try index.emptyLog() }
        let after = try owed()
        guard after > ReserveFile.bytes / 2, let free = space(folder)?.free, free - count < after else { return }
        throw refusal(
            "the file system has \(free) bytes left, and the index is still to get \(after) longer: free some")
    }

    private func refusal(_ message: String) -> StoreError { StoreError(.full, message, path: folder) }

    /// Evicts, once after opening, what exceeds a budget that was larger before: in steps, not with the newcomer.
    private func stepDown(_ tier: DiskTier) throws(StoreError) {
        let tiers = tier == .originals ? [DiskTier.originals, .records] : [tier]
        for tier in tiers {
            guard takesDown(tier) else { continue }
            var hasEvicted = false
            while true {
                let evicted = try deleting { index, limit throws(StoreError) in
                    try index.write { _ throws(StoreError) in
                        try index.evict(tier, entries: .max, bytes: index.budget(of: tier), atMost: limit)
                    }
                }
                guard evicted > 0 else { break }
                hasEvicted = true
                yieldToOthers()
            }
            if hasEvicted { shrink(onlyLargeGaps: true) }
        }
    }
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
