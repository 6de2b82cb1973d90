import Synchronization

/// Both memory tiers as one store. Nothing in it blocks or throws: any thread may call it, event loops included.
///
/// In `originals` the records of a source are kept under `record:` and its name, bodies under `body:` and their digest:
/// records outlive bodies, being smaller and as recently used. With a body comes a record of each source it was stored
/// for. A purge finds records by the name of their source and variants by the digest of their original.
final class MemoryTier: Store {
    let originals: MemoryStore<[OriginalRecord]>
    let variants: MemoryStore<VariantEntry>
    private let updating = Mutex<Void>(())

    init(_ budgets: PipelineConfiguration.MemoryBudgets) {
        originals = MemoryStore(budget: budgets.originals)
        variants = MemoryStore(budget: budgets.variants)
    }

    /// Milliseconds that fetching an original would take, where none was measured: 30, and 5 MB a second. A record alone
    /// counts the 30: without it neither its body nor its validators are of use.
    static func fetchEstimate(bytes: Int) -> Double { 30 + Double(bytes) / 5_000 }

    // MARK: Records

    /// Puts a record among those of its source, the most recent `selectionLimit` of which are kept.
    ///
    /// - Parameter known: the others, in case they have been evicted since they were looked up.
    func update(_ record: OriginalRecord, known: [OriginalRecord] = [], generation: UInt64?) -> Bool {
        // Two selections of one source may arrive together; neither shall overwrite the other.
        updating.withLock { _ in
            var records = originals.peek("record:" + record.source)?.value ?? known
            records.removeAll { $0.response.selecting == record.response.selecting }
            records.append(record)
            records.sort { $0.response.responseTime > $1.response.responseTime }
            return keep(Array(records.prefix(OriginalRecord.selectionLimit)), of: record.source, generation: generation)
        }
    }

    /// Keeps all records of a source in place of those that are there.
    @discardableResult
    func keep(_ records: [OriginalRecord], of source: String, generation: UInt64?) -> Bool {
        let bytes = records.reduce(0) { $0 + Self.bytes(of: $1) }
        return originals.insert(
            records, body: [], for: "record:" + source, valueBytes: bytes, cost: Self.fetchEstimate(bytes: 0),
            generation: generation, name: source)
    }

    /// Keeps what another store has of a source beside what is here, the newer of each selection; returns that.
    func merged(_ stored: [OriginalRecord], of source: String, generation: UInt64) -> [OriginalRecord] {
        updating.withLock { _ in
            var records = stored
            for kept in originals.peek("record:" + source)?.value ?? [] {
                let at = records.firstIndex { $0.response.selecting == kept.response.selecting }
                if let at, records[at].response.responseTime >= kept.response.responseTime { continue }
                if let at { records[at] = kept } else { records.append(kept) }
            }
            if !records.isEmpty { keep(records, of: source, generation: generation) }
            return records
        }
    }

    /// What a record takes in memory: itself, its strings and their allocations' headers, about 64 bytes a string beside
    /// its text.
    private static func bytes(of record: OriginalRecord) -> Int {
        record.response.fields.reduce(512 + 2 * record.source.utf8.count) { sum, field in
            sum + 128 + field.name.utf8.count + field.value.utf8.count
        }
    }

    func records(source: String) -> [OriginalRecord] { originals.entry(for: "record:" + source)?.value ?? [] }

    func freshen(_ record: OriginalRecord) -> Bool {
        let selecting = record.response.selecting
        let isThere = originals.peek("record:" + record.source)?.value.contains { $0.response.selecting == selecting }
        return isThere == true && update(record, generation: nil)
    }

    func removeRecord(source: String, selecting: [String: String?]) -> Bool {
        var isThere = false
        originals.update("record:" + source) { records in
            isThere = records.contains { $0.response.selecting == selecting }
            records.removeAll { $0.response.selecting == selecting }
        }
        return isThere
    }

    // MARK: Bodies

    func originalBody(digest: Digest, longest: Int) -> EntryBody? {
        (originals.entry(for: "body:" + digest)?.body).map(EntryBody.bytes)
    }

    func holdsOriginal(digest: Digest) -> Bool { originals.peek("body:" + digest) != nil }

