/// An original as listed.
public struct ListedOriginal: Sendable, Hashable {
    /// What is remembered of it.
    public var record: OriginalRecord
    /// Whether the body is stored too.
    public var hasBody: Bool
    /// When the record was written last, Unix seconds.
    public var stored: Double
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

/// Tiers whose entries have bodies; the records of originals go with them, and have a budget of their own.
public enum EntryTier: String, Sendable, Hashable, CaseIterable {
    case originals, variants
}

/// An entry as listed.
public enum ListedEntry: Sendable, Hashable {
    case original(ListedOriginal)
    case variant(ListedVariant)
}

/// Which entries to list, and in which order.
public struct ListRequest: Sendable, Hashable {
    /// What comes first is what somebody who cleans up looks for first.
    public enum Order: String, Sendable, Hashable, CaseIterable {
        /// Originals, then variants, as they were stored.
        case stored
        /// The longest body.
        case size
        /// What was stored longest ago.
        case age
        /// What was last used longest ago.
        case lastUse = "last-use"
        /// What was used most.
        case hits
        /// What took longest to fetch or to render.
        case cost
    }

    /// `stored` by default.
    public var order = Order.stored
    /// The other way round.
    public var isReversed = false
    /// Both by default.
    public var tiers = Set(EntryTier.allCases)
    /// What belongs to these sources; a variant belongs to each source that has had its original.
    public var sources = SourceFilter()
    /// Variants whose recipe's canonical text fits this pattern (`*`, `?`, `[abc]`), and no originals.
    public var recipe: String?
    /// At most so many; nil for all.
    public var limit: Int?

    public init() {}
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
            try index.connection.recordRows("WHERE id > ?1 ORDER BY id", .integer(after), limit).compactMap(
                index.listed)
        }
    }

    /// Variants by original, in the order the first of each was stored, a page at a time.
    /// - Parameter after: `position` of the last one of the page before; 0 begins.
    public func variants(after: Int = 0, limit: Int = 100) throws(StoreError) -> [ListedVariant] {
        try perform { index throws(StoreError) in
            try index.connection.variantRows("WHERE id > ?1 ORDER BY id", .integer(after), limit).compactMap(
                index.listed)
        }
    }

    /// Entries that `list` hands out at a time.
    private static let page = 256

    /// Hands out entries in pages of at most 256 until `visit` returns false.
    ///
    /// In memory there is a page, and eight bytes for each entry that fits; so entries come in the order of when the call
    /// began, and those that went meanwhile are left out.
    public func list(_ request: ListRequest, visit: ([ListedEntry]) -> Bool) throws(StoreError) {
        var places = try perform { index throws(StoreError) in try index.places(request)[...] }
        while !places.isEmpty {
            let page = places.prefix(Self.page)
            places = places.dropFirst(Self.page)
            let entries = try perform { index throws(StoreError) in
                var entries: [ListedEntry] = []
                for place in page {
                    if let entry = try index.entry(at: place) { entries.append(entry) }
                }
                return entries
            }
            guard visit(entries) else { return }
        }
    }

    /// What there is under a source (with all variants of its digests), or under the beginning of a variant's key, of
    /// a variant's digest or of an original's digest (at least 4 hexadecimal digits); variants with the records of the
    /// originals they were made from.
    public func inspect(_ text: String, limit: Int = 100) throws(StoreError) -> Inspection {
        let isHexadecimal = text.lowercased().utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x61...0x66).contains($0)
        }
        let isPrefix = (4...64).contains(text.utf8.count) && isHexadecimal
        return try perform { index throws(StoreError) in
            var found = Inspection(originals: [], variants: [])
            let bySource = "WHERE source = ?1 ORDER BY id"
            found.originals = try index.connection.recordRows(bySource, .text(text), limit).compactMap(index.listed)
            let bySourceToo = SourceFilter.Condition(sql: "source = ?1", values: []).variants
            found.variants = try index.connection.variantRows("WHERE \(bySourceToo) ORDER BY id", .text(text), limit)
                .compactMap(index.listed)
            guard found.isEmpty, isPrefix, let heads = DigestKey.heads(beginning: text.lowercased()) else {
                return found
            }
            func originals(_ id: Int) throws(StoreError) {
                let rows = try index.connection.recordRows("WHERE original = ?1 ORDER BY id", .integer(id), limit)
                for row in rows.compactMap(index.listed) where !found.originals.contains(row) {
                    found.originals.append(row)
                }
            }
            func variants(_ condition: String, _ value: SQLiteValue) throws(StoreError) {
                let rows = try index.connection.variantRows("WHERE \(condition)", value, limit)
                for row in rows.compactMap(index.listed) where !found.variants.contains(row) {
                    found.variants.append(row)
                }
            }
            // A range of the index instead of a scan, and of what it finds what begins with all of the digits. Keys and
            // digests of variants have no index: who knows the original looks there.
            let ids = try index.connection.rows(
                """
                SELECT id FROM digests WHERE head BETWEEN \(heads.lowerBound) AND \(heads.upperBound) \
                AND hex(digest) LIKE ?1 || '%' ORDER BY digest LIMIT ?2
                """, .text(text), .integer(limit)
            ) { $0.integer(0) }
            for id in ids { try originals(id) }
            try variants("hex(key) LIKE ?1 || '%' ORDER BY key", .text(text))
            try variants("hex(digest) LIKE ?1 || '%' ORDER BY digest", .text(text))
            for id in ids {
                let range = DiskIndex.variants(of: id)
                try variants("id >= ?1 AND id < \(range.upperBound) ORDER BY id", .integer(range.lowerBound))
            }
            for id in Set(found.variants.map { $0.position >> DiskSchema.variantBits }) { try originals(id) }
            return found
        }
    }
}

