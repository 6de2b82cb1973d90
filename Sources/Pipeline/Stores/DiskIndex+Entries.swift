/// Bodies, rows with a place in an eviction queue, and the budgets: what originals and variants share. All of it runs
/// inside a write transaction of the caller.
extension DiskIndex {
    /// A body as the index describes it.
    struct StoredBody {
        var length: Int
        var checksum: UInt32
        /// nil when it is a file.
        var data: [UInt8]?
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

    func body(_ digest: Digest) throws(StoreError) -> StoredBody? {
        try connection.first("SELECT length, checksum, data FROM bodies WHERE digest = ?1", .text(digest)) {
            StoredBody(length: $0.integer(0), checksum: UInt32(truncatingIfNeeded: $0.integer(1)), data: $0.blob(2))
        }
    }

    /// Adds a reference to a body, storing it when it is not there (or no longer whole).
    ///
    /// - Parameter temporary: a temporary file that holds the body, taken or deleted; nil when it is small, or when
    ///   the body was there a moment ago.
    func addBody(
        _ digest: Digest, _ content: EntryBody, checksum: UInt32, temporary: inout String?
    ) throws(StoreError) {
        let connection = try connection
        if let stored = try body(digest) {
            guard stored.length == content.count, stored.checksum == checksum else {
                throw StoreError(.invalid, "two bodies under digest \(digest)")
            }
            if stored.data == nil, !files.holds(digest, length: stored.length) {
                try publish(digest, content, temporary: &temporary)
            }
            try connection.run("UPDATE bodies SET refs = refs + 1 WHERE digest = ?1", .text(digest))
            return
        }
        var data: [UInt8]?
        if content.count <= configuration.inlineLimit {
            data = content.read()
            guard data != nil else { throw StoreError(.io, "cannot read back the body under digest \(digest)") }
        } else {
            try publish(digest, content, temporary: &temporary)
            try connection.run("DELETE FROM discarded WHERE digest = ?1", .text(digest))
        }
        try connection.run(
            "INSERT INTO bodies (digest, length, checksum, refs, data) VALUES (?1, ?2, ?3, 1, ?4)", .text(digest),
            .integer(content.count), .integer(Int(checksum)), data.map { .blob($0) } ?? .null)
    }

    func publish(_ digest: Digest, _ content: EntryBody, temporary: inout String?) throws(StoreError) {
        if temporary == nil { temporary = try files.writeTemporary(content, sync: configuration.fsync) }
        guard let path = temporary else { return }
        marks.append(try files.mark(digest))
        try files.publish(path, as: digest)
        temporary = nil
    }

    /// Takes a reference away; with the last one the body goes.
    func releaseBody(_ digest: Digest) throws(StoreError) {
        let connection = try connection
        let isFile = try connection.first(
            "SELECT data IS NULL FROM bodies WHERE digest = ?1 AND refs <= 1", .text(digest)
        ) {
            $0.integer(0) != 0
        }
        guard let isFile else {
            try connection.run("UPDATE bodies SET refs = refs - 1 WHERE digest = ?1", .text(digest))
            return
        }
        try connection.run("DELETE FROM bodies WHERE digest = ?1", .text(digest))
        if isFile { try connection.run("INSERT OR IGNORE INTO discarded VALUES (?1)", .text(digest)) }
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
        guard size <= budget, let policy = policies[tier] else {
            note(tier) { $0.refused += 1 }
            return nil
        }
        let connection = try connection
        let now = Self.now()
        var entry = EvictionEntry(size: size, cost: cost)
        policy.admit(&entry, wasEvicted: try isGhost(tier, key), now: now)
        entry.uses = max(entry.uses, UInt8(clamping: uses))
        let priority = policy.priority(of: entry)
        try connection.run("UPDATE tiers SET insertions = insertions + 1 WHERE name = ?1", .text(tier.rawValue))
        while try bytes(in: tier) + size > budget {
            guard try evictOne(tier, upTo: priority) else {
                try wentAway(tier, entry, key, newcomers: 0)
                return nil
            }
        }
        try connection.run(
            "UPDATE tiers SET bytes = bytes + ?2, entries = entries + 1 WHERE name = ?1", .text(tier.rawValue),
            .integer(size))
        return QueuePlace(
            size: size, cost: cost, uses: Int(entry.uses), since: entry.since, priority: priority, touched: now)
    }

