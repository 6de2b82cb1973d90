import PipelineSupport

/// What a trim removes: old or unused entries, and then as many more as it takes to meet a limit on number or bytes.
public struct TrimRequest: Sendable, Hashable {
    /// Removes entries stored longer ago than this; an original is as old as the last response that carried or
    /// confirmed it. nil, the default, sets no bound.
    public var olderThan: Duration?
    /// Removes entries last accessed longer ago than this; nil sets no bound. Either bound suffices.
    public var unusedFor: Duration?
    /// Limits both bounds to entries of these sources; if no bound is set, all of their entries are removed.
    public var sources = SourceFilter()
    /// Entries that each tier keeps at most, whatever their source; those worth least to the policy go first.
    public var maxEntries: Int?
    /// Bytes that each tier keeps at most, likewise.
    public var maxBytes: Int?
    /// The tiers to trim; both by default.
    public var tiers = Set(EntryTier.allCases)

    /// Removes nothing until something is asked for.
    public init() {}
}

extension DiskStore {
    /// Removes bodies of originals and variants as requested, but no records. Each transaction removes at most 512
    /// entries, so that other processes can write in between; what they store while this runs may stay.
    package func trim(_ request: TrimRequest) throws(StoreError) -> PurgeResult {
        // The bound on the last access is compared with the rows, so noted accesses are stored first.
        if request.unusedFor != nil { try? flush() }
        var trim = DiskTrim(store: self, request: request)
        try trim.run()
        shrink()
        return trim.result
    }
}

private struct DiskTrim {
    let store: DiskStore
    let request: TrimRequest
    var result = PurgeResult()

    mutating func run() throws(StoreError) {
        for tier in EntryTier.allCases where request.tiers.contains(tier) {
            try removeMatching(tier)
            if request.maxEntries == nil, request.maxBytes == nil { continue }
            while try removeLeastWorth(tier) { store.yieldToOthers() }
        }
    }

    /// Removes some of what exceeds the number of entries or bytes; returns whether anything was removed.
    private mutating func removeLeastWorth(_ tier: EntryTier) throws(StoreError) -> Bool {
        let (entries, bytes) = (request.maxEntries ?? .max, request.maxBytes ?? .max)
        let removed = try store.deleting { index, limit throws(StoreError) in
            try index.write { transaction throws(StoreError) in
                try transaction.counting { () throws(StoreError) in
                    try transaction.evict(tier.inIndex, entries: entries, bytes: bytes, atMost: limit)
                    return []
                }
            }
        }
        result.add(removed)
        return removed != PurgeResult()
    }

    private mutating func removeMatching(_ tier: EntryTier) throws(StoreError) {
        guard let condition = request.condition(tier) else { return }
        var ids = try store.perform { index throws(StoreError) in
            try index.connection.rows(
                "SELECT id FROM \(tier.rawValue) WHERE \(condition.sql)", values: condition.values
            ) { $0.integer(0) }[...]
        }
        let bounds = request.bounds(tier, first: 2)
        // Checked again, since the entry may have been accessed or replaced meanwhile.
        let recheck = "SELECT 1 FROM \(tier.rawValue) WHERE id = ?1 AND \(bounds?.sql ?? "1")"
        while !ids.isEmpty {
            let due = ids
            let (removed, count) = try store.deleting { index, limit throws(StoreError) in
                let step = due.prefix(limit)
                let removed = try index.write { transaction throws(StoreError) in
                    try transaction.counting { () throws(StoreError) in
                        for id in step {
                            let matches = try transaction.connection.rows(
                                recheck, values: [.integer(id)] + (bounds?.values ?? [])
                            ) { _ in true }
                            if !matches.isEmpty { try transaction.removeRow(tier.inIndex, id) }
                        }
                        return []
                    }
                }
                return (removed, step.count)
            }
            ids = ids.dropFirst(count)
            result.add(removed)
            if !ids.isEmpty { store.yieldToOthers() }
        }
    }
}

extension EntryTier {
    fileprivate var inIndex: DiskTable { self == .originals ? .originals : .variants }
}

extension TrimRequest {
    /// The SQL condition for what is removed however much the tier holds; nil if nothing is.
    fileprivate func condition(_ tier: EntryTier) -> (sql: String, values: [SQLiteValue])? {
        let bounds = bounds(tier, first: 1)
        let filter = sources.condition("source", first: 1 + (bounds?.values.count ?? 0))
        guard let filter else { return bounds }
        let belongs =
            tier == .variants
            ? filter.variants
            : "id IN (SELECT bodies.id FROM links JOIN bodies ON \(DiskSchema.equal("bodies.digest", "links.digest")) WHERE \(filter.sql))"
        guard let bounds else { return (belongs, filter.values) }
        return ("\(bounds.sql) AND \(belongs)", bounds.values + filter.values)
    }

    /// Only the bounds on age and last access, with values numbered from `first`.
    fileprivate func bounds(_ tier: EntryTier, first: Int) -> (sql: String, values: [SQLiteValue])? {
        let created =
            switch tier {
            case .variants: "created"
            case .originals:
                """
                coalesce((SELECT max(stored) FROM bodies JOIN records ON \(DiskSchema.equal("records.digest", "bodies.digest")) \
                WHERE bodies.id = originals.id), 0)
                """
            }
        let now = SystemClock.unix.seconds
        var terms: [String] = []
        var values: [SQLiteValue] = []
        if let olderThan {
            terms.append("\(created) < ?\(first)")
            values.append(.real(now - olderThan / .seconds(1)))
        }
        if let unusedFor {
            terms.append("last_access < ?\(first + values.count)")
            values.append(.real(now - unusedFor / .seconds(1)))
        }
        return terms.isEmpty ? nil : ("(" + terms.joined(separator: " OR ") + ")", values)
    }
}
