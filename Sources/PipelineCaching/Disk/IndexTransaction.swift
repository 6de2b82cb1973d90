import PipelineSupport

/// A write transaction of the index: inserts, evicts and removes entries, and keeps budgets and bodies consistent.
final class IndexTransaction {
    let index: DiskIndex
    let connection: SQLiteConnection
    let files: BodyFiles
    /// The state of the tiers at the current point in this transaction.
    var tiers = PerTier { _ in TierState() }
    var policies: PerTier<GreedyDualSizeFrequency>
    /// The generation before which all work is invalid.
    private var floor: UInt64 = 0
    /// The generation of the last purge by name.
    private var lastPurge: UInt64 = 0
    private var hasPurged = false
    /// The intent files of the bodies that this transaction has renamed.
    private(set) var intents: [String] = []
    /// Whether body files are waiting to be deleted.
    private(set) var hasDiscarded = false

    init(_ index: DiskIndex, _ connection: SQLiteConnection) {
        self.index = index
        self.connection = connection
        files = index.files
        policies = index.policies
    }

    /// Reads the state of the tiers, because other processes change it too.
    func begin() throws(StoreError) {
        let rows = try connection.rows(
            """
            SELECT name, clock, entries, bytes, ghost_serial, ghost_floor, \
            (SELECT value FROM state WHERE name = 'floor'), (SELECT max(generation) FROM purges), \
            EXISTS (SELECT 1 FROM discarded) FROM tiers
            """
        ) { row in
            (
                tier: DiskTable(rawValue: row.text(0)), clock: row.real(1),
                state: TierState(
                    entries: row.count(2), bytes: row.count(3), ghostSerial: row.count(4), ghostFloor: row.count(5)),
                floor: row.generation(6), lastPurge: row.generation(7), hasDiscarded: row.integer(8) != 0
            )
        }
        for row in rows {
            guard let tier = row.tier else { continue }
            policies[tier].clock = row.clock
            tiers[tier] = row.state
            (floor, lastPurge, hasDiscarded) = (row.floor, row.lastPurge, row.hasDiscarded)
        }
    }

    /// Writes the state of the tiers, adds counters, and announces a purge if there was one.
    func finish(_ counters: PerTier<StoreCounters>) throws(StoreError) {
        for tier in DiskTable.allCases {
            let state = tiers[tier]
            var counters = counters[tier]
            counters.insertions += state.insertions
            counters.evictions += state.evictions
            try connection.add(counters, to: tier)
            guard state.isChanged else { continue }
            try connection.run(
                """
                UPDATE tiers SET entries = ?2, bytes = ?3, clock = max(clock, ?4), ghost_serial = ?5, ghost_floor = ?6 \
                WHERE name = ?1
                """, .text(tier.rawValue), .integer(state.entries), .integer(state.bytes), .real(policies[tier].clock),
                .integer(state.ghostSerial), .integer(state.ghostFloor))
        }
        // Announce it before the commit, so that a process that reads the new number finds the purge or waits for it.
        if hasPurged { try index.announce(try connection.generation()) }
    }

    /// Adds accesses to a row.
    func store(_ access: LookupNotes.Access, of row: LookupNotes.Row) throws(StoreError) {
        try connection.run(
            row.tier.sql.access, .integer(row.id), .integer(access.count), .real(access.clock), .real(access.time))
    }

    // MARK: Generations

    /// Starts the next generation. The caller must perform the purge within this transaction.
    func nextGeneration() throws(StoreError) -> UInt64 {
        let next = try connection.generation() + 1
        try connection.run("UPDATE state SET value = ?1 WHERE name = 'generation'", .integer(Int(next)))
        hasPurged = true
        return next
    }

    /// Starts the next generation and invalidates all earlier work, whatever its name.
    func voidWorkBegun() throws(StoreError) -> UInt64 {
        let generation = try nextGeneration()
        try raiseFloor(to: generation)
        return generation
    }

    private func raiseFloor(to generation: UInt64) throws(StoreError) {
        try connection.run("UPDATE state SET value = max(value, ?1) WHERE name = 'floor'", .integer(Int(generation)))
        floor = max(floor, generation)
    }

    /// Returns whether work that began at `generation` may still store entries under these names.
    ///
    /// - Parameter source: one of the names, or nil if it is unknown. In that case, any purge by selection counts.
    func mayStore(_ names: [String], source: String?, generation: UInt64) throws(StoreError) -> Bool {
        guard generation >= floor else { return false }
        if generation >= lastPurge { return true }
        for name in EntrySelection.workInFlight.sources.union(names) {
            let purged = try connection.first("SELECT generation FROM purges WHERE name = ?1", .text(name)) {
                $0.generation(0)
            }
            if let purged, generation < purged { return false }
        }
        let prefixes = try connection.rows(
            "SELECT name FROM purges WHERE name >= char(1) AND name < char(2) AND generation > ?1",
            .integer(Int(generation))
        ) { String($0.text(0).dropFirst()) }
        return !prefixes.contains { prefix in source.map { $0.utf8.starts(with: prefix.utf8) } ?? true }
    }

    /// The number of seconds for which a purge is remembered by name. Older work is refused, whatever it stores.
    private static let purgeMemory = 3_600.0