    /// Uses of a row that are noted and not written yet.
    func notedUses(_ tier: DiskTier, _ id: Int) -> Int { Int(touches[tier]?[id]?.entry.uses ?? 0) }

    private func bytes(in tier: DiskTier) throws(StoreError) -> Int {
        try connection.first("SELECT bytes FROM tiers WHERE name = ?1", .text(tier.rawValue)) { $0.integer(0) } ?? 0
    }

    /// Evicts the entry at the front of the queue; one that was used since it was placed moves back first.
    /// - Returns: false when there is none of this priority or a lower one.
    func evictOne(_ tier: DiskTier, upTo limit: Double) throws(StoreError) -> Bool {
        let connection = try connection
        let front = """
            SELECT id, size, cost, uses, since, priority, \(tier.keyColumns) FROM \(tier.rawValue) \
            ORDER BY priority LIMIT 1
            """
        while true {
            let found = try connection.first(front) { row in
                (
                    id: row.integer(0), priority: row.real(5), key: GhostKey(row.text(6), row.blob(7) ?? []),
                    entry: EvictionEntry(
                        size: row.integer(1), cost: row.real(2), uses: UInt8(clamping: row.integer(3)),
                        since: row.real(4))
                )
            }
            guard let found, found.priority <= limit else { return false }
            var entry = found.entry
            // Uses that are noted but not written yet count too.
            if let touch = touches[tier]?[found.id]?.entry {
                entry.count(uses: Int(touch.uses))
                entry.since = max(entry.since, touch.since)
            }
            let priority = policies[tier]?.priority(of: entry) ?? found.priority
            if priority > found.priority {
                try connection.run(
                    "UPDATE \(tier.rawValue) SET priority = ?2 WHERE id = ?1", .integer(found.id), .real(priority))
                continue
            }
            try removeRow(tier, found.id)
            try wentAway(tier, entry, found.key, newcomers: 1)
            return true
        }
    }

    /// Counts and remembers an entry that is no longer there, and moves the clock.
    /// - Parameter newcomers: entries that stay and are not counted yet.
    private func wentAway(
        _ tier: DiskTier, _ entry: EvictionEntry, _ key: GhostKey, newcomers: Int
    ) throws(StoreError) {
        let connection = try connection
        policies[tier]?.evicted(entry)
        let rows = try connection.rows(
            """
            UPDATE tiers SET evictions = evictions + 1, clock = max(clock, ?2), ghosts = ghosts + 1 WHERE name = ?1 \
            RETURNING ghosts, entries
            """, .text(tier.rawValue), .real(policies[tier]?.clock ?? 0)
        ) { (number: $0.integer(0), entries: $0.integer(1)) }
        guard policies[tier]?.remembersEvicted == true, let row = rows.first else { return }
        try connection.run(
            "INSERT OR REPLACE INTO ghosts VALUES (?1, ?2, ?3)", .text(tier.rawValue), .integer(row.number),
            .integer(key.hash))
        try connection.run(
            "DELETE FROM ghosts WHERE tier = ?1 AND number <= ?2", .text(tier.rawValue),
            .integer(row.number - row.entries - newcomers))
    }

    private func isGhost(_ tier: DiskTier, _ key: GhostKey) throws(StoreError) -> Bool {
        guard policies[tier]?.remembersEvicted == true else { return false }
        return try connection.first(
            "SELECT 1 FROM ghosts WHERE tier = ?1 AND hash = ?2 LIMIT 1", .text(tier.rawValue), .integer(key.hash)
        ) { _ in true } ?? false
    }

    // MARK: Removing

