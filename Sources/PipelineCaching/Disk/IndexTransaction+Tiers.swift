import PipelineSupport
import Synchronization

/// Budgets, eviction queues and ghost entries.
extension IndexTransaction {
    /// The state of a tier within a transaction.
    struct TierState {
        var entries = 0
        var bytes = 0
        /// The serial number of the last ghost entry, and the serial number up to which ghost entries have expired.
        var ghostSerial = 0
        var ghostFloor = 0
        var insertions = 0
        var evictions = 0
        var isChanged = false
    }

    /// A row's position in the eviction queue.
    struct QueuePosition {
        var size: Int
        var cost: Double
        var accesses: Int
        var clock: Double
        var priority: Double
        var lastAccess: Double

        /// The values for the columns `size` to `last_access`, in that order.
        var values: [SQLiteValue] {
            [.integer(size), .real(cost), .integer(accesses), .real(clock), .real(priority), .real(lastAccess)]
        }
    }

    /// Makes room for `size` bytes and returns the new entry's position in the queue. The caller inserts its row next.
    ///
    /// - Parameters:
    ///   - key: identifies the entry after its eviction.
    ///   - accesses: the access count of the entry that it replaces.
    /// - Returns: nil if the entry is larger than the complete budget (this counts as refused), or if all other entries
    ///   are worth more (this counts as inserted and evicted).
    func admit(
        _ tier: DiskTable, _ key: GhostKey, size: Int, cost: Double, accesses: Int = 0
    ) throws(StoreError) -> QueuePosition? {
        let budget = index.budgets[tier]
        guard size <= budget else {
            index.notes.note(tier) { $0.refused += 1 }
            return nil
        }
        let now = SystemClock.unix.seconds
        var entry = EvictionEntry(size: size, cost: cost)
        policies[tier].admit(&entry, wasEvicted: try isGhost(tier, key))
        entry.uses = max(entry.uses, UInt8(clamping: accesses))
        let priority = policies[tier].priority(of: entry)
        tiers[tier].insertions += 1
        tiers[tier].isChanged = true
        if tiers[tier].bytes > budget { try recount(tier) }
        while tiers[tier].bytes + size > budget {
            guard try evictOne(tier, upTo: priority) else {
                try noteEviction(tier, entry, key, newcomers: 0)
                return nil
            }
        }
        tiers[tier].bytes += size
        tiers[tier].entries += 1
        return QueuePosition(
            size: size, cost: cost, accesses: Int(entry.uses), clock: entry.since, priority: priority, lastAccess: now)
    }

    /// Evicts at most `limit` entries from a tier while it contains more than this number of entries or bytes.
    ///
    /// - Returns: the number of evicted entries.
    @discardableResult
    func evict(_ tier: DiskTable, entries: Int, bytes: Int, atMost limit: Int) throws(StoreError) -> Int {
        for evicted in 0..<limit {
            guard tiers[tier].entries > entries || tiers[tier].bytes > bytes, try evictOne(tier, upTo: .infinity)
            else { return evicted }
        }
        return limit
    }

    /// Evicts the entry at the front of the queue. Before that, an entry at the front that was accessed since it was
    /// queued moves back.
    ///
    /// - Returns: false if no entry has this priority or a lower one.
    private func evictOne(_ tier: DiskTable, upTo limit: Double) throws(StoreError) -> Bool {
        while true {
            let front = try connection.first(tier.sql.front) { RemovedRow(tier, $0) }
            guard let found = front, found.priority <= limit else { return false }
            var entry = found.entry
            let access = index.notes.takeAccess(tier, row: found.id)
            if let access {
                entry.count(uses: access.count)
                entry.since = max(entry.since, access.clock)
            }
            let priority = policies[tier].priority(of: entry)
            if priority > found.priority {
                try connection.run(
                    tier.sql.requeue, .integer(found.id), .real(priority), .integer(Int(entry.uses)),
                    .real(entry.since),
                    .real(access?.time ?? 0))
                continue
            }
            try remove(found)
            if let key = found.key { try noteEviction(tier, entry, key, newcomers: 1) }
            return true
        }
    }

