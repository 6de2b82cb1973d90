/// What a purge removed.
public struct PurgeResult: Sendable, Hashable {
    /// Sources that anything was stored of.
    public var sources = 0
    /// Records removed.
    public var records = 0
    /// Bodies of originals.
    public var originals = 0
    /// Variants removed.
    public var variants = 0
    /// Bytes of the bodies and variants removed.
    public var bytes = 0
    /// Every digest the sources were known to have had: what other tiers need to remove their variants.
    public var digests: Set<Digest> = []
    /// Work begun at an earlier generation no longer stores anything of these sources.
    public var generation: UInt64 = 0

    public init() {}
}

/// What was purged between two generations.
public struct PurgeLog: Sendable, Hashable {
    /// The later generation.
    public var generation: UInt64
    /// Sources, and digests of originals; nil where that is not known any more, or is too much: take it as everything.
    public var names: Set<String>?

    /// Names beyond which emptying the memory is quicker than going through it.
    static let limit = 10_000
}

extension DiskStore {
    /// The generation to hand to what stores later: a purge in between makes that storing void.
    public func generationNow() throws(StoreError) -> UInt64 {
        try perform { index throws(StoreError) in try index.generation() }
    }

    /// The generation as any process left it last, without touching the disk; 0 where the folder cannot tell. It may be
    /// ahead of `generationNow()` for the moment a purge takes to commit.
    public var generationHint: UInt64 { generationPage.value }

    /// What was purged since a generation, by any process.
    public func purges(since generation: UInt64) throws(StoreError) -> PurgeLog {
        try perform { index throws(StoreError) in
            var now = try index.generation()
            let hint = index.shared.value
            if hint != 0, hint != now {
                index.shareGeneration()
                now = try index.generation()
            }
            if now == generation { return PurgeLog(generation: now, names: []) }
            let connection = try index.connection
            let floor = try connection.first("SELECT value FROM state WHERE name = 'floor'") { $0.count(0) } ?? 0
            guard now > generation, generation >= UInt64(floor) else { return PurgeLog(generation: now, names: nil) }
            let names = try connection.rows(
                "SELECT name FROM purges WHERE generation > ?1 LIMIT ?2", .integer(Int(generation)),
                .integer(PurgeLog.limit + 1)
            ) { $0.text(0) }
            return PurgeLog(generation: now, names: names.count > PurgeLog.limit ? nil : Set(names))
        }
    }

    /// Removes a source's records, their bodies, and all variants of every digest the source has had, also where
    /// another source has the same bytes. A body stays where another source's record speaks of it.
    ///
    /// - Parameter digests: further originals known to be the source's, where no record says so.
    public func purge(source: String, digests: Set<Digest> = []) throws(StoreError) -> PurgeResult {
        let result = try deleting { index, _ throws(StoreError) in
            try index.write { _ throws(StoreError) in
                let generation = try index.nextGeneration()
                var result = try index.counting { () throws(StoreError) in try index.remove(source, digests) }
                result.sources = result.records + result.originals + result.variants > 0 ? 1 : 0
                result.generation = generation
                try index.remember(result.digests.union([source]), generation)
                return result
            }
        }
        shrink()
        return result
    }

    /// Removes every source of a selection as `purge(source:)` does one, in transactions of 64 sources, and takes as
    /// long as what it removes, however much else is stored.
    ///
    /// All work begun before stores nothing afterwards, that of other sources included: which source somebody is about
    /// to store nobody knows. What is begun and stored while this runs may be removed or stay.
    public func purge(_ selection: SourceSelection) throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        _ = try voidWorkBegun()
        for range in selection.ranges {
            var from = range.from
            while true {
                let start = from
                let step = try deleting(atMost: 64) { index, limit throws(StoreError) in
                    try index.write { _ throws(StoreError) -> (removed: PurgeResult, last: String)? in
                        let sources = try index.sources(from: start, below: range.below, limit: limit)
                        guard let last = sources.last else { return nil }
                        var removed = try index.counting { () throws(StoreError) in
                            var digests: Set<Digest> = []
                            for source in sources { digests.formUnion(try index.remove(source)) }
                            return digests
                        }
                        removed.sources = sources.count
                        return (removed, last)
                    }
                }
                guard let step else { break }
                result.add(step.removed)
                // The text that follows it, and nothing in between.
                from = step.last + "\0"
                yieldToOthers()
            }
        }
        // Once more, for what another process has taken into memory in the meantime.
        result.generation = try voidWorkBegun()
        shrink()
        return result
    }

    private func voidWorkBegun() throws(StoreError) -> UInt64 {
        try deleting { index, _ throws(StoreError) in
            try index.write { _ throws(StoreError) in try index.voidWorkBegun() }
        }
    }

    /// Removes everything, and voids all work begun before. Counts of hits and misses stay.
    /// - Returns: what there was, without sources and digests.
    @discardableResult
    public func clear() throws(StoreError) -> PurgeResult {
        let result = try deleting { index, _ throws(StoreError) in
            try index.write { connection throws(StoreError) in
                let generation = try index.voidWorkBegun()
                var result = try index.counting { () throws(StoreError) in
                    let files = try connection.rows(
                        """
                        SELECT digest FROM variants WHERE place IS NULL UNION SELECT digest FROM originals \
                        JOIN digests USING (id) WHERE place IS NULL
                        """
                    ) { $0.digest(0) }
                    for digest in files {
                        try index.discard(digest)
                    }
                    for table in ["digests", "records", "originals", "variants", "links", "purges", "free"] {
                        try connection.run("DELETE FROM \(table)")
                    }
                    try index.emptyTiers()
                    return []
                }
                result.generation = generation
                return result
            }
        }
        shrink()
        files.removeSetAside()
        return result
    }
}

