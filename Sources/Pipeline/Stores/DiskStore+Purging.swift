/// What a purge of one source removed.
public struct PurgeResult: Sendable, Hashable {
    /// Records removed.
    public var records = 0
    /// Bodies of originals.
    public var originals = 0
    /// Variants removed.
    public var variants = 0
    /// Bytes of the bodies and variants removed.
    public var bytes = 0
    /// Every digest the source was known to have had: what other tiers need to remove their variants.
    public var digests: Set<Digest> = []
    /// Work begun at an earlier generation no longer stores anything of this source.
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

/// What a trim removed.
public struct TrimResult: Sendable, Hashable {
    /// Bodies of originals removed.
    public var originals = 0
    /// Variants removed.
    public var variants = 0
    /// Bytes given back.
    public var bytes = 0

    public init() {}
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
            let floor = try connection.first("SELECT value FROM state WHERE name = 'floor'") { $0.integer(0) } ?? 0
            guard now > generation, generation >= UInt64(floor) else { return PurgeLog(generation: now, names: nil) }
            let names = try connection.rows(
                "SELECT name FROM purges WHERE generation > ?1 LIMIT ?2", .integer(Int(generation)),
                .integer(PurgeLog.limit + 1)
            ) { $0.text(0) }
            return PurgeLog(generation: now, names: names.count > PurgeLog.limit ? nil : Set(names))
        }
    }

    /// Removes a source's records, their bodies, and all variants of every digest the source has had, also where
    /// another source has the same bytes.
    ///
    /// - Parameter digests: further originals known to be the source's, where no record says so.
    public func purge(source: String, digests: Set<Digest> = []) throws(StoreError) -> PurgeResult {
        try perform { index throws(StoreError) in
            let result = try index.write { _ throws(StoreError) in try index.purge(source, digests) }
            try index.shrink()
            return result
        }
    }

    /// Removes everything, and voids all work begun before. Counts of hits and misses stay.
    public func clear() throws(StoreError) {
        try perform { index throws(StoreError) in
            try index.write { connection throws(StoreError) in
                try connection.run(
                    "INSERT OR IGNORE INTO discarded SELECT digest FROM bodies WHERE data IS NULL")
                for table in ["bodies", "records", "originals", "variants", "links", "purges", "ghosts"] {
                    try connection.run("DELETE FROM \(table)")
                }
                try connection.run("UPDATE tiers SET entries = 0, bytes = 0")
                let generation = try index.nextGeneration()
                try connection.run(
                    "UPDATE state SET value = ?1 WHERE name = 'floor'", .integer(Int(generation)))
            }
            try index.shrink()
        }
        files.removeSetAside()
    }

    /// Removes bodies of originals and variants that were stored before `olderThan`, or were last used before
    /// `unusedSince` (both Unix seconds; nil sets no bound). Records stay.
    public func trim(olderThan: Double?, unusedSince: Double?) throws(StoreError) -> TrimResult {
        try perform { index throws(StoreError) in
            try index.flush()
            let result = try index.write { connection throws(StoreError) in
                var result = TrimResult()
                let variants = try connection.rows(
                    "SELECT id, size FROM variants WHERE created < ?1 OR touched < ?2",
                    .real(olderThan ?? -.infinity), .real(unusedSince ?? -.infinity)
                ) { (id: $0.integer(0), size: $0.integer(1)) }
                for row in variants {
                    try index.removeRow(.variants, row.id)
                    result.variants += 1
                    result.bytes += row.size
                }
                // An original is as old as the newest response that carried or confirmed it.
                let originals = try connection.rows(
                    """
                    SELECT id, size FROM originals WHERE touched < ?2 OR coalesce((SELECT max(stored) FROM records \
                    WHERE records.digest = originals.digest), 0) < ?1
                    """, .real(olderThan ?? -.infinity), .real(unusedSince ?? -.infinity)
                ) { (id: $0.integer(0), size: $0.integer(1)) }
                for row in originals {
                    try index.removeRow(.originals, row.id)
                    result.originals += 1
                    result.bytes += row.size
                }
                return result
            }
            try index.shrink()
            return result
        }
    }
}

extension DiskIndex {
    /// Seconds for which a purge is remembered by name. Work older than that is refused whatever it stores.
    private static let purgeMemory = 3_600.0

    fileprivate func purge(_ source: String, _ digests: Set<Digest>) throws(StoreError) -> PurgeResult {
        let connection = try connection
        var result = PurgeResult()
        result.generation = try nextGeneration()
        result.digests = Set(
            try connection.rows(
                "SELECT digest FROM links WHERE source = ?1 UNION SELECT digest FROM records WHERE source = ?1",
                .text(source)
            ) { $0.text(0) }
        ).union(digests)
        let before = try bytes()
        for digest in result.digests {
            let originals = try connection.rows("SELECT id FROM originals WHERE digest = ?1", .text(digest)) {
                $0.integer(0)
            }
            for id in originals { try removeRow(.originals, id) }
            result.originals += originals.count
            let variants = try connection.rows("SELECT id FROM variants WHERE original = ?1", .text(digest)) {
                $0.integer(0)
            }
            for id in variants { try removeRow(.variants, id) }
            result.variants += variants.count
        }
        let records = try connection.rows("SELECT id FROM records WHERE source = ?1", .text(source)) { $0.integer(0) }
        for id in records { try removeRow(.records, id) }
        result.records = records.count
        result.bytes = before - (try bytes())
        try connection.run("DELETE FROM links WHERE source = ?1", .text(source))
        try remember(result, source)
        return result
    }

    private func bytes() throws(StoreError) -> Int {
        try connection.first("SELECT sum(bytes) FROM tiers WHERE name IN ('originals', 'variants')") {
            $0.integer(0)
        } ?? 0
    }

    private func remember(_ result: PurgeResult, _ source: String) throws(StoreError) {
        let connection = try connection
        let now = Self.now()
        for name in result.digests.union([source]) {
            try connection.run(
                "INSERT OR REPLACE INTO purges VALUES (?1, ?2, ?3)", .text(name),
                .integer(Int(result.generation)), .real(now))
        }
        let forgotten = try connection.rows(
            "DELETE FROM purges WHERE time < ?1 RETURNING generation", .real(now - Self.purgeMemory)
        ) { $0.integer(0) }
        if let floor = forgotten.max() {
            try connection.run("UPDATE state SET value = max(value, ?1) WHERE name = 'floor'", .integer(floor))
        }
    }
}
