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

    func forgetNotes() {
        for tier in DiskTier.allCases { noted[tier] = StoreCounters() }
        notes = 0
        countedSince = 0
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
