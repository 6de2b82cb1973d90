package struct ListedOriginal: Sendable, Hashable {
    package var record: OriginalRecord
    package var hasBody: Bool
    /// The time when the record was last written, in Unix seconds.
    package var stored: Double
    /// The time of the last access in Unix seconds.
    package var lastUsed: Double
    /// The number of hits since it was stored.
    package var uses: Int
}

package struct ListedVariant: Sendable, Hashable {
    package var entry: VariantEntry
    /// The time of the last access in Unix seconds.
    package var lastUsed: Double
    /// The number of hits since it was stored.
    package var uses: Int
}

/// Selects the bodies of originals, or variants, for example in `TrimRequest.tiers`. Records belong to originals, but
/// have a separate budget.
public enum EntryTier: String, Sendable, Hashable, CaseIterable {
    case originals, variants
}

package enum ListedEntry: Sendable, Hashable {
    case original(ListedOriginal)
    case variant(ListedVariant)
}

/// The entries to list, and their order.
package struct ListRequest: Sendable, Hashable {
    /// The order of a list. Each order begins with the entries that are most relevant for cleaning up.
    package enum Order: String, Sendable, Hashable, CaseIterable {
        /// Originals first and then variants, in the order in which they were stored.
        case stored
        /// The entries with the longest bodies first.
        case size
        /// The oldest entries first.
        case age
        /// The least recently accessed entries first.
        case lastUse = "last-use"
        /// The entries with the highest access count first.
        case hits
        /// The entries that took longest to fetch or to render first.
        case cost
    }

    package var order = Order.stored
    package var isReversed = false
    package var tiers = Set(EntryTier.allCases)
    /// Limits the list to entries of these sources. A variant belongs to each source that has had its original.
    package var sources = SourceFilter()
    /// Limits the list to variants with a canonical recipe that matches this pattern (`*`, `?`, `[abc]`), and omits
    /// originals.
    package var recipe: String?
    package var limit: Int?

    package init() {}
}

/// The stored state of a source, a key or a digest.
package struct Inspection: Sendable, Hashable {
    package var originals: [ListedOriginal]
    package var variants: [ListedVariant]

    package var isEmpty: Bool { originals.isEmpty && variants.isEmpty }
}

extension DiskStore {
    /// Returns the contents of the tiers, and the counters of all processes since the folder was created. `records`
    /// counts the records of originals, which have a separate budget.
    package func statistics() throws(StoreError) -> TierStatistics {
        let stored = try perform { index throws(StoreError) in try index.connection.counters() }
        let noted = notes.counters
        let all = PerTier { tier in
            var counters = stored[tier]
            counters.add(noted[tier])
            counters.budget = budgets[tier]
            return counters
        }
        return TierStatistics(originals: all.originals, variants: all.variants, records: all.records)
    }

    /// Stores the accesses recorded in memory if the folder is writable, and then runs a query.
    private func listing<Result: Sendable>(
        _ query: (SQLiteConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try? flush()
        return try perform { index throws(StoreError) in try query(try index.connection) }
    }

    /// The number of entries that `list` passes to `visit` at a time.
    private static let page = 256

    /// Passes entries to `visit` in pages of at most 256 until it returns false.
    ///
    /// The call needs memory for one page, and eight bytes per matching entry. Entries are in the order that they had
    /// at the beginning of the call. Entries that were removed since then are omitted.
    package func list(_ request: ListRequest, visit: ([ListedEntry]) -> Bool) throws(StoreError) {
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

    /// Returns the stored state of a source, including all variants of its digests. The text may also be a prefix (at
    /// least 4 hexadecimal digits) of a variant's key, a variant's digest or an original's digest. Variants are
    /// accompanied by the records of their originals.
    package func inspect(_ text: String, limit: Int = 100) throws(StoreError) -> Inspection {
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
        // This query reads the complete table, because the digests of variants have no index.
        try add(variants: "WHERE digest BETWEEN ?1 AND ?2 ORDER BY digest LIMIT ?3", from, to)
        for original in Set(found.variants.compactMap { DigestKey($0.entry.originalDigest) }) {
            try add(records: "WHERE \(DiskSchema.equal("digest", "?1")) ORDER BY id LIMIT ?2", .digest(original))
        }
        return found
    }
}

extension SQLiteConnection {
    /// Returns the positions of a list's entries. A position is twice the row number, plus one if the entry is a
    /// variant.
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

    /// Returns the entry at a position. Returns nil if it was removed in the meantime or is damaged.
    fileprivate func entry(at place: Int) throws(StoreError) -> ListedEntry? {
        let id = SQLiteValue.integer(place / 2)
        if place % 2 == 0 {
            return try recordRows("WHERE id = ?1", [id]).first?.listed.map { .original($0) }
        }
        return try variantRows("WHERE id = ?1", [id]).first?.listed.map { .variant($0) }
    }
}
