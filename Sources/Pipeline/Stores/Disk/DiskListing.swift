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
}

/// A variant as listed.
public struct ListedVariant: Sendable, Hashable {
    /// What is known of it.
    public var entry: VariantEntry
    /// Unix seconds.
    public var lastUsed: Double
    /// Hits since it was stored.
    public var uses: Int
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
        let stored = try perform { index throws(StoreError) in try index.connection.counters() }
        let noted = notes.counters
        let all = PerTier { tier in
            var counters = stored[tier]
            counters.add(noted[tier])
            counters.budget = configuration.budget(of: tier)
            return counters
        }
        return (all.originals, all.variants, all.records)
    }

    /// Runs a query after accesses that are noted in memory were stored, as far as the folder can be written.
    private func listing<Result: Sendable>(
        _ query: (SQLiteConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try? flush()
        return try perform { index throws(StoreError) in try query(try index.connection) }
    }

    /// Entries that `list` hands out at a time.
    private static let page = 256

    /// Hands out entries in pages of at most 256 until `visit` returns false.
    ///
    /// In memory there is a page, and eight bytes for each entry that fits; so entries come in the order of when the call
    /// began, and those that were removed meanwhile are left out.
    public func list(_ request: ListRequest, visit: ([ListedEntry]) -> Bool) throws(StoreError) {
        var places = try listing { connection throws(StoreError) in try connection.places(request)[...] }
        while !places.isEmpty {
            let page = places.prefix(Self.page)
            places = places.dropFirst(Self.page)
            let entries = try perform { index throws(StoreError) in
                var entries: [ListedEntry] = []
                for place in page {
                    if let entry = try index.connection.entry(at: place) { entries.append(entry) }
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
        try listing { connection throws(StoreError) in try connection.inspect(text, limit: limit) }
    }
}

extension SQLiteConnection {
    fileprivate func inspect(_ text: String, limit: Int) throws(StoreError) -> Inspection {
        let range = (4...64).contains(text.utf8.count) ? DigestKey.range(beginning: text.lowercased()) : nil
        var found = Inspection(originals: [], variants: [])
        let most = SQLiteValue.integer(limit)
        func add(records rest: String, _ values: SQLiteValue...) throws(StoreError) {
            let rows = try recordRows(rest, values + [most]).compactMap(\.listed)
            found.originals += rows.filter { !found.originals.contains($0) }
        }
        func add(variants rest: String, _ values: SQLiteValue...) throws(StoreError) {
            let rows = try variantRows(rest, values + [most]).compactMap(\.listed)
            found.variants += rows.filter { !found.variants.contains($0) }
        }
        try add(records: "WHERE source = ?1 ORDER BY id LIMIT ?2", .text(text))
        let bySource = SourceFilter.Condition(sql: "source = ?1", values: []).variants
        try add(variants: "WHERE \(bySource) ORDER BY id LIMIT ?2", .text(text))
        guard found.isEmpty, let (first, last) = range else { return found }
        let (from, to) = (SQLiteValue.digest(first), SQLiteValue.digest(last))
        try add(records: "WHERE \(DiskSchema.between("digest", "?1", "?2")) ORDER BY digest, id LIMIT ?3", from, to)
        try add(variants: "WHERE \(DiskSchema.between("key", "?1", "?2")) ORDER BY key LIMIT ?3", from, to)
        try add(
            variants: "WHERE \(DiskSchema.between("original", "?1", "?2")) ORDER BY original, id LIMIT ?3", from, to)
        // The digests of variants have no index.
        try add(variants: "WHERE digest BETWEEN ?1 AND ?2 ORDER BY digest LIMIT ?3", from, to)
        for original in Set(found.variants.compactMap { DigestKey($0.entry.originalDigest) }) {
            try add(records: "WHERE \(DiskSchema.equal("digest", "?1")) ORDER BY id LIMIT ?2", .digest(original))
        }
        return found
    }
}

extension SQLiteConnection {
    /// Where the entries of a listing are: the row number doubled, plus one for variants.
    fileprivate func places(_ request: ListRequest) throws(StoreError) -> [Int] {
        let ranks: (record: String, variant: String, isDescending: Bool) =
            switch request.order {
            case .stored: ("0", "1", false)
            case .size: ("length", "length", true)
            case .age: ("stored", "created", false)
            case .lastUse: ("last_access", "last_access", false)
            case .hits: ("accesses", "accesses", true)
            case .cost: ("fetch_milliseconds", "cost", true)
            }
        var values: [SQLiteValue] = []
        var selects: [String] = []
        func add(_ table: String, _ rank: String, place: String, conditions: [String]) {
            let sql = conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
            selects.append("SELECT \(place) AS place, \(rank) AS rank FROM \(table)\(sql)")
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
        return try rows(
            """
            SELECT place FROM (\(selects.joined(separator: " UNION ALL "))) \
            ORDER BY rank \(direction), place \(following) LIMIT ?\(values.count)
            """, values: values
        ) { $0.integer(0) }
    }

    /// nil if it was removed meanwhile, or is damaged.
    fileprivate func entry(at place: Int) throws(StoreError) -> ListedEntry? {
        let id = SQLiteValue.integer(place / 2)
        if place % 2 == 0 {
            return try recordRows("WHERE id = ?1", [id]).first?.listed.map { .original($0) }
        }
        return try variantRows("WHERE id = ?1", [id]).first?.listed.map { .variant($0) }
    }
}
