import HTTPCaching
import PipelineSupport
import Synchronization

/// The memory tiers. Nothing in it blocks or throws: any thread may call it, event loops included.
///
/// `records` holds the records of each source and `originals` the bodies under their digests, each within its own
/// budget. A body also carries a record of each source it was stored for. The one of the source that it is named after
/// answers if `records` has evicted that source: so a record stays for as long as its body. No other body has a record of
/// that source under its name, and this one is the most recent (RFC 9111 §4). A purge finds variants by the digest of
/// their original.
package final class MemoryTier: Sendable {
    package let records: MemoryStore<[OriginalRecord]>
    package let originals: MemoryStore<[OriginalRecord]>
    package let variants: MemoryStore<VariantEntry>
    private let updating = Mutex<Void>(())

    init(_ budgets: MemoryBudgets) {
        let purges = PurgeCount()
        records = MemoryStore(budget: budgets.records, purges: purges)
        originals = MemoryStore(budget: budgets.originals, purges: purges)
        variants = MemoryStore(budget: budgets.variants)
    }

    /// Estimated milliseconds of fetching an original, if none were measured: 30, plus the time at 5 MB a second.
    private static func fetchEstimate(bytes: Int) -> Double { 30 + Double(bytes) / 5_000 }

    /// The cost of every record for the eviction policy, in milliseconds, so that only size and access count matter.
    private static let costOfRecord = 30.0

    // MARK: Records

    /// The records of a source without counting an access; nil if there are none.
    func peek(source: String) -> [OriginalRecord]? {
        if let found = records.peek(source)?.value { return found }
        let found = originals.first(named: source)?.value.filter { ByteString($0.source) == ByteString(source) }
        return found?.isEmpty == false ? found : nil
    }

    /// Adds a record to those of its source, of which the most recent `selectionLimit` are kept.
    ///
    /// - Parameter known: the others, in case they have been evicted since they were looked up.
    func update(_ record: OriginalRecord, known: [OriginalRecord] = [], generation: UInt64?) -> Bool {
        // Two selections of one source may arrive together; neither must overwrite the other.
        updating.withLock { _ in
            var all = peek(source: record.source) ?? known
            all.removeAll { $0.response.selecting == record.response.selecting }
            all.append(record)
            all.sort { $0.response.responseTime > $1.response.responseTime }
            accompany(record)
            return keep(Array(all.prefix(OriginalRecord.selectionLimit)), of: record.source, generation: generation)
        }
    }

    /// Replaces all records of a source.
    @discardableResult
    func keep(_ all: [OriginalRecord], of source: String, generation: UInt64?) -> Bool {
        let bytes = all.reduce(0) { $0 + Self.bytes(of: $1) }
        return records.insert(
            all, body: [], for: source, valueBytes: bytes, cost: Self.costOfRecord, generation: generation,
            name: source, source: source)
    }

    /// Puts a source's most recent record beside its body, if memory has that, and removes the records of the source
    /// beside other bodies.
    private func accompany(_ record: OriginalRecord) {
        let isOfSource = { @Sendable (held: OriginalRecord) in ByteString(held.source) == ByteString(record.source) }
        originals.unname(record.source, but: record.digest) { $0.removeAll(where: isOfSource) }
        originals.update(record.digest) { held in
            guard let at = held.firstIndex(where: isOfSource) else { return }
            held.removeAll(where: isOfSource)
            held.insert(record, at: at)
        }
    }

    /// Removes all records of a source, but no bodies: another tier has a more recent one.
    func removeRecords(of source: String) {
        updating.withLock { _ in
            records.remove(source)
            originals.unname(source, but: "") { $0.removeAll { ByteString($0.source) == ByteString(source) } }
        }
    }

    /// Merges another store's records of a source into those here, the newer of each selection, and returns the result.
    func merged(_ stored: [OriginalRecord], of source: String, generation: UInt64) -> [OriginalRecord] {
        updating.withLock { _ in
            var all = stored
            for kept in peek(source: source) ?? [] {
                let at = all.firstIndex { $0.response.selecting == kept.response.selecting }
                if let at, all[at].response.responseTime >= kept.response.responseTime { continue }
                if let at { all[at] = kept } else { all.append(kept) }
            }
            if let newest = Self.newest(of: all) {
                accompany(newest)
                keep(all, of: source, generation: generation)
            }
            return all
        }
    }

    private static func newest(of records: [OriginalRecord]) -> OriginalRecord? {
        records.max { $0.response.responseTime < $1.response.responseTime }
    }

    /// The memory that a record takes: itself, its strings and their allocation headers, about 64 bytes per string in
    /// addition to its text.
    private static func bytes(of record: OriginalRecord) -> Int {
        record.response.fields.reduce(512 + 2 * record.source.utf8.count) { sum, field in
            sum + 128 + field.name.utf8.count + field.value.utf8.count
        }
    }

    /// Looks up the records of a source, counting the access; nil if there are none.
    func foundRecords(of source: String) -> [OriginalRecord]? {
        records.entry(for: source)?.value ?? peek(source: source)
    }

    package func removeRecord(source: String, selecting: [String: String?]) -> Bool {
        updating.withLock { _ in
            guard let all = peek(source: source) else { return false }
            let removed = all.filter { $0.response.selecting == selecting }
            records.update(source) { $0.removeAll { $0.response.selecting == selecting } }
            for record in removed {
                originals.update(record.digest) { $0.removeAll { $0.isSameSelection(as: record) } }
            }
            return !removed.isEmpty
        }
    }

    // MARK: Bodies

    /// Keeps a body with its record, the most recent of its source.
    func keep(_ body: [UInt8], under record: OriginalRecord, generation: UInt64) {
        accompany(record)
        // Records of other sources with the same bytes. A source left out here fetches again after a purge of the rest.
        let others =
            originals.peek(record.digest)?.value.filter { ByteString($0.source) != ByteString(record.source) } ?? []
        let cost = record.fetchMilliseconds > 0 ? record.fetchMilliseconds : Self.fetchEstimate(bytes: body.count)
        originals.insert(
            [record] + others.prefix(OriginalRecord.selectionLimit - 1), body: body, for: record.digest, cost: cost,
            generation: generation, name: record.source, source: record.source)
    }

    /// Keeps a body that was read from disk, with its record if that is known to be the most recent of its source.
    func keep(_ body: [UInt8], of digest: String, _ record: OriginalRecord?, generation: UInt64) {
        updating.withLock { _ in
            if let record, record.digest == digest, let all = records.peek(record.source)?.value,
                Self.newest(of: all) == record
            {
                return keep(body, under: record, generation: generation)
            }
            originals.insert(
                [], body: body, for: digest, cost: Self.fetchEstimate(bytes: body.count), generation: generation)
        }
    }

    // MARK: Variants

    @discardableResult
    func keep(_ entry: VariantEntry, body: [UInt8], of source: String?, generation: UInt64) -> Bool {
        variants.insert(
            entry, body: body, for: entry.key, valueBytes: entry.recipe.utf8.count, cost: entry.cost,
            generation: generation, name: entry.originalDigest, source: source)
    }

    // MARK: The whole

    /// The generations of both tiers in one number, 32 bits each: more than all purges in a process's lifetime.
    package func generationNow() -> UInt64 { originals.generation << 32 | variants.generation }

    /// Removes what a selection covers, and voids in-flight work on it.
    func purge(_ selection: PurgeSelection) -> PurgeResult {
        switch selection.mode {
        case .soft: return makeStale(selection)
        case .variantsOnly:
            let known = known(to: selection)
            return purging { result in
                result.sources = Set(known.map { ByteString($0.source) }).count
                result.digests = selection.digests.union(known.map(\.digest))
                if let matching = selection.matching { variants.purges.begin([], matching: matching) }
                result.variants = variants.remove(named: result.digests)
            }
        case .hard:
            if let matching = selection.matching { return purge(matching, digests: selection.digests) }
            let known = known(to: selection)
            return purging { result in
                result.sources = Set(known.map { ByteString($0.source) }).count
                result.records = known.count
                result.digests = selection.digests.union(known.map(\.digest))
                records.remove(selection.sources)
                result.originals = originals.remove(result.digests)
                result.variants = variants.remove(named: result.digests.union(selection.sources))
            }
        }
    }

    /// The records that a selection covers.
    private func known(to selection: PurgeSelection) -> [OriginalRecord] {
        var sources = Set(selection.sources.map(ByteString.init))
        if let matching = selection.matching {
            sources.formUnion(
                (records.values(namedIn: matching) + originals.values(namedIn: matching)).joined()
                    .map(\.source).filter(matching.contains).map(ByteString.init))
        }
        return sources.flatMap { peek(source: $0.text) ?? [] }
    }

    private func makeStale(_ selection: PurgeSelection) -> PurgeResult {
        // First, so that work in flight does not put fresh records back.
        records.purges.begin(selection.sources, matching: selection.matching)
        var result = PurgeResult()
        for source in Set(known(to: selection).map { ByteString($0.source) }).map(\.text) {
            updating.withLock { _ in
                guard var all = peek(source: source) else { return }
                for at in all.indices { all[at].response.isSoftPurged = true }
                for record in all {
                    originals.update(record.digest) { held in
                        for at in held.indices where held[at].isSameSelection(as: record) { held[at] = record }
                    }
                }
                keep(all, of: source, generation: nil)
                result.sources += 1
                result.records += all.count
            }
        }
        result.mark = PurgeMark(generationNow())
        return result
    }

    /// Removes what these sources and digests name and selections cover, and invalidates in-flight work on them.
    ///
    /// - Returns: `names`, and the digests in the records of these sources.
    @discardableResult
    func forget(_ names: Set<String>, _ selections: [SourceSelection] = []) -> Set<String> {
        var digests = names
        for selection in selections { digests.formUnion(purge(selection, digests: []).digests) }
        for name in names { digests.formUnion((peek(source: name) ?? []).map(\.digest)) }
        records.remove(names)
        originals.remove(digests)
        variants.remove(named: digests)
        return digests
    }

    /// - Returns: bytes freed.
    func reduce(to share: Double) -> Int {
        records.reduce(to: share) + originals.reduce(to: share) + variants.reduce(to: share)
    }

    func removeAll() {
        records.removeAll()
        originals.removeAll()
        variants.removeAll()
    }

    /// The sources of which a record matches. Visits all records.
    func sources(where matches: (OriginalRecord) -> Bool) -> Set<ByteString> {
        let found = records.values { $0.contains(where: matches) } + originals.values { $0.contains(where: matches) }
        return Set(found.joined().filter(matches).map { ByteString($0.source) })
    }

    /// The originals of which a variant's recipe matches. Visits all variants.
    func originals(whereRecipe matches: (String) -> Bool) -> Set<ByteString> {
        Set(variants.values { matches($0.recipe) }.map { ByteString($0.originalDigest) })
    }

    /// - Parameter digests: further originals known to belong to these sources.
    func purge(_ selection: SourceSelection, digests: Set<String>) -> PurgeResult {
        purging { result in
            result.digests = digests
            // A body is named after one of its sources and has records of all of them.
            var removed = Set(records.remove(namedIn: selection).flatMap(\.value))
            removed.formUnion(
                originals.values(namedIn: selection).flatMap(\.self).filter { selection.contains($0.source) })
            result.sources = Set(removed.map { ByteString($0.source) }).count
            result.records = removed.count
            result.digests.formUnion(removed.map(\.digest))
            for digest in result.digests {
                // A body that another source has stays, without the records that were purged.
                if isShared(digest) {
                    originals.update(digest) { $0.removeAll { selection.contains($0.source) } }
                } else if originals.remove(digest) {
                    result.originals += 1
                }
            }
            variants.purges.begin([], matching: selection)
            result.variants = variants.remove(named: result.digests)
        }
    }

    /// Whether a record of a source that was not purged names this body.
    private func isShared(_ digest: String) -> Bool {
        (originals.peek(digest)?.value ?? []).contains { other in
            records.peek(other.source)?.value.contains { $0.digest == digest } == true
        }
    }

    /// Runs `body` and adds the number of bytes it freed.
    private func purging(_ body: (inout PurgeResult) -> Void) -> PurgeResult {
        let before = originals.counters.bytes + variants.counters.bytes
        var result = PurgeResult()
        body(&result)
        result.bytes = max(0, before - originals.counters.bytes - variants.counters.bytes)
        result.mark = PurgeMark(generationNow())
        return result
    }

    package func statistics() -> TierStatistics {
        TierStatistics(originals: originals.counters, variants: variants.counters, records: records.counters)
    }
}

extension OriginalRecord {
    fileprivate func isSameSelection(as other: OriginalRecord) -> Bool {
        ByteString(source) == ByteString(other.source) && response.selecting == other.response.selecting
    }
}