    /// Records a purge of these names.
    func remember(_ names: some Sequence<String>, _ generation: UInt64) throws(StoreError) {
        let now = SystemClock.unix.seconds
        for name in names {
            try connection.run(
                "INSERT OR REPLACE INTO purges VALUES (?1, ?2, ?3)", .text(name), .integer(Int(generation)), .real(now))
        }
        let forgotten = try connection.rows(
            "DELETE FROM purges WHERE time < ?1 RETURNING generation", .real(now - Self.purgeMemory)
        ) { $0.generation(0) }
        lastPurge = generation
        if let last = forgotten.max() { try raiseFloor(to: last) }
    }

    // MARK: Bodies

    /// A body as its row describes it.
    struct StoredBody: Sendable, Equatable {
        var id: Int
        var length: Int
        /// The CRC-32C over the 32 bytes of the digest, followed by the body, so that it matches no other entry.
        var checksum: UInt32
        /// Whether the body is a file instead of a column in its row.
        var isFile: Bool

        /// Reads the four columns of `bodyColumns`, starting at `column`.
        init(_ row: SQLiteRow, at column: Int32) {
            id = row.integer(column)
            length = row.count(column + 1)
            checksum = UInt32(truncatingIfNeeded: row.integer(column + 2))
            isFile = row.integer(column + 3) != 0
        }
    }

    /// The columns of a `StoredBody`.
    static let bodyColumns = "bodies.id, bodies.length, bodies.checksum, bodies.data IS NULL"

    private static let bodyByDigest = "SELECT \(bodyColumns) FROM bodies WHERE \(DiskSchema.equal("digest", "?1"))"

    /// Adds an entry to the body with these bytes, and stores the body if it is missing. The caller writes the entry's
    /// row.
    ///
    /// - Returns: the body's ID.
    func retain(_ content: EntryBody, _ incoming: DiskStore.IncomingBody, in tier: DiskTable) throws(StoreError) -> Int
    {
        let stored = try connection.first(
            Self.bodyByDigest, .digest(incoming.key)
        ) { StoredBody($0, at: 0) }
        if let stored, stored.length == content.count, stored.checksum == incoming.checksum {
            if stored.isFile, !files.holds(incoming.digest, length: stored.length) { try publish(content, incoming) }
            try connection.run("UPDATE bodies SET entries = entries + 1 WHERE id = ?1", .integer(stored.id))
            return stored.id
        }
        if let stored {
            // Two bodies cannot have the same digest, so the row is damaged.
            index.notes.note(tier) { $0.corrupt += 1 }
            try markDamaged(stored.id)
        }
        let isInline = content.count <= index.configuration.inlineLimit
        var data = SQLiteValue.null
        if isInline {
            guard let bytes = content.read() else {
                throw StoreError(.io, "cannot read back the stored body with the digest \(incoming.digest)")
            }
            data = .blob(bytes)
        } else {
            try publish(content, incoming)
            try connection.run("DELETE FROM discarded WHERE digest = ?1", .digest(incoming.key))
        }
        try connection.run(
            "INSERT INTO bodies (digest, length, checksum, entries, data) VALUES (?1, ?2, ?3, 1, ?4)",
            .digest(incoming.key), .integer(content.count), .integer(Int(incoming.checksum)), data)
        return connection.lastInsertedRow
    }

    private func publish(_ content: EntryBody, _ incoming: DiskStore.IncomingBody) throws(StoreError) {
        let sync = index.configuration.fsync
        if incoming.temporary == nil { incoming.temporary = try files.writeTemporary(content, sync: sync) }
        guard let temporary = incoming.temporary else { return }
        intents.append(try files.createIntentFile(incoming.digest))
        try files.publish(temporary, as: incoming.digest, sync: sync)
        incoming.temporary = nil
    }

    /// Decrements the entry count of a body, and removes the body if no entry is left.
    func release(_ body: Int) throws(StoreError) {
        let found = try connection.first(
            "SELECT entries, digest, data IS NULL FROM bodies WHERE id = ?1", .integer(body)
        ) { (entries: $0.count(0), digest: $0.digestKey(1), isFile: $0.integer(2) != 0) }
        guard let found else { return }
        guard found.entries <= 1 else {
            try connection.run("UPDATE bodies SET entries = entries - 1 WHERE id = ?1", .integer(body))
            return
        }
        try connection.run("DELETE FROM bodies WHERE id = ?1", .integer(body))
        if found.isFile, let digest = found.digest { try discard(digest) }
    }

    /// Schedules the file of a body for deletion after the commit.
    private func discard(_ digest: DigestKey) throws(StoreError) {
        try connection.run("INSERT OR IGNORE INTO discarded VALUES (?1)", .digest(digest))
        hasDiscarded = true
    }

    /// Hides a damaged body from look-ups. Its entries are removed when a look-up finds them without a body.
    func markDamaged(_ body: Int) throws(StoreError) {
        let found = try connection.first("SELECT digest, data IS NULL FROM bodies WHERE id = ?1", .integer(body)) {
            (digest: $0.digestKey(0), isFile: $0.integer(1) != 0)
        }
        if let digest = found?.digest, found?.isFile == true { try discard(digest) }
        // The row stays for as long as entries refer to its ID, because the ID must not be reused for a different body.
        try connection.run(
            "UPDATE bodies SET digest = randomblob(32), length = 0, checksum = 0, data = x'' WHERE id = ?1",
            .integer(body))
        try removeRow(.originals, body)
    }
}