    /// A body in a file is too long for memory: its record is kept alone.
    func storeOriginal(_ record: OriginalRecord, content: EntryBody?, generation: UInt64) -> Bool {
        let generation = Self.split(generation).originals
        guard update(record, generation: generation) else { return false }
        if case .bytes(let bytes)? = content { keep(bytes, under: record, generation: generation) }
        return true
    }

    func keep(_ body: [UInt8], under record: OriginalRecord, generation: UInt64) {
        let key = "body:" + record.digest
        // The others that have the same bytes. A source that is left out costs another fetch after a purge of the rest.
        let others = originals.peek(key)?.value.filter { $0.source != record.source } ?? []
        originals.insert(
            [record] + others.prefix(OriginalRecord.selectionLimit - 1), body: body, for: key,
            cost: record.fetchMilliseconds, generation: generation)
    }

    // MARK: Variants

    func variant(key: String, of original: Digest) -> (entry: VariantEntry, body: [UInt8])? {
        variants.entry(for: key).map { ($0.value, $0.body) }
    }

    func storeVariant(_ entry: VariantEntry, body: [UInt8], generation: UInt64, source: String?) -> Bool {
        keep(entry, body: body, generation: Self.split(generation).variants)
    }

    @discardableResult
    func keep(_ entry: VariantEntry, body: [UInt8], generation: UInt64) -> Bool {
        variants.insert(
            entry, body: body, for: entry.key, valueBytes: entry.recipe.utf8.count, cost: entry.cost,
            generation: generation, name: entry.originalDigest)
    }

    // MARK: The whole

    /// The generations of both tiers in one number, 32 bits each: more purges than a process lives to see.
    func generationNow() -> UInt64 { originals.generation << 32 | variants.generation }

    private static func split(_ generation: UInt64) -> (originals: UInt64, variants: UInt64) {
        (generation >> 32, generation & 0xFFFF_FFFF)
    }

    @discardableResult
    func purge(source: String, digests: Set<Digest>) -> PurgeResult {
        let before = originals.counters.bytes + variants.counters.bytes
        let records = originals.peek("record:" + source)?.value ?? []
        var result = PurgeResult()
        result.records = records.count
        result.digests = digests.union(records.map(\.digest))
        let names = Set(result.digests.map { "body:" + $0 } + ["record:" + source])
        let removed = originals.remove(names)
        result.originals = removed - (records.isEmpty ? 0 : 1)
        result.variants = variants.remove(named: result.digests)
        result.bytes = max(0, before - originals.counters.bytes - variants.counters.bytes)
        result.generation = generationNow()
        return result
    }

    /// Removes what these sources and digests name, and voids what is on its way here.
    /// - Returns: the digests, those included that only the records here tell of.
    @discardableResult
    func forget(_ names: Set<String>) -> Set<Digest> {
        var digests = names
        for name in names {
            if let records = originals.peek("record:" + name)?.value { digests.formUnion(records.map(\.digest)) }
        }
        originals.remove(Set(digests.flatMap { ["body:" + $0, "record:" + $0] }))
        variants.remove(named: digests)
        return digests
    }

    func purge(_ selection: SourceSelection) -> PurgeResult { purge(selection, digests: []) }

    /// - Parameter digests: further originals known to be of these sources.
    func purge(_ selection: SourceSelection, digests: Set<Digest>) -> PurgeResult {
        let before = originals.counters.bytes + variants.counters.bytes
        var result = PurgeResult()
        result.digests = digests
        for entry in originals.remove(namedIn: selection) {
            result.digests.formUnion(entry.value.map(\.digest))
            result.sources += 1
            result.records += entry.value.count
        }
        for digest in result.digests where !isShared(digest) {
            if originals.remove("body:" + digest) { result.originals += 1 }
        }
        result.variants = variants.remove(named: result.digests)
        result.bytes = max(0, before - originals.counters.bytes - variants.counters.bytes)
        result.generation = generationNow()
        return result
    }

    /// Whether a record speaks of this body.
    private func isShared(_ digest: Digest) -> Bool {
        (originals.peek("body:" + digest)?.value ?? []).contains { other in
            originals.peek("record:" + other.source)?.value.contains { $0.digest == digest } == true
        }
    }

    func statistics() -> (originals: StoreCounters, variants: StoreCounters, records: StoreCounters) {
        (originals.counters, variants.counters, StoreCounters())
    }

    func close() {}
}
