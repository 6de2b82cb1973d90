/// What a trim removes: what is old or unused, and beyond that so much that a number or a size holds.
public struct TrimRequest: Sendable, Hashable {
    /// Removes what was stored before, Unix seconds; an original is as old as the last response that carried or confirmed
    /// it. nil, the default, sets no bound.
    public var olderThan: Double?
    /// Removes what was last used before, Unix seconds; nil sets no bound. With both bounds either is enough.
    public var unusedSince: Double?
    /// Confines both bounds to what belongs to these sources; without a bound all of it is removed.
    public var sources = SourceFilter()
    /// Entries that each tier keeps at most; what is worth least to the eviction policy goes first. Whatever their source.
    public var maxEntries: Int?
    /// Bytes that each tier keeps at most, likewise.
    public var maxBytes: Int?
    /// Which tiers; both by default.
    public var tiers = Set(EntryTier.allCases)

    public init() {}
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

    mutating func add(_ other: TrimResult) {
        originals += other.originals
        variants += other.variants
        bytes += other.bytes
    }
}

extension DiskStore {
    /// Removes bodies of originals and variants as asked, and leaves records. Each transaction removes at most 512
    /// entries, so that other processes go on meanwhile; what they store while this runs may stay.
    public func trim(_ request: TrimRequest) throws(StoreError) -> TrimResult {
        var result = TrimResult()
        for tier in EntryTier.allCases where request.tiers.contains(tier) {
            try removeMatching(request, tier, &result)
            guard request.maxEntries != nil || request.maxBytes != nil else { continue }
            let entries = request.maxEntries ?? .max
            let bytes = request.maxBytes ?? .max
            while true {
                let step = try deleting { index, limit throws(StoreError) in
                    try index.write { _ throws(StoreError) in
                        try index.trimming { () throws(StoreError) in
                            try index.evict(tier.inIndex, entries: entries, bytes: bytes, atMost: limit)
                        }
                    }
                }
                guard step != TrimResult() else { break }
                result.add(step)
                yieldToOthers()
            }
        }
        shrink()
        return result
    }

    private func removeMatching(
        _ request: TrimRequest, _ tier: EntryTier, _ result: inout TrimResult
    ) throws(StoreError) {
        guard let condition = request.condition(tier) else { return }
        var ids = try perform { index throws(StoreError) in
            try index.connection.rows(
                "SELECT id FROM \(tier.rawValue) WHERE \(condition.sql)", values: condition.values
            ) { $0.integer(0) }[...]
        }
        let bounds = request.bounds(tier, first: 2)
        let recheck: SQLText = "SELECT 1 FROM \(tier.rawValue) WHERE id = ?1 AND \(bounds?.sql ?? "1")"
        while !ids.isEmpty {
            let due = ids
            let (removed, count) = try deleting { index, limit throws(StoreError) in
                let step = due.prefix(limit)
                let removed = try index.write { connection throws(StoreError) in
                    try index.trimming { () throws(StoreError) in
                        for id in step {
                            // Asked again: it may have been used or stored anew meanwhile.
                            let matches = try connection.rows(
                                recheck, values: [.integer(id)] + (bounds?.values ?? [])
                            ) { _ in true }
                            if !matches.isEmpty { try index.removeRow(tier.inIndex, id) }
                        }
                    }
                }
                return (removed, step.count)
            }
            ids = ids.dropFirst(count)
            result.add(removed)
            if !ids.isEmpty { yieldToOthers() }
        }
    }
}

extension EntryTier {
    fileprivate var inIndex: DiskTier {
        switch self {
        case .originals: .originals
        case .variants: .variants
        }
    }
}

extension TrimRequest {
    /// What to remove whatever the tier holds, in SQL; nil for nothing.
    fileprivate func condition(_ tier: EntryTier) -> (sql: String, values: [SQLiteValue])? {
        let bounds = bounds(tier, first: 1)
        let filter = sources.condition("source", first: 1 + (bounds?.values.count ?? 0))
        guard let filter else { return bounds }
        let belongs =
            tier == .variants ? filter.variants : "id IN (SELECT original FROM links WHERE \(filter.sql))"
        guard let bounds else { return (belongs, filter.values) }
        return ("\(bounds.sql) AND \(belongs)", bounds.values + filter.values)
    }

    /// The bounds of age and use alone, values numbered from `first`.
    fileprivate func bounds(_ tier: EntryTier, first: Int) -> (sql: String, values: [SQLiteValue])? {
        let created =
            switch tier {
            case .variants: "created"
            case .originals:
                "coalesce((SELECT max(stored) FROM records WHERE original = originals.id), 0)"
            }
        var terms: [String] = []
        var values: [SQLiteValue] = []
        if let olderThan {
            terms.append("\(created) < ?\(first)")
            values.append(.real(olderThan))
        }
        if let unusedSince {
            // What was written since need not be looked up.
            let bound = "?\(first + values.count)"
            terms.append("touched < \(bound) AND \(tier.inIndex.lastUse) < \(bound)")
            values.append(.real(unusedSince))
        }
        return terms.isEmpty ? nil : ("(" + terms.joined(separator: " OR ") + ")", values)
    }
}

extension DiskIndex {
    /// What `body` removes, by the sums of the tiers.
    fileprivate func trimming<Ignored>(_ body: () throws(StoreError) -> Ignored) throws(StoreError) -> TrimResult {
        let before = try sums()
        _ = try body()
        let after = try sums()
        var result = TrimResult()
        for tier in [DiskTier.originals, .variants] {
            let (before, after) = (before[tier], after[tier])
            if tier == .originals { result.originals = before.entries - after.entries }
            if tier == .variants { result.variants = before.entries - after.entries }
            result.bytes += before.bytes - after.bytes
        }
        return result
    }
}
