/// What the tiers hold and what has been done with them: read when a write transaction begins, kept in memory within it,
/// and written at its end, with what has been noted since the one before.
extension DiskIndex {
    /// One tier within a transaction.
    struct TierState {
        var entries = 0
        var bytes = 0
        var insertions = 0
        var evictions = 0
        /// The number of the key remembered last, and that below which they are forgotten.
        var ghosts = 0
        var ghostFloor = 0
        var ghostBuckets = 0
        var isChanged = false
    }

    /// What else a transaction has to know, read with the tiers.
    struct Known {
        /// Nothing begun before this generation is stored; and of what is begun from the last purge on, everything.
        var floor = 0
        var lastPurge = 0
        /// Where the slots of the pack end, in units.
        var end = 0
        /// Whether files wait to be deleted.
        var hasDiscarded = false
        /// The number that the next new original is given; nil until it is looked for.
        var nextOriginal: Int?
    }

    /// Takes over what the tiers hold and how far the policies have come: other processes store and evict too, and a
    /// transaction may have failed.
    func readTiers(_ connection: SQLiteConnection) throws(StoreError) {
        // One statement, since each costs as much as what it reads here.
        let rows = try connection.rows(
            """
            SELECT name, clock, entries, bytes, ghosts, ghost_floor, ghost_buckets, pack, \
            (SELECT value FROM state WHERE name = 'floor'), (SELECT max(generation) FROM purges), \
            EXISTS (SELECT 1 FROM discarded) FROM tiers
            """
        ) { row in
            var state = TierState()
            state.entries = row.count(2)
            state.bytes = row.count(3)
            state.ghosts = row.count(4)
            state.ghostFloor = row.count(5)
            let buckets = row.count(6)
            state.ghostBuckets = KeyFile.isSize(buckets) ? buckets : 0
            let known = Known(
                floor: row.count(8), lastPurge: row.count(9), end: row.count(7), hasDiscarded: row.integer(10) != 0)
            return (tier: DiskTier(rawValue: row.text(0)), clock: row.real(1), state: state, known: known)
        }
        for row in rows {
            guard let tier = row.tier else { continue }
            if tier == .variants { known = row.known }
            policies[tier].clock = row.clock
            states[tier] = row.state
        }
    }

    func note(_ tier: DiskTier, _ change: (inout StoreCounters) -> Void) {
        change(&noted[tier])
        notes += 1
    }

    /// Rows whose uses one transaction writes at most: it holds up who looks something up for so long.
    private static let rowsInStep = 512
    /// Seconds after which uses are written however few they are.
    private static let longestNote = 30.0

    /// Notes a use of a row, to be written once there are many, or some time has passed: neighbours share a page, and the
    /// more there are the more neighbours.
    func touch(_ tier: DiskTier, row: Int) {
        let now = Self.now()
        var touch = touches[tier][row] ?? Touch(time: now)
        policies[tier].touch(&touch.entry, uses: 1, now: now)
        touch.time = now
        touches[tier][row] = touch
        notes += 1
        touchesSinceStep += 1
        if notedSince == 0 { notedSince = now }
        if dueUses.isEmpty {
            let noted = touches.originals.count + touches.variants.count + touches.records.count
            if noted >= configuration.touchBatch || now - notedSince > Self.longestNote { makeUsesDue() }
        }
        // A step for as many new ones. A full disk must not turn a hit into an error: the notes wait. A transaction under
        // way, which may be what notes the use, writes some at its end.
        if !dueUses.isEmpty, !isWriting, touchesSinceStep >= Self.rowsInStep || dueUses.count <= Self.rowsInStep {
            touchesSinceStep = 0
            try? write { _ in }
        }
    }

    /// Takes up all rows that have been used so far, in the order they lie in.
    private func makeUsesDue() {
        dueUses = []
        for tier in DiskTier.allCases {
            dueUses += touches[tier].keys.sorted(by: >).map { (tier, $0) }
        }
        notedSince = 0
    }

    /// Writes what is noted.
    func flush() throws(StoreError) {
        makeUsesDue()
        while notes > 0 || !dueUses.isEmpty { try write { _ in } }
    }

    func forgetNotes() {
        for tier in DiskTier.allCases {
            touches[tier] = [:]
            noted[tier] = StoreCounters()
        }
        notes = 0
        dueUses = []
        (touchesSinceStep, notedSince) = (0, 0)
    }

