import HTTPCaching
package import PipelineSupport
import Synchronization

/// All tiers as the stages use them: memory in front, which answers without suspending, then the others near to far.
///
/// Errors of a tier are counted, and logged once; they cause a miss or a skipped store, and never fail a request.
package final class Tiers: Sendable {
    /// The metadata of decoded pixels.
    package struct DecodedVariant: Sendable {
        package var width: Int
        package var height: Int

        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    package struct StoredVariant: Sendable {
        package var entry: VariantEntry
        package var body: [UInt8]
    }

    package let memory: MemoryTier
    package let originals: MemoryStore<[OriginalRecord]>
    package let variants: MemoryStore<VariantEntry>
    /// Decoded variants by the digest of their encoded bytes.
    package let pixels: MemoryStore<DecodedVariant>
    /// The cache folder, which other processes may use too; nil without one.
    package let folder: DiskTier?
    /// The tiers behind memory, near to far.
    let links: [TierLink]
    /// Entries waiting to be stored in the nearest tier; until they are, this may be the only place that has them.
    private let waiting: WaitingEntries
    /// Bytes that a waiting file counts as: it takes no memory, but one of about a thousand file descriptors.
    private static let bytesOfWaitingFile = 1 << 20
    let warn: @Sendable (String) -> Void
    private let hasToldOfNotice = Atomic<Bool>(false)
    let now: @Sendable () -> Double
    let nextCatchUp = Atomic<UInt64>(0)
    /// What other machines purge; nil without a fleet.
    let news: (any PurgeNews)?
    /// Whether records are being put in doubt: all are, whatever they say.
    let isDoubting = Atomic<Bool>(false)

    /// Opens the folder, if there is one.
    package init(_ configuration: TiersConfiguration, readers: OwnedThreads) throws(StoreError) {
        memory = MemoryTier(configuration.memory)
        originals = memory.originals
        variants = memory.variants
        waiting = WaitingEntries(originals: originals.purges, variants: variants.purges)
        pixels = MemoryStore(budget: configuration.memory.pixels)
        let warn = configuration.warn
        (self.warn, now, news) = (warn, configuration.now, configuration.news)
        if let path = configuration.folder {
            folder = try DiskTier(
                folder: path, configuration: configuration.disk, readers: readers,
                longestInMemory: configuration.longestInMemory, waits: configuration.waits)
        } else {
            folder = nil
        }
        let near = folder.map { TierLink($0, queueBytes: configuration.writeBehindBytes, warn: warn) }
        links = [near].compactMap(\.self) + configuration.tiers.map { TierLink($0, warn: warn) }
        for (at, link) in links.enumerated() {
            (link.tier as? ObjectTier)?.purges.removeCopies.withLock { remove in
                remove = { [weak self] in await self?.removeCopies($0, before: at) }
            }
        }
        tellOfNotice()
    }

    /// What each tier behind memory has done, near to far.
    package var tierCounters: [TierCounters] { links.map(\.counters) }

    /// How far this process knew the purges when work began; if a purge of its source came since, its result is not
    /// stored.
    package struct Marks: Sendable, Hashable {
        /// Of memory.
        package var originals: UInt64
        var variants: UInt64
        /// Of the nearest tier behind memory, and of the others.
        package var near: PurgeMark
        var farther: [PurgeMark]

        fileprivate subscript(tier: Int) -> PurgeMark { tier == 0 ? near : farther[tier - 1] }
    }

    // MARK: Looking up

    /// The marks up to which this process has read purges; to be taken before anything is looked up.
    package func marks() -> Marks {
        Marks(
            originals: originals.generation, variants: variants.generation, near: links.first?.mark ?? PurgeMark(0),
            farther: links.count < 2 ? [] : links.dropFirst().map(\.mark))
    }

    /// The marks once memory is rid of what other processes have purged.
    package func currentMarks() async -> Marks {
        await catchUp()
        return marks()
    }

    package struct RecordLookup: Sendable {
        package var records: [OriginalRecord]
        package var marks: Marks
        /// nil if no tier has any.
        package var tier: TierName?
    }

    /// The stored responses of a source, from memory or else from the nearest tier that has any.
    ///
    /// - Parameter again: a second look-up in the same request, which reads the folder even if memory has some: another
    ///   process may have stored newer ones. Tiers behind the folder are not asked twice.
    package func records(of source: String, again: Bool = false) async -> RecordLookup {
        let isKnown = if let news, !news.isCurrent { await news.catchUp() } else { true }
        var found = await storedRecords(of: source, again: again)
        if !isKnown || isDoubting.load(ordering: .acquiring) {
            for at in found.records.indices { found.records[at].response.isInDoubt = true }
        }
        return found
    }

    private func storedRecords(of source: String, again: Bool) async -> RecordLookup {
        if !again || links.isEmpty {
            if let found = heldRecords(of: source) { return found }
            if links.isEmpty { return RecordLookup(records: [], marks: marks(), tier: nil) }
        }
        let marks = await currentMarks()
        let changes = waiting.records(of: source)
        var (stored, tier): ([OriginalRecord], Int?) = ([], nil)
        for (at, link) in links.enumerated() where !again || link.isFolder {
            guard case .records(let found)? = await link.find(.records(source: source), .description, isCounted: !again)
            else { continue }
            (stored, tier) = (found, at)
            break
        }
        tellOfNotice()
        let current = changes.applied(to: stored)
        let records = memory.merged(current, of: source, generation: marks.originals)
        // Not what a waiting change removes or replaces.
        if let tier {
            for record in stored where current.contains(record) {
                promote(.original(record, body: nil), from: tier, bytes: 0, marks)
            }
        }
        return RecordLookup(
            records: records, marks: marks, tier: records.isEmpty ? nil : tier.map { links[$0].name } ?? nearest)
    }

    /// The records that memory holds of a source, without suspending; nil if it has none, or may not answer now.
    package func recordsInMemory(of source: String) -> RecordLookup? {
        news?.isCurrent == false ? nil : heldRecords(of: source)
    }

    private func heldRecords(of source: String) -> RecordLookup? {
        catchUpWithFartherTiers()
        guard isMemoryCurrent else { return nil }
        let marks = marks()
        return memory.foundRecords(of: source).map { RecordLookup(records: $0, marks: marks, tier: .memory) }
    }

    private var nearest: TierName { links.first?.name ?? .memory }

    /// The digest of an empty body, which need not be stored.
    private static let emptyDigest = sha256Hex([UInt8]())

    /// The body of an original by its digest; a long one is a file, which stays intact while the caller holds it.
    ///
    /// - Parameter record: kept in memory together with a body that is read from another tier.
    package func originalBody(
        _ digest: String, of record: OriginalRecord? = nil
    ) async -> (body: EntryBody, tier: TierName)? {
        if digest == Self.emptyDigest { return (.bytes([]), .memory) }
        if !isMemoryCurrent { await catchUp() }
        if isMemoryCurrent {
            if let entry = originals.entry(for: digest) { return (.bytes(entry.body), .memory) }
            if let body = waiting.body(digest) { return (body, nearest) }
        }
        let marks = marks()
        for (at, link) in links.enumerated() {
            guard case .original(let body?)? = await link.find(.original(digest), .body) else { continue }
            if case .bytes(let bytes) = body { memory.keep(bytes, of: digest, record, generation: marks.originals) }
            if at > 0, let record, record.digest == digest {
                promote(.original(record, body: body), from: at, bytes: queued(body), marks)
            }
            return (body, link.name)
        }
        return nil
    }

    /// The tier that has the body of an original; nil if it is gone.
    package func tierOfOriginal(_ digest: String) async -> TierName? {
        if isMemoryCurrent, originals.peek(digest) != nil { return .memory }
        if waiting.body(digest) != nil { return nearest }
        for link in links where await link.find(.original(digest), .description, isCounted: false) != nil {
            return link.name
        }
        return nil
    }

    /// A variant by its key; one found behind memory is copied there.
    ///
    /// - Parameters:
    ///   - source: where its original came from, so that a purge of it finds a copy.
    ///   - again: a second look-up in the same request, which counts no second miss and asks no tier behind the folder.
    package func variant(
        _ key: String, of original: String, from source: String? = nil, again: Bool = false
    ) async -> (StoredVariant, TierName)? {
        if !isMemoryCurrent { await catchUp() }
        if isMemoryCurrent {
            if !again || variants.peek(key) != nil, let found = variants.entry(for: key) {
                return (StoredVariant(entry: found.value, body: found.body), .memory)
            }
            if let variant = waiting.variant(key) { return (variant, .memory) }
        }
        let marks = marks()
        for (at, link) in links.enumerated() where !again || link.isFolder {
            if again, await link.find(.variant(key, of: original), .description, isCounted: false) == nil { continue }
            guard case .variant(let entry, let body?)? = await link.find(.variant(key, of: original), .body) else {
                continue
            }
            memory.keep(entry, body: body, of: source, generation: marks.variants)
            promote(.variant(entry, body: body, source: source), from: at, bytes: body.count, marks)
            return (StoredVariant(entry: entry, body: body), link.name)
        }
        return nil
    }

    // MARK: Storing

    /// Stores a record and, unless the source is a file, its body; a body that is a file is not kept in memory.
    ///
    /// - Parameter known: records of the source as they were looked up, in case memory has evicted them since.
    package func store(
        _ record: OriginalRecord, body: EntryBody?, storage: StorageOptions, marks: Marks, known: [OriginalRecord] = []
    ) {
        let isBehind = !links.isEmpty && storage.contains(.originalsOnDisk)
        // A body is there before the record becomes visible, so that a look-up that finds the record also finds it.
        let waitingBody =
            isBehind
            ? body.map {
                waiting.add(
                    .body($0), under: .body(record.digest), of: record.source, generation: marks.originals)
            } : nil
        if storage.contains(.originalsInMemory) {
            if case .bytes(let bytes)? = body { memory.keep(bytes, under: record, generation: marks.originals) }
        }
        guard update(record, known, storage, marks) else { return }
        let waitingRecord = wait(record, of: record, marks.originals)
        writeBehind(.original(record, body: body), bytes: body.map(queued) ?? 0, marks) {
            waitingRecord()
            waitingBody?()
        }
    }

    /// Whether a body may come as a file: if a tier takes it over, or none is to keep it.
    package func takesFiles(_ storage: StorageOptions) -> Bool {
        !links.isEmpty && (storage.contains(.originalsOnDisk) || !storage.contains(.originalsInMemory))
    }

    /// Replaces a record's fields and times after a 304.
    package func freshen(
        _ record: OriginalRecord, storage: StorageOptions, marks: Marks, known: [OriginalRecord] = []
    ) {
        guard update(record, known, storage, marks) else { return }
        writeBehind(.freshened(record), bytes: 0, marks, end: wait(record, of: record, marks.originals))
    }

    /// Stores a record in memory. A tier that is not to store it gives up the one that it has, which is older now.
    ///
    /// - Returns: whether to store the record in the tiers behind memory.
    private func update(
        _ record: OriginalRecord, _ known: [OriginalRecord], _ storage: StorageOptions, _ marks: Marks
    ) -> Bool {
        let isBehind = !links.isEmpty && storage.contains(.originalsOnDisk)
        if storage.contains(.originalsInMemory) {
            _ = memory.update(record, known: known, generation: marks.originals)
            if !isBehind { removeBehindMemory(record) }
        } else if isBehind {
            memory.removeRecords(of: record.source)
        }
        return isBehind
    }

    /// Removes a record that the origin replaced with one that may not be stored. Its variants stay under its digest.
    package func forget(_ record: OriginalRecord) {
        _ = memory.removeRecord(source: record.source, selecting: record.response.selecting)
        removeBehindMemory(record)
    }

    private func removeBehindMemory(_ record: OriginalRecord) {
        if links.isEmpty { return }
        let (selecting, marks) = (record.response.selecting, marks())
        writeBehind(
            .removedRecord(source: record.source, selecting: selecting), bytes: 0, marks,
            end: wait(nil, of: record, marks.originals))
    }

    package func store(
        _ entry: VariantEntry, body: [UInt8], of source: String, storage: StorageOptions, marks: Marks
    ) {
        if storage.contains(.variantsInMemory) {
            memory.keep(entry, body: body, of: source, generation: marks.variants)
        }
        guard storage.contains(.variantsOnDisk), !links.isEmpty else { return }
        let end = waiting.add(
            .variant(StoredVariant(entry: entry, body: body)), under: .variant(entry.key), of: source,
            generation: marks.variants)
        writeBehind(.variant(entry, body: body, source: source), bytes: body.count, marks, end: end)
    }

    /// Lets look-ups find the record (nil: its removal) while it waits to be stored; the returned closure ends that.
    private func wait(_ new: OriginalRecord?, of record: OriginalRecord, _ generation: UInt64) -> @Sendable () -> Void {
        waiting.add(
            .record(new, selecting: record.response.selecting), under: .records(source: ByteString(record.source)),
            of: record.source, generation: generation)
    }

    private func queued(_ body: EntryBody) -> Int {
        if case .file = body { return Self.bytesOfWaitingFile }
        return body.count
    }

    /// Queues a change for every tier behind memory. Look-ups find it until `end` runs, once the nearest has stored it.
    private func writeBehind(
        _ kind: EntryChange.Kind, bytes: Int, _ marks: Marks, end: @escaping @Sendable () -> Void
    ) {
        for (at, link) in links.enumerated() {
            write(kind, to: at, link, bytes, marks) { if at == 0 { end() } }
        }
    }

    /// Copies what was found in a tier to the nearer ones behind memory.
    private func promote(_ kind: EntryChange.Kind, from tier: Int, bytes: Int, _ marks: Marks) {
        for (at, link) in links[..<tier].enumerated() { write(kind, to: at, link, bytes, marks, end: {}) }
    }

    private func write(
        _ kind: EntryChange.Kind, to tier: Int, _ link: TierLink, _ bytes: Int, _ marks: Marks,
        end: @escaping @Sendable () -> Void
    ) {
        link.queue.submit(
            WriteBehind.Write(
                change: EntryChange(charged(kind, in: tier), mark: marks[tier]), bytes: bytes,
                isSmall: bytes <= link.longestOfSeveral, end: end))
    }

    /// A variant that a farther tier is there for costs a look-up there to have again, if that is less than rendering it.
    private func charged(_ kind: EntryChange.Kind, in tier: Int) -> EntryChange.Kind {
        guard case .variant(var entry, let body, let source) = kind,
            let lookup = links[(tier + 1)...].compactMap(\.millisecondsOfHit).min(), lookup < entry.cost
        else { return kind }
        entry.cost = lookup
        return .variant(entry, body: body, source: source)
    }

    // MARK: Sharing

    /// What others can find once it is stored.
    package enum Shared: Sendable {
        /// A record with this digest, and its body if it has one.
        case record(source: String, String, hasBody: Bool)
        case variant(String, of: String)
    }

    /// Tells, once everything queued so far is stored, whether other processes find something in the folder.
    func afterStoring(_ shared: Shared, _ tell: @escaping @Sendable (Bool) -> Void) {
        guard let link = links.first, link.isFolder else { return tell(false) }
        link.queue.afterwards {
            switch shared {
            case .record(let source, let digest, let hasBody):
                var isThere = false
                if case .records(let records)? = await link.find(
                    .records(source: source), .description, isCounted: false)
                {
                    isThere = records.contains { $0.digest == digest }
                }
                if isThere, hasBody {
                    isThere = await link.find(.original(digest), .description, isCounted: false) != nil
                }
                tell(isThere)
            case .variant(let key, let original):
                tell(await link.find(.variant(key, of: original), .description, isCounted: false) != nil)
            }
        }
    }

    // MARK: The whole

    /// Waits until everything queued is stored.
    package func drain() async { for link in links { await link.queue.drain() } }

    /// Drains, then closes the folder.
    package func close() async {
        await drain()
        await folder?.close()
    }

    /// Logs the folder's notice once, such as that what was cached is gone.
    private func tellOfNotice() {
        guard let notice = folder?.store.notice, !hasToldOfNotice.exchange(true, ordering: .relaxed) else { return }
        warn(notice)
    }
}