extension PurgeResult {
    fileprivate mutating func add(_ other: PurgeResult) {
        sources += other.sources
        records += other.records
        originals += other.originals
        variants += other.variants
        bytes += other.bytes
        digests.formUnion(other.digests)
    }
}

/// All of it inside a write transaction of the caller.
extension DiskIndex {
    /// Seconds for which a purge is remembered by name. Work older than that is refused whatever it stores.
    private static let purgeMemory = 3_600.0

    /// Raises the generation, and the floor to it: nothing begun before is stored, whatever its name.
    fileprivate func voidWorkBegun() throws(StoreError) -> UInt64 {
        let generation = try nextGeneration()
        try connection.run("UPDATE state SET value = ?1 WHERE name = 'floor'", .integer(Int(generation)))
        known.floor = Int(generation)
        return generation
    }

    /// Stored names from `from` up to `below`, sorted.
    fileprivate func sources(from: String, below: [UInt8], limit: Int) throws(StoreError) -> [String] {
        let range = "source >= ?1 AND source < CAST(?2 AS TEXT)"
        return try connection.rows(
            "SELECT source FROM links WHERE \(range) UNION SELECT source FROM records WHERE \(range) ORDER BY 1 LIMIT ?3",
            .text(from), .blob(below), .integer(limit)
        ) { $0.text(0) }
    }

    /// Removes what is stored of a source; a body that another source's record speaks of stays.
    /// - Returns: every digest the source has had.
    fileprivate func remove(_ source: String, _ more: Set<Digest> = []) throws(StoreError) -> Set<Digest> {
        let connection = try connection
        var originals = try connection.rows(
            """
            SELECT id, digest FROM digests WHERE id IN (SELECT original FROM links WHERE source = ?1 \
            UNION SELECT original FROM records WHERE source = ?1)
            """, .text(source)
        ) { (id: $0.integer(0), digest: $0.digest(1)) }
        let known = Set(originals.map(\.digest))
        for digest in more.subtracting(known) {
            if let key = DigestKey(digest), let id = try original(key) { originals.append((id, digest)) }
        }
        for (id, _) in originals {
            let range = Self.variants(of: id)
            let variants = try connection.rows(
                "SELECT id FROM variants WHERE id >= ?1 AND id < ?2", .integer(range.lowerBound),
                .integer(range.upperBound)
            ) { $0.integer(0) }
            for id in variants { try removeRow(.variants, id) }
        }
        let records = try connection.rows("SELECT id FROM records WHERE source = ?1", .text(source)) { $0.integer(0) }
        for id in records { try removeRow(.records, id) }
        for (id, _) in originals { try dropUnrecorded(id) }
        try connection.run("DELETE FROM links WHERE source = ?1", .text(source))
        return known.union(more)
    }

    /// What `body` removes, by the sums of the tiers, and the digests it returns.
    fileprivate func counting(
        _ body: () throws(StoreError) -> Set<Digest>
    ) throws(StoreError) -> PurgeResult {
        let before = try sums()
        var result = PurgeResult()
        result.digests = try body()
        let after = try sums()
        func difference(_ tier: DiskTier, _ path: KeyPath<TierState, Int>) -> Int {
            before[tier][keyPath: path] - after[tier][keyPath: path]
        }
        result.records = difference(.records, \.entries)
        result.originals = difference(.originals, \.entries)
        result.variants = difference(.variants, \.entries)
        result.bytes = difference(.originals, \.bytes) + difference(.variants, \.bytes)
        return result
    }

    /// Inside a transaction that has deleted all rows.
    fileprivate func emptyTiers() throws(StoreError) {
        for tier in DiskTier.allCases {
            states[tier].entries = 0
            states[tier].bytes = 0
            states[tier].ghostFloor = states[tier].ghosts
            states[tier].isChanged = true
        }
        setEnd(0)
    }

    fileprivate func remember(_ names: Set<String>, _ generation: UInt64) throws(StoreError) {
        let connection = try connection
        let now = Self.now()
        for name in names {
            try connection.run(
                "INSERT OR REPLACE INTO purges VALUES (?1, ?2, ?3)", .text(name), .integer(Int(generation)), .real(now))
        }
        let forgotten = try connection.rows(
            "DELETE FROM purges WHERE time < ?1 RETURNING generation", .real(now - Self.purgeMemory)
        ) { $0.count(0) }
        known.lastPurge = Int(generation)
        if let floor = forgotten.max() {
            try connection.run("UPDATE state SET value = max(value, ?1) WHERE name = 'floor'", .integer(floor))
            known.floor = max(known.floor, floor)
        }
    }
}