    /// Writes the uses of the next rows that are due.
    /// - Returns: how many rows.
    func mergeTouches(_ connection: SQLiteConnection) throws(StoreError) -> Int {
        let rows = dueUses.suffix(Self.rowsInStep)
        for (tier, row) in rows.reversed() {
            // Not there: the row went meanwhile.
            guard let touch = touches[tier][row] else { continue }
            try connection.run(
                tier.use, .integer(row), .integer(Int(touch.entry.uses)), .real(touch.entry.since), .real(touch.time))
        }
        return rows.count
    }

    /// Forgets what a transaction has written, now that it has committed.
    func forgetWritten(_ rows: Int) {
        for (tier, row) in dueUses.suffix(rows) { touches[tier][row] = nil }
        dueUses.removeLast(rows)
        for tier in DiskTier.allCases { noted[tier] = StoreCounters() }
        notes = touches.originals.count + touches.variants.count + touches.records.count
    }

    /// Writes what the tiers hold, and the counts that are noted.
    func writeTiers(_ connection: SQLiteConnection, withNotes: Bool = true) throws(StoreError) {
        for tier in DiskTier.allCases {
            let (state, counters) = (states[tier], withNotes ? noted[tier] : StoreCounters())
            guard state.isChanged || counters != StoreCounters() else { continue }
            try connection.run(
                """
                UPDATE tiers SET entries = ?2, bytes = ?3, insertions = insertions + ?4, evictions = evictions + ?5, \
                clock = max(clock, ?6), ghosts = ?7, ghost_floor = ?8, ghost_buckets = ?9, hits = hits + ?10, \
                misses = misses + ?11, refused = refused + ?12, corrupt = corrupt + ?13, stale = stale + ?14, \
                bytes_saved = bytes_saved + ?15, milliseconds_saved = milliseconds_saved + ?16, pack = ?17 WHERE name = ?1
                """, .text(tier.rawValue), .integer(state.entries), .integer(state.bytes), .integer(state.insertions),
                .integer(state.evictions), .real(policies[tier].clock), .integer(state.ghosts),
                .integer(state.ghostFloor), .integer(state.ghostBuckets), .integer(counters.hits),
                .integer(counters.misses), .integer(counters.refused), .integer(counters.corrupt),
                .integer(counters.stale), .integer(counters.bytesSaved), .real(counters.millisecondsSaved),
                .integer(tier == .variants ? known.end : 0))
            states[tier].isChanged = false
            states[tier].insertions = 0
            states[tier].evictions = 0
        }
    }

    /// Entries and bytes of each tier, those of the transaction under way included.
    func sums() throws(StoreError) -> PerTier<TierState> {
        if !isWriting { try readTiers(try connection) }
        return states
    }

    func charge(_ tier: DiskTier, _ size: Int) {
        states[tier].bytes += size
        states[tier].entries += 1
        states[tier].isChanged = true
    }

    func uncharge(_ tier: DiskTier, _ size: Int) {
        states[tier].bytes -= size
        states[tier].entries -= 1
        states[tier].isChanged = true
    }

    // MARK: Ghosts

    /// Counts and remembers an entry that is no longer there, and moves the clock.
    /// - Parameter newcomers: entries that stay and are not counted yet.
    func wentAway(_ tier: DiskTier, _ entry: EvictionEntry, _ key: GhostKey, newcomers: Int) {
        policies[tier].evicted(entry)
        states[tier].evictions += 1
        states[tier].ghosts += 1
        states[tier].isChanged = true
        guard policies[tier].remembersEvicted else { return }
        var state = states[tier]
        if state.ghostBuckets == 0 { state.ghostBuckets = KeyFile.leastBuckets }
        // Half full at most, so that a bucket hardly ever loses a key before its time.
        while state.entries > 4 * state.ghostBuckets, state.ghostBuckets < KeyFile.mostBuckets {
            ghosts[tier].double(from: state.ghostBuckets)
            state.ghostBuckets *= 2
        }
        ghosts[tier].insert(key.hash, number: state.ghosts, buckets: state.ghostBuckets)
        state.ghostFloor = max(state.ghostFloor, state.ghosts - state.entries - newcomers)
        states[tier] = state
    }

    func isGhost(_ tier: DiskTier, _ key: GhostKey) -> Bool {
        let state = states[tier]
        return policies[tier].remembersEvicted
            && ghosts[tier].contains(
                key.hash, above: state.ghostFloor, last: state.ghosts, buckets: state.ghostBuckets)
    }
}