    /// Deletes one row with what hangs on it: its body reference, its bytes in the budget, links nothing needs.
    func removeRow(_ tier: DiskTier, _ id: Int) throws(StoreError) {
        let connection = try connection
        // Each reads its row before it deletes it: RETURNING would fill a table of its own for one row.
        let delete = "DELETE FROM \(tier.rawValue) WHERE id = ?1"
        switch tier {
        case .originals:
            let gone = try connection.rows("SELECT size, digest FROM originals WHERE id = ?1", .integer(id)) {
                (size: $0.integer(0), digest: $0.text(1))
            }
            for row in gone {
                try connection.run(delete, .integer(id))
                try uncharge(tier, row.size)
                try releaseBody(row.digest)
            }
        case .variants:
            let gone = try connection.rows("SELECT size, digest, original FROM variants WHERE id = ?1", .integer(id)) {
                (size: $0.integer(0), digest: $0.text(1), original: $0.text(2))
            }
            for row in gone {
                try connection.run(delete, .integer(id))
                try uncharge(tier, row.size)
                try releaseBody(row.digest)
                try dropLinks(row.original)
            }
        case .records:
            let gone = try connection.rows("SELECT size, digest FROM records WHERE id = ?1", .integer(id)) {
                (size: $0.integer(0), digest: $0.text(1))
            }
            for row in gone {
                try connection.run(delete, .integer(id))
                try uncharge(tier, row.size)
                try dropUnrecorded(row.digest)
            }
        }
        touches[tier]?[id] = nil
    }

    /// Deletes an original's body and links when no record speaks of it any more.
    func dropUnrecorded(_ digest: Digest) throws(StoreError) {
        let connection = try connection
        let recorded = try connection.first("SELECT 1 FROM records WHERE digest = ?1 LIMIT 1", .text(digest)) { _ in
            true
        }
        if recorded != nil { return }
        let rows = try connection.rows("SELECT id FROM originals WHERE digest = ?1", .text(digest)) { $0.integer(0) }
        for id in rows { try removeRow(.originals, id) }
        try dropLinks(digest)
    }

    /// Forgets which sources a digest belonged to once neither a record nor a variant needs it.
    func dropLinks(_ digest: Digest) throws(StoreError) {
        try connection.run(
            """
            DELETE FROM links WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM variants WHERE original = ?1) \
            AND NOT EXISTS (SELECT 1 FROM records WHERE records.digest = ?1)
            """, .text(digest))
    }

    /// Deletes a damaged body and every entry made of it.
    func removeDamaged(_ digest: Digest, seenIn tier: DiskTier) throws(StoreError) {
        note(tier) { $0.corrupt += 1 }
        try write { connection throws(StoreError) in
            for tier in [DiskTier.originals, .variants] {
                let rows = try connection.rows(
                    "SELECT id FROM \(tier.rawValue) WHERE digest = ?1", .text(digest)
                ) { $0.integer(0) }
                for id in rows { try removeRow(tier, id) }
            }
        }
    }

    func uncharge(_ tier: DiskTier, _ size: Int) throws(StoreError) {
        try connection.run(
            "UPDATE tiers SET bytes = bytes - ?2, entries = entries - 1 WHERE name = ?1", .text(tier.rawValue),
            .integer(size))
    }

    // MARK: Generations

    func generation() throws(StoreError) -> UInt64 {
        let value = try connection.first("SELECT value FROM state WHERE name = 'generation'") { $0.integer(0) }
        return UInt64(value ?? 1)
    }

    /// Whether work begun at `generation` may still store something under these names.
    func mayStore(_ names: [String], generation: UInt64) throws(StoreError) -> Bool {
        let floor = try connection.first("SELECT value FROM state WHERE name = 'floor'") { $0.integer(0) } ?? 0
        guard generation >= UInt64(floor) else { return false }
        for name in names {
            let purged = try connection.first("SELECT generation FROM purges WHERE name = ?1", .text(name)) {
                $0.integer(0)
            }
            if let purged, generation < UInt64(purged) { return false }
        }
        return true
    }
}
