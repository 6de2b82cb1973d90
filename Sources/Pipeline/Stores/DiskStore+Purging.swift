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
        try lookUp { view throws(StoreError) in try view.connection.generation() } ?? 1
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
        var result = PurgeResult()
        var isDone = false
        // In one transaction, but for variants that go before where there is no room for all of it.
        while !isDone {
            let all = result.digests.union(digests)
            let (removed, isWhole) = try deleting { index, limit throws(StoreError) in
                try index.write { _ throws(StoreError) in
                    var isWhole = false
                    var removed = try index.counting { () throws(StoreError) in
                        let found = try index.remove(source, all, variants: limit < Self.step ? limit : .max)
                        isWhole = found.isWhole
                        return found.digests
                    }
                    guard isWhole else { return (removed, false) }
                    removed.generation = try index.nextGeneration()
                    try index.remember(removed.digests.union([source]), removed.generation)
                    return (removed, true)
                }
            }
            result.add(removed)
            result.generation = removed.generation
            isDone = isWhole
        }
        result.sources = result.records + result.originals + result.variants > 0 ? 1 : 0
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
                let step = try deleting(atMost: Self.sourcesAtOnce) { index, limit throws(StoreError) in
                    try index.write { _ throws(StoreError) -> (removed: PurgeResult, next: String)? in
                        let sources = try index.sources(from: start, below: range.below, limit: limit)
                        guard !sources.isEmpty else { return nil }
                        let variants = limit < Self.sourcesAtOnce ? Self.variantsWhenShort : .max
                        var next = start
                        var count = 0
                        var removed = try index.counting { () throws(StoreError) in
                            var digests: Set<Digest> = []
                            for source in sources {
                                let found = try index.remove(source, variants: variants)
                                digests.formUnion(found.digests)
                                // The rest of it comes next, which finds the source again.
                                guard found.isWhole else { break }
                                count += 1
                                // The text that follows it, and nothing in between.
                                next = source + "\0"
                            }
                            return digests
                        }
                        removed.sources = count
                        return (removed, next)
                    }
                }
                guard let step else { break }
                result.add(step.removed)
                from = step.next
                yieldToOthers()
            }
        }
        // Once more, for what another process has taken into memory in the meantime.
        result.generation = try voidWorkBegun()
        shrink()
        return result
    }

    /// Sources that are removed in one transaction.
    private static let sourcesAtOnce = 64
    /// Variants of one source that are, where room is short.
    private static let variantsWhenShort = 16

    private func voidWorkBegun() throws(StoreError) -> UInt64 {
        try deleting { index, _ throws(StoreError) in
            try index.write { _ throws(StoreError) in try index.voidWorkBegun() }
        }
    }

    /// Removes everything, and voids all work begun before. Counts of hits and misses stay.
    /// - Returns: what there was, without sources and digests.
    @discardableResult
    public func clear() throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        var isDone = false
        while !isDone {
            let (removed, isWhole) = try deleting { index, limit throws(StoreError) in
                // Where there is no room for all at once, which takes little, entries go before.
                if limit < Self.step, let removed = try index.removeSome(limit) { return (removed, false) }
                return (try index.removeAll(), true)
            }
            result.add(removed)
            result.generation = removed.generation
            isDone = isWhole
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

    /// Everything, in a transaction of its own, and voids all work begun before.
    fileprivate func removeAll() throws(StoreError) -> PurgeResult {
        let removed = try write { connection throws(StoreError) in
            let generation = try voidWorkBegun()
            var result = try counting { () throws(StoreError) in
                let files = try connection.rows(
                    """
                    SELECT digest FROM variants WHERE place IS NULL \
                    UNION SELECT digest FROM originals WHERE place IS NULL
                    """
                ) { $0.digest(0) }
                for digest in files { try discard(digest) }
                for table in ["digests", "records", "originals", "variants", "shared", "links", "purges", "free"] {
                    try connection.run("DELETE FROM \(table)")
                }
                try emptyTiers()
                return []
            }
            result.generation = generation
            return result
        }
        uses.empty()
        notedUses = NotedUses()
        return removed
    }

    /// So many entries, in a transaction of their own; nil where there is none.
    fileprivate func removeSome(_ limit: Int) throws(StoreError) -> PurgeResult? {
        try write { connection throws(StoreError) in
            for tier in [DiskTier.variants, .originals, .records] {
                let rows = try connection.rows("SELECT id FROM \(tier.rawValue) LIMIT ?1", .integer(limit)) {
                    $0.integer(0)
                }
                if rows.isEmpty { continue }
                return try counting { () throws(StoreError) in
                    for row in rows { try removeRow(tier, row) }
                    return []
                }
            }
            return nil
        }
    }

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
    ///
    /// - Parameter limit: variants that go at most; where there are as many, nothing but variants goes.
    /// - Returns: every digest the source has had, and whether nothing of it is left.
    fileprivate func remove(
        _ source: String, _ more: Set<Digest> = [], variants limit: Int
    ) throws(StoreError) -> (digests: Set<Digest>, isWhole: Bool) {
        let connection = try connection
        let found = try connection.rows(
            """
            SELECT original, digest FROM links CROSS JOIN digests ON digests.head = links.head AND id = original \
            WHERE links.source = ?1 UNION SELECT original, digest FROM records WHERE source = ?1
            """, .text(source)
        ) { (number: $0.integer(0), digest: $0.digestKey(1)) }
        let known = Set(found.compactMap(\.digest).map(\.text))
        var originals = found.map { NumberedOriginal($0.number, $0.digest) }
        for digest in more.subtracting(known) {
            if let key = DigestKey(digest), let id = try original(key) { originals.append(NumberedOriginal(id, key)) }
        }
        var left = limit
        for original in originals {
            let range = Self.variants(of: original.number)
            let variants = try connection.rows(
                "SELECT id FROM variants WHERE id >= ?1 AND id < ?2 LIMIT ?3", .integer(range.lowerBound),
                .integer(range.upperBound), .integer(left)
            ) { $0.integer(0) }
            for id in variants { try removeRow(.variants, id) }
            left -= variants.count
            if left == 0 { return (known.union(more), false) }
        }
        let records = try connection.rows("SELECT id FROM records WHERE source = ?1", .text(source)) { $0.integer(0) }
        for id in records { try removeRow(.records, id) }
        for original in originals { try dropUnrecorded(original) }
        try forgetLinks(of: source, originals)
        return (known.union(more), true)
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