extension DiskIndex {
    /// With uses since it was written; nil for a damaged row, which `verify` reports.
    fileprivate func listed(_ row: RecordRow) -> ListedOriginal? {
        guard let record = row.record else { return nil }
        let (lastUsed, uses) = used(.records, row.id, row.touched, row.uses)
        return ListedOriginal(
            record: record, hasBody: row.hasBody, stored: row.stored, lastUsed: lastUsed, uses: uses, position: row.id)
    }

    fileprivate func listed(_ row: VariantRow) -> ListedVariant? {
        guard let entry = row.entry else { return nil }
        let (lastUsed, uses) = used(.variants, row.id, row.touched, row.uses)
        return ListedVariant(entry: entry, lastUsed: lastUsed, uses: uses, position: row.id)
    }

    private func used(_ tier: DiskTier, _ row: Int, _ touched: Double, _ uses: Int) -> (last: Double, uses: Int) {
        let since = use(of: tier, row, written: touched)
        return (max(touched, since?.time ?? touched), min(255, uses + Int(since?.uses ?? 0)))
    }
}

extension DiskIndex {
    /// Where the entries of a listing are: a row's number doubled, plus one for variants.
    fileprivate func places(_ request: ListRequest) throws(StoreError) -> [Int] {
        let (records, variants) = (DiskTier.records, DiskTier.variants)
        let ranks: (record: String, variant: String, isDescending: Bool) =
            switch request.order {
            case .stored: ("0", "1 + (id >> \(DiskSchema.variantBits))", false)
            case .size: ("length", "length", true)
            case .age: ("stored", "created", false)
            case .lastUse: (records.lastUse, variants.lastUse, false)
            case .hits: (records.allUses, variants.allUses, true)
            case .cost: ("fetch_milliseconds", "cost", true)
            }
        var values: [SQLiteValue] = []
        var selects: [String] = []
        func add(_ table: String, _ rank: String, place: String, conditions: [String]) {
            let sql = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
            // Among equals, and among the variants of one original, those that came first.
            let next = table == "variants" ? "created" : "0"
            selects.append("SELECT \(place) AS place, \(rank) AS rank, \(next) AS next FROM \(table)\(sql)")
        }
        if request.tiers.contains(.originals), request.recipe == nil {
            let filter = request.sources.condition("source", first: 1)
            values += filter?.values ?? []
            add("records", ranks.record, place: "2 * id", conditions: filter.map { [$0.sql] } ?? [])
        }
        if request.tiers.contains(.variants) {
            var conditions: [String] = []
            if let filter = request.sources.condition("source", first: values.count + 1) {
                conditions.append(filter.variants)
                values += filter.values
            }
            if let recipe = request.recipe {
                values.append(.text(recipe))
                conditions.append("recipe GLOB ?\(values.count)")
            }
            add("variants", ranks.variant, place: "2 * id + 1", conditions: conditions)
        }
        if selects.isEmpty { return [] }
        let direction = ranks.isDescending != request.isReversed ? "DESC" : "ASC"
        let following = request.isReversed ? "DESC" : "ASC"
        values.append(.integer(request.limit.map { max(0, $0) } ?? -1))
        return try connection.rows(
            """
            SELECT place FROM (\(selects.joined(separator: " UNION ALL "))) \
            ORDER BY rank \(direction), next \(following), place \(following) LIMIT ?\(values.count)
            """, values: values
        ) { $0.integer(0) }
    }

    /// nil when it went meanwhile, or is damaged.
    fileprivate func entry(at place: Int) throws(StoreError) -> ListedEntry? {
        let id = SQLiteValue.integer(place / 2)
        if place % 2 == 0 {
            return try connection.recordRows("WHERE id = ?1", id).first.flatMap(listed).map { .original($0) }
        }
        return try connection.variantRows("WHERE id = ?1", id).first.flatMap(listed).map { .variant($0) }
    }

    /// Counts as stored, with what is noted and not yet written added.
    fileprivate func counters() throws(StoreError) -> [DiskTier: StoreCounters] {
        let rows = try connection.rows(
            """
            SELECT name, hits, misses, insertions, evictions, refused, corrupt, entries, bytes, stale, bytes_saved, \
            milliseconds_saved FROM tiers
            """
        ) { row in
            var counters = StoreCounters()
            counters.hits = row.count(1)
            counters.misses = row.count(2)
            counters.insertions = row.count(3)
            counters.evictions = row.count(4)
            counters.refused = row.count(5)
            counters.corrupt = row.count(6)
            counters.entries = row.count(7)
            counters.bytes = row.count(8)
            counters.stale = row.count(9)
            counters.bytesSaved = row.count(10)
            counters.millisecondsSaved = row.real(11)
            return (name: row.text(0), counters: counters)
        }
        var all: [DiskTier: StoreCounters] = [:]
        for row in rows {
            guard let tier = DiskTier(rawValue: row.name) else { continue }
            var counters = row.counters
            counters.add(noted[tier])
            counters.budget = budget(of: tier)
            all[tier] = counters
        }
        return all
    }
}
