/// Bodies, rows with a place in an eviction queue, and the budgets: what originals and variants share. All of it runs
/// inside a write transaction of the caller.
extension DiskIndex {
    /// A body as the rows of an entry describe it.
    struct StoredBody: Sendable, Equatable {
        var length: Int
        var checksum: UInt32
        /// The first unit of its slot in the pack; nil when it is a file.
        var place: Int?
    }

    /// A row in an eviction queue, as an insertion needs it.
    struct QueuePlace {
        var size: Int
        var cost: Double
        var uses: Int
        var since: Double
        var priority: Double
        var touched: Double
    }

    /// The body for a further entry: the one that is there, which is stored once however many have it, or a new one. The
    /// caller writes its row next, and calls `hold(_:_:by:with:)`.
    ///
    /// - Parameter incoming: its temporary file, if it has one, is taken.
    /// - Returns: and the entry that had it before.
    func body(
        for content: EntryBody, _ incoming: DiskStore.IncomingBody, in tier: DiskTier
    ) throws(StoreError) -> (body: StoredBody, other: Holder?) {
        let held = try holder(of: incoming.key, length: content.count)
        if let (holder, stored) = held, stored.length != content.count || stored.checksum != incoming.checksum {
            // There are no two bodies with one digest: the row is damaged.
            note(tier) { $0.corrupt += 1 }
            try removeEntries(holder, incoming.key, stored)
        } else if let (holder, stored) = held {
            if stored.place == nil, !files.holds(incoming.digest, length: stored.length) {
                try publish(incoming.digest, content, temporary: &incoming.temporary)
            }
            return (stored, holder)
        }
        var stored = StoredBody(length: content.count, checksum: incoming.checksum)
        if content.count <= configuration.inlineLimit {
            guard let bytes = content.read() else {
                throw StoreError(.io, "cannot read back the body under digest \(incoming.digest)")
            }
            stored.place = try pack(bytes)
        } else {
            try publish(incoming.digest, content, temporary: &incoming.temporary)
            try connection.run("DELETE FROM discarded WHERE digest = ?1", .text(incoming.digest))
        }
        return (stored, nil)
    }

    func publish(_ digest: Digest, _ content: EntryBody, temporary: inout String?) throws(StoreError) {
        if temporary == nil { temporary = try files.writeTemporary(content, sync: configuration.fsync) }
        guard let path = temporary else { return }
        marks.append(try files.mark(digest))
        try files.publish(path, as: digest)
        temporary = nil
    }

    /// Has the file of a body deleted once the transaction has committed.
    func discard(_ digest: Digest) throws(StoreError) {
        try connection.run("INSERT OR IGNORE INTO discarded VALUES (?1)", .text(digest))
        known.hasDiscarded = true
    }

    // MARK: Budgets

    func budget(of tier: DiskTier) -> Int {
        switch tier {
        case .originals: configuration.originals
        case .variants: configuration.variants
        case .records: configuration.records
        }
    }

    /// Makes room for `size` bytes and says where the newcomer stands in the queue; the caller inserts its row next.
    ///
    /// - Parameters:
    ///   - key: what the entry is remembered by once it was evicted.
    ///   - uses: uses of the entry it takes the place of.
    /// - Returns: nil when it is larger than the whole budget, counted as refused, and when all that is there is worth
    ///   more, counted as inserted and evicted.
    func admit(
        _ tier: DiskTier, _ key: GhostKey, size: Int, cost: Double, uses: Int = 0
    ) throws(StoreError) -> QueuePlace? {
        let budget = budget(of: tier)
        guard size <= budget else {
            note(tier) { $0.refused += 1 }
            return nil
        }
        let now = Self.now()
        var entry = EvictionEntry(size: size, cost: cost)
        policies[tier].admit(&entry, wasEvicted: isGhost(tier, key), now: now)
        entry.uses = max(entry.uses, UInt8(clamping: uses))
        let priority = policies[tier].priority(of: entry)
        states[tier].insertions += 1
        states[tier].isChanged = true
        while states[tier].bytes + size > budget {
            guard try evictOne(tier, upTo: priority) else {
                wentAway(tier, entry, key, newcomers: 0)
                return nil
            }
        }
        charge(tier, size)
        return QueuePlace(
            size: size, cost: cost, uses: Int(entry.uses), since: entry.since, priority: priority, touched: now)
    }