    /// Recomputes a tier's sums from its rows, once per tier after opening, because wrong sums could cause every new
    /// entry to be refused.
    private func recount(_ tier: DiskTable) throws(StoreError) {
        guard index.recounted.insert(tier).inserted else { return }
        let sums = try connection.first("SELECT count(*), total(size) FROM \(tier.rawValue)") {
            (entries: $0.count(0), bytes: $0.real(1))
        }
        tiers[tier].entries = sums?.entries ?? 0
        tiers[tier].bytes = Int(min(sums?.bytes ?? 0, 0x1p62))
        tiers[tier].isChanged = true
    }

    /// Subtracts a removed row from the sums.
    func uncharge(_ tier: DiskTable, _ size: Int) {
        tiers[tier].bytes = max(0, tiers[tier].bytes - size)
        tiers[tier].entries = max(0, tiers[tier].entries - 1)
        tiers[tier].isChanged = true
    }

    // MARK: Ghost entries

    /// Counts an eviction, records the key, and advances the policy's clock.
    ///
    /// - Parameter newcomers: the number of entries that will stay but are not counted yet.
    private func noteEviction(
        _ tier: DiskTable, _ entry: EvictionEntry, _ key: GhostKey, newcomers: Int
    ) throws(StoreError) {
        policies[tier].evicted(entry)
        tiers[tier].evictions += 1
        tiers[tier].ghostSerial += 1
        tiers[tier].isChanged = true
        let serial = tiers[tier].ghostSerial
        tiers[tier].ghostFloor = max(tiers[tier].ghostFloor, serial - tiers[tier].entries - newcomers)
        try connection.run(
            "INSERT OR REPLACE INTO ghosts (tier, hash, serial) VALUES (?1, ?2, ?3)", .integer(tier.number),
            .integer(key.hash), .integer(serial))
        if serial % Self.ghostStep == 0 { try deleteGhosts(tier) }
    }

    /// The number of evictions after which expired ghost entries are deleted from a part of the table.
    private static let ghostStep = 64

    /// Deletes expired ghost entries in the next part of the hash range. A part contains about `ghostStep` valid
    /// entries. The table therefore contains at most two rows for each valid entry, and a deletion touches only
    /// adjacent rows.
    private func deleteGhosts(_ tier: DiskTable) throws(StoreError) {
        let state = tiers[tier]
        let parts = max(1, (state.ghostSerial - state.ghostFloor) / Self.ghostStep)
        let width = UInt64.max / UInt64(parts)
        let part = UInt64(state.ghostSerial / Self.ghostStep % parts)
        let first = Int(truncatingIfNeeded: part &* width &+ 1 << 63)
        let last = part == UInt64(parts - 1) ? Int.max : first &+ Int(truncatingIfNeeded: width)
        try connection.run(
            "DELETE FROM ghosts WHERE tier = ?1 AND hash BETWEEN ?2 AND ?3 AND serial <= ?4", .integer(tier.number),
            .integer(first), .integer(last), .integer(state.ghostFloor))
    }

    private func isGhost(_ tier: DiskTable, _ key: GhostKey) throws(StoreError) -> Bool {
        let state = tiers[tier]
        guard state.ghostSerial > state.ghostFloor else { return false }
        return try connection.first(
            "SELECT 1 FROM ghosts WHERE tier = ?1 AND hash = ?2 AND serial > ?3", .integer(tier.number),
            .integer(key.hash), .integer(state.ghostFloor)
        ) { _ in true } ?? false
    }
}

/// The budgets in bytes of a folder's tables, as used by this process.
final class DiskBudgets: Sendable {
    private let bytes: Mutex<PerTier<Int>>

    init(_ configuration: DiskStoreConfiguration) {
        bytes = Mutex(
            PerTier { tier in
                switch tier {
                case .originals: configuration.originals
                case .variants: configuration.variants
                case .records: configuration.records
                }
            })
    }

    subscript(tier: DiskTable) -> Int { bytes.withLock { $0[tier] } }

    func set(originals: Int, variants: Int) {
        bytes.withLock { ($0[.originals], $0[.variants]) = (max(0, originals), max(0, variants)) }
    }
}
