/// An original as listed.
public struct ListedOriginal: Sendable, Hashable {
    /// What is remembered of it.
    public var record: OriginalRecord
    /// Whether the body is stored too.
    public var hasBody: Bool
    /// Unix seconds.
    public var lastUsed: Double
    /// Hits since it was stored.
    public var uses: Int
    /// Where the next page begins.
    public var position: Int
}

/// A variant as listed.
public struct ListedVariant: Sendable, Hashable {
    /// What is known of it.
    public var entry: VariantEntry
    /// Unix seconds.
    public var lastUsed: Double
    /// Hits since it was stored.
    public var uses: Int
    /// Where the next page begins.
    public var position: Int
}

/// What the store knows about a source, a key or a digest.
public struct Inspection: Sendable, Hashable {
    /// Originals found.
    public var originals: [ListedOriginal]
    /// Variants found.
    public var variants: [ListedVariant]

    /// Whether nothing was found.
    public var isEmpty: Bool { originals.isEmpty && variants.isEmpty }
}

extension DiskStore {
    /// What the tiers hold, and what all processes have done with them since the folder was made. `records` counts
    /// the records of originals, which have a budget of their own.
    public func statistics() throws(StoreError) -> (
        originals: StoreCounters, variants: StoreCounters, records: StoreCounters
    ) {
        let all = try perform { index throws(StoreError) in try index.counters() }
        return (all[.originals] ?? .init(), all[.variants] ?? .init(), all[.records] ?? .init())
    }

    /// Records in the order they were stored, a page at a time.
    /// - Parameter after: `position` of the last one of the page before; 0 begins.
    public func originals(after: Int = 0, limit: Int = 100) throws(StoreError) -> [ListedOriginal] {
        try perform { index throws(StoreError) in
            try index.recordRows("WHERE id > ?1 ORDER BY id", .integer(after), limit).compactMap(ListedOriginal.init)
        }
    }

    /// Variants in the order they were stored, a page at a time.
    /// - Parameter after: `position` of the last one of the page before; 0 begins.
    public func variants(after: Int = 0, limit: Int = 100) throws(StoreError) -> [ListedVariant] {
        try perform { index throws(StoreError) in
            try index.variantRows("WHERE id > ?1 ORDER BY id", .integer(after), limit).compactMap(ListedVariant.init)
        }
    }

    /// What there is under a source (with all variants of its digests), or under the beginning of a variant's key, of
    /// a variant's digest or of an original's digest (at least 4 hexadecimal digits).
    public func inspect(_ text: String, limit: Int = 100) throws(StoreError) -> Inspection {
        let isHexadecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        let isPrefix = (4...64).contains(text.utf8.count) && isHexadecimal
        return try perform { index throws(StoreError) in
            var found = Inspection(originals: [], variants: [])
            let bySource = "WHERE source = ?1 ORDER BY id"
            found.originals = try index.recordRows(bySource, .text(text), limit).compactMap(ListedOriginal.init)
            let byLink = "WHERE original IN (SELECT digest FROM links WHERE source = ?1) ORDER BY id"
            found.variants = try index.variantRows(byLink, .text(text), limit).compactMap(ListedVariant.init)
            guard found.isEmpty, isPrefix else { return found }
            // "g" follows every hexadecimal digit: a range of the index instead of a scan.
            let byDigest = "WHERE digest >= ?1 AND digest < ?1 || 'g' ORDER BY digest"
            found.originals = try index.recordRows(byDigest, .text(text), limit).compactMap(ListedOriginal.init)
            for column in ["key", "digest", "original"] {
                let byColumn = "WHERE \(column) >= ?1 AND \(column) < ?1 || 'g' ORDER BY \(column)"
                let rows = try index.variantRows(byColumn, .text(text), limit).compactMap(ListedVariant.init)
                for row in rows where !found.variants.contains(row) { found.variants.append(row) }
            }
            return found
        }
    }
}

extension ListedOriginal {
    /// nil for a damaged row; `verify` reports those.
    fileprivate init?(_ row: DiskIndex.RecordRow) {
        guard let record = row.record else { return nil }
        self.init(
            record: record, hasBody: row.hasBody, lastUsed: row.touched, uses: row.uses, position: row.id)
    }
}

extension ListedVariant {
    /// nil for a damaged row; `verify` reports those.
    fileprivate init?(_ row: DiskIndex.VariantRow) {
        guard let entry = row.entry else { return nil }
        self.init(entry: entry, lastUsed: row.touched, uses: row.uses, position: row.id)
    }
}

extension DiskIndex {
    /// Counts as stored, with what is noted and not yet written added.
    fileprivate func counters() throws(StoreError) -> [DiskTier: StoreCounters] {
        let rows = try connection.rows(
            "SELECT name, hits, misses, insertions, evictions, refused, corrupt, entries, bytes FROM tiers"
        ) { row in
            var counters = StoreCounters()
            counters.hits = row.integer(1)
            counters.misses = row.integer(2)
            counters.insertions = row.integer(3)
            counters.evictions = row.integer(4)
            counters.refused = row.integer(5)
            counters.corrupt = row.integer(6)
            counters.entries = row.integer(7)
            counters.bytes = row.integer(8)
            return (name: row.text(0), counters: counters)
        }
        var all: [DiskTier: StoreCounters] = [:]
        for row in rows {
            guard let tier = DiskTier(rawValue: row.name) else { continue }
            var counters = row.counters
            let noted = noted[tier] ?? StoreCounters()
            counters.hits += noted.hits
            counters.misses += noted.misses
            counters.refused += noted.refused
            counters.corrupt += noted.corrupt
            counters.budget = budget(of: tier)
            all[tier] = counters
        }
        return all
    }
}