    /// Evicts the entry at the front of the queue; one that was used since it was placed moves back first.
    /// - Returns: false when there is none of this priority or a lower one.
    func evictOne(_ tier: DiskTier, upTo limit: Double) throws(StoreError) -> Bool {
        let connection = try connection
        while true {
            let front = try connection.first(tier.front) { Leaving(tier, $0) }
            guard let found = front, found.priority <= limit else { return false }
            var entry = found.entry
            let use = settle(tier, found.id, written: found.touched)
            if let use {
                entry.count(uses: Int(use.uses))
                entry.since = max(entry.since, use.since)
            }
            let priority = policies[tier].priority(of: entry)
            if priority > found.priority {
                try connection.run(
                    tier.requeue, .integer(found.id), .real(priority), .integer(Int(entry.uses)), .real(entry.since),
                    .real(max(found.touched, use?.time ?? 0)))
                continue
            }
            try remove(found)
            if let key = found.key { wentAway(tier, entry, key, newcomers: 1) }
            return true
        }
    }

    // MARK: Removing

    /// A row on its way out, read before it is deleted: RETURNING would fill a table of its own for one row.
    struct Leaving {
        let tier: DiskTier
        let id: Int
        let entry: EvictionEntry
        let priority: Double
        let touched: Double
        /// What it is remembered by once it was evicted.
        let key: GhostKey?
        /// What it is an entry of.
        let original: NumberedOriginal
        /// Nothing of a record, which has no body.
        let digest: DigestKey?
        let body: StoredBody?

        init(_ tier: DiskTier, _ row: SQLiteRow) {
            self.tier = tier
            id = row.integer(0)
            entry = EvictionEntry(
                size: row.count(1), cost: row.real(2), uses: UInt8(clamping: row.integer(3)), since: row.real(4))
            priority = row.real(5)
            touched = row.real(6)
            switch tier {
            case .records:
                original = NumberedOriginal(row.integer(7), row.digestKey(10))
                key = GhostKey(text: row.text(8), selecting: row.blob(9) ?? [])
                (digest, body) = (nil, nil)
            case .originals:
                digest = row.digestKey(7)
                original = NumberedOriginal(id, digest)
                key = digest.map { GhostKey($0) }
                body = StoredBody(row, at: 8)
            case .variants:
                original = NumberedOriginal(id >> DiskSchema.variantBits, row.digestKey(12))
                digest = row.digestKey(7)
                key = row.digestKey(11).map { GhostKey($0) }
                body = StoredBody(row, at: 8)
            }
        }
    }

    /// Deletes one row, if it is there, with what hangs on it: its body, its bytes in the budget, links nothing needs.
    func removeRow(_ tier: DiskTier, _ id: Int) throws(StoreError) {
        if let found = try connection.first(tier.row, .integer(id), read: { Leaving(tier, $0) }) { try remove(found) }
    }

    private func remove(_ row: Leaving) throws(StoreError) {
        try connection.run(row.tier.delete, .integer(row.id))
        uncharge(row.tier, row.entry.size)
        if let digest = row.digest, let body = row.body { try release(digest, body, of: Holder(row.tier, row.id)) }
        switch row.tier {
        case .originals: break
        case .variants: try forgetUnneeded(row.original)
        case .records: try dropUnrecorded(row.original)
        }
        notedUses.byRow[UsesFile.Key(row.tier, row.id)] = nil
    }

    // MARK: Generations

    func generation() throws(StoreError) -> UInt64 { try connection.generation() ?? 1 }

    /// Whether work begun at `generation` may still store something under these names. Inside a write transaction.
    func mayStore(_ names: [String], generation: UInt64) throws(StoreError) -> Bool {
        guard generation >= UInt64(known.floor) else { return false }
        if generation >= UInt64(known.lastPurge) { return true }
        for name in names {
            let purged = try connection.first("SELECT generation FROM purges WHERE name = ?1", .text(name)) {
                $0.count(0)
            }
            if let purged, generation < UInt64(purged) { return false }
        }
        return true
    }
}
