import PipelineSupport

/// Selects what `ImagePipeline.trim(_:)` removes from the cache folder: old or unused entries, and then as many more as
/// needed to meet a limit on number or bytes.
///
/// ```swift
/// var request = TrimRequest()
/// request.unusedFor = .seconds(30 * 86_400)
/// request.maxBytes = 1_000_000_000
/// let pipeline = try ImagePipeline(PipelineConfiguration(cacheFolder: "/var/cache/my-app"))
/// print(try await pipeline.trim(request).bytes, "bytes removed")
/// ```
public struct TrimRequest: Sendable, Hashable {
    /// The maximum time since an entry was stored. Older entries are removed. The age of an original is measured from
    /// the last response that contained or confirmed it. If nil, which is the default, there is no bound.
    public var olderThan: Duration?
    /// The maximum time since the last access. Entries that have been unused for longer are removed, whatever their
    /// age. If nil, which is the default, there is no bound.
    public var unusedFor: Duration?
    /// Limits both bounds to entries of these sources. If no bound is set, all of their entries are removed.
    package var sources = SourceFilter()
    /// The maximum number of entries per tier, whatever their source. The entries that the eviction policy values least
    /// are removed first. If nil, there is no limit.
    public var maxEntries: Int?
    /// The maximum number of bytes per tier. Entries are removed in the same order as for `maxEntries`. If nil, there
    /// is no limit.
    public var maxBytes: Int?
    /// The tiers to trim. Defaults to both.
    public var tiers = Set(EntryTier.allCases)

    /// Creates a request that removes nothing until a bound or limit is set.
    public init() {}
}

extension DiskStore {
    /// Removes bodies of originals and variants as requested, but no records. Each transaction removes at most 512
    /// entries, so that other processes can write in between. Entries that they store during the call may stay.
    package func trim(_ request: TrimRequest) throws(StoreError) -> PurgeResult {
        // The bound on the last access is compared with the rows, so accesses in memory are stored first.
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

    /// Removes some of the entries that exceed the limit on number or bytes. Returns whether anything was removed.
    private mutating func removeLeastWorth(_ tier: EntryTier) throws(StoreError) -> Bool {
        let (entries, bytes) = (request.maxEntries ?? .max, request.maxBytes ?? .max)
        let removed = try store.deleting { transaction, limit throws(StoreError) in
            try transaction.counting { () throws(StoreError) in
                try transaction.evict(tier.inIndex, entries: entries, bytes: bytes, atMost: limit)
                return []
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
        // Check again, because the entry may have been accessed or replaced in the meantime.
        let recheck = "SELECT 1 FROM \(tier.rawValue) WHERE id = ?1 AND \(bounds?.sql ?? "1")"
        while !ids.isEmpty {
            let due = ids
            let (removed, count) = try store.deleting { transaction, limit throws(StoreError) in
                let step = due.prefix(limit)
                let removed = try transaction.counting { () throws(StoreError) in
                    for id in step {
                        let matches = try transaction.connection.rows(
                            recheck, values: [.integer(id)] + (bounds?.values ?? [])
                        ) { _ in true }
                        if !matches.isEmpty { try transaction.removeRow(tier.inIndex, id) }
                    }
                    return []
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
    /// Returns the SQL condition for entries that are removed regardless of the limits on number and bytes. Returns nil
    /// if there is no such condition.
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

    /// Returns the SQL condition for the bounds on age and last access, with values numbered from `first`.
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
