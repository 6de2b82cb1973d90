import HTTPCaching
import PipelineSupport
import Synchronization

/// The memory tiers. Calls do not block and do not throw, so any thread may make them, including event loops.
///
/// `records` contains the records of each source, and `originals` contains the bodies, with their digests as keys. Each
/// store has a separate budget. A body also carries a record of each source for which it was stored. If `records` has
/// evicted a source, the record is read from the body that is named after the source, so a record stays available for
/// as long as its body. Only one body is named after a source, and its record of that source is the most recent one
/// (RFC 9111 §4). A purge finds variants by the digest of their original.
package final class MemoryTier: Sendable {
    package let records: MemoryStore<[OriginalRecord]>
    package let originals: MemoryStore<[OriginalRecord]>
    package let variants: MemoryStore<VariantEntry>
    let purges = SharedJournal()
    private let updating = Mutex<Void>(())

    init(_ budgets: MemoryBudgets) {
        records = MemoryStore(budget: budgets.records, purges: purges, of: .originals)
        originals = MemoryStore(budget: budgets.originals, purges: purges, of: .originals)
        variants = MemoryStore(budget: budgets.variants, purges: purges, of: .variants)
    }

    /// Returns an estimate of the time for fetching an original, in milliseconds. It is used if the time was not
    /// measured, and is 30 ms plus the time for the bytes at 5 MB per second.
    private static func fetchEstimate(bytes: Int) -> Double { 30 + Double(bytes) / 5_000 }

    /// The cost of every record for the eviction policy, in milliseconds. It is constant, so only the size and the
    /// access count matter.
    private static let costOfRecord = 30.0

    // MARK: Records

    /// Returns the records of a source without counting an access. Returns nil if the source has no records.
    func peek(source: String) -> [OriginalRecord]? {
        if let found = records.peek(source)?.value { return found }
        let found = originals.first(named: source)?.value.filter { ByteString($0.source) == ByteString(source) }
        return found?.isEmpty == false ? found : nil
    }

    /// Adds a record to its source, which keeps the most recent `selectionLimit` records.
    ///
    /// - Parameter known: the other records, in case they have been evicted since they were looked up.
    func update(_ record: OriginalRecord, known: [OriginalRecord] = [], generation: PurgeMark?) -> Bool {
        // Two selections of one source may arrive at the same time, and neither may overwrite the other.
        updating.withLock { _ in
            var all = peek(source: record.source) ?? known
            all.removeAll { $0.selection == record.selection }
            all.append(record)
            all.sort { $0.response.responseTime > $1.response.responseTime }
            attachRecord(record)
            return keep(Array(all.prefix(OriginalRecord.selectionLimit)), of: record.source, generation: generation)
        }
    }

    /// Replaces all records of a source.
    @discardableResult
    func keep(_ all: [OriginalRecord], of source: String, generation: PurgeMark?) -> Bool {
        let bytes = all.reduce(0) { $0 + Self.bytes(of: $1) }
        return records.insert(
            all, body: [], for: source, valueBytes: bytes, cost: Self.costOfRecord, generation: generation,
            name: source, source: source)
    }

    /// Stores a source's most recent record with its body if the body is in memory, and removes the source's records
    /// from other bodies.
    private func attachRecord(_ record: OriginalRecord) {
        let isOfSource = { @Sendable (held: OriginalRecord) in ByteString(held.source) == ByteString(record.source) }
        originals.dropName(record.source, but: record.digest) { $0.removeAll(where: isOfSource) }
        originals.update(record.digest) { held in
            guard let at = held.firstIndex(where: isOfSource) else { return }
            held.removeAll(where: isOfSource)
            held.insert(record, at: at)
        }
    }

    /// Removes all records of a source, but no bodies. Called because another tier has a more recent record.
    func removeRecords(of source: String) {
        updating.withLock { _ in
            records.remove(source)
            originals.dropName(source, but: "") { $0.removeAll { ByteString($0.source) == ByteString(source) } }
        }
    }

    /// Merges another store's records of a source into the records in memory, keeping the newer record of each
    /// selection, and returns the result.
    func merged(_ stored: [OriginalRecord], of source: String, generation: PurgeMark) -> [OriginalRecord] {
        updating.withLock { _ in
            var all = stored
            for kept in peek(source: source) ?? [] {
                let at = all.firstIndex { $0.selection == kept.selection }
                if let at, all[at].response.responseTime >= kept.response.responseTime { continue }
                if let at { all[at] = kept } else { all.append(kept) }
            }
            if let newest = Self.newest(of: all) {
                attachRecord(newest)
                keep(all, of: source, generation: generation)
            }
            return all
        }
    }

    private static func newest(of records: [OriginalRecord]) -> OriginalRecord? {
        records.max { $0.response.responseTime < $1.response.responseTime }
    }

    /// Returns the approximate memory of a record with its strings. Each string takes about 64 bytes in addition to its
    /// text.
    private static func bytes(of record: OriginalRecord) -> Int {
        record.response.fields.reduce(512 + 2 * record.source.utf8.count) { sum, field in
            sum + 128 + field.name.utf8.count + field.value.utf8.count
        }
    }

    /// Returns the records of a source and counts the access. Returns nil if the source has no records.
    func foundRecords(of source: String) -> [OriginalRecord]? {
        records.entry(for: source)?.value ?? peek(source: source)
    }

    package func removeRecord(source: String, selection: OriginalRecord.Selection) -> Bool {
        updating.withLock { _ in
            guard let all = peek(source: source) else { return false }
            let removed = all.filter { $0.selection == selection }
            records.update(source) { $0.removeAll { $0.selection == selection } }
            for record in removed {
                originals.update(record.digest) { $0.removeAll { $0.hasSameSelection(as: record) } }
            }
            return !removed.isEmpty
        }
    }

    // MARK: Bodies

    /// Stores a body with its record, which is the most recent of its source.
    func keep(_ body: [UInt8], under record: OriginalRecord, generation: PurgeMark) {
        attachRecord(record)
        // These are the records of other sources with the same bytes. If a source is left out here, it is fetched again
        // after a purge of the other sources.
        let others =
            originals.peek(record.digest)?.value.filter { ByteString($0.source) != ByteString(record.source) } ?? []
        let cost = record.fetchMilliseconds > 0 ? record.fetchMilliseconds : Self.fetchEstimate(bytes: body.count)
        originals.insert(
            [record] + others.prefix(OriginalRecord.selectionLimit - 1), body: body, for: record.digest, cost: cost,
            generation: generation, name: record.source, source: record.source)
    }

    /// Stores a body that was read from disk, with its record if the record is known to be the most recent of its
    /// source.
    func keep(_ body: [UInt8], of digest: String, _ record: OriginalRecord?, generation: PurgeMark) {
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
    func keep(_ entry: VariantEntry, body: [UInt8], of source: String?, generation: PurgeMark) -> Bool {
        variants.insert(
            entry, body: body, for: entry.key, valueBytes: entry.recipe.utf8.count, cost: entry.cost,
            generation: generation, name: entry.originalDigest, source: source)
    }

    // MARK: The whole

    /// Removes the entries that a selection covers, and invalidates work in progress on them.
    func purge(_ selection: EntrySelection) -> PurgeResult {
        switch selection.mode {
        case .soft: return makeStale(selection)
        case .variantsOnly:
            let known = known(to: selection)
            return purging { result in
                result.sources = Set(known.map { ByteString($0.source) }).count
                result.digests = selection.digests.union(known.map(\.digest))
                variants.void(EntrySelection(matching: selection.matching))
                result.variants = variants.remove(named: result.digests)
            }
        case .hard:
            if let matching = selection.matching {
                var result = purge(matching, digests: selection.digests)
                if !selection.sources.isEmpty { result.add(purge(EntrySelection(sources: selection.sources))) }
                return result
            }
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

    /// Returns the records that a selection covers.
    private func known(to selection: EntrySelection) -> [OriginalRecord] {
        var sources = Set(selection.sources.map(ByteString.init))
        if let matching = selection.matching {
            sources.formUnion(
                (records.values(namedIn: matching) + originals.values(namedIn: matching)).joined()
                    .map(\.source).filter(matching.contains).map(ByteString.init))
        }
        return sources.flatMap { peek(source: $0.text) ?? [] }
    }

    private func makeStale(_ selection: EntrySelection) -> PurgeResult {
        // This comes first, so that work in progress does not store fresh records again.
        records.void(EntrySelection(sources: selection.sources, matching: selection.matching))
        var result = PurgeResult()
        for source in Set(known(to: selection).map { ByteString($0.source) }).map(\.text) {
            updating.withLock { _ in
                guard var all = peek(source: source) else { return }
                for at in all.indices { all[at].response.isSoftPurged = true }
                for record in all {
                    originals.update(record.digest) { held in
                        for at in held.indices where held[at].hasSameSelection(as: record) { held[at] = record }
                    }
                }
                keep(all, of: source, generation: nil)
                result.sources += 1
                result.records += all.count
            }
        }
        result.mark = purges.mark
        return result
    }

    /// Removes the entries of these sources and digests and of the selections, and invalidates work in progress on
    /// them.
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

    /// Evicts entries until the tiers take up at most this fraction of their current memory.
    ///
    /// - Returns: the number of bytes freed.
    func reduce(to share: Double) -> Int {
        records.reduce(to: share) + originals.reduce(to: share) + variants.reduce(to: share)
    }

    func removeAll() {
        records.removeAll()
        originals.removeAll()
        variants.removeAll()
    }

    /// Returns the sources with a matching record. Visits all records.
    func sources(where matches: (OriginalRecord) -> Bool) -> Set<ByteString> {
        let found = records.values { $0.contains(where: matches) } + originals.values { $0.contains(where: matches) }
        return Set(found.joined().filter(matches).map { ByteString($0.source) })
    }

    /// Returns the originals of variants with a matching recipe. Visits all variants.
    func originals(whereRecipe matches: (String) -> Bool) -> Set<ByteString> {
        Set(variants.values { matches($0.recipe) }.map { ByteString($0.originalDigest) })
    }

    /// Purges the sources in a selection.
    ///
    /// - Parameter digests: additional originals that are known to belong to these sources.
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
                // A body that also belongs to a different source stays, but without the purged records.
                if isShared(digest) {
                    originals.update(digest) { $0.removeAll { selection.contains($0.source) } }
                } else if originals.remove(digest) {
                    result.originals += 1
                }
            }
            variants.void(EntrySelection(matching: selection))
            result.variants = variants.remove(named: result.digests)
        }
    }

    /// Returns whether a record of a source that was not purged refers to this body.
    private func isShared(_ digest: String) -> Bool {
        (originals.peek(digest)?.value ?? []).contains { other in
            records.peek(other.source)?.value.contains { $0.digest == digest } == true
        }
    }

    /// Runs `body` and adds the number of bytes that it freed.
    private func purging(_ body: (inout PurgeResult) -> Void) -> PurgeResult {
        let before = originals.counters.bytes + variants.counters.bytes
        var result = PurgeResult()
        body(&result)
        result.bytes = max(0, before - originals.counters.bytes - variants.counters.bytes)
        result.mark = purges.mark
        return result
    }

    package func statistics() -> TierStatistics {
        TierStatistics(originals: originals.counters, variants: variants.counters, records: records.counters)
    }
}
