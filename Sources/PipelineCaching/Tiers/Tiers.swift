import HTTPCaching
package import PipelineSupport
import Synchronization

/// All tiers of the pipeline: memory first, which responds without suspending, then the other tiers from near to far.
///
/// Errors of a tier are counted, and are logged once. They lead to a miss or a skipped store, but a request never fails
/// because of them.
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
    /// The decoded variants, with the digest of their encoded bytes as the key.
    package let pixels: MemoryStore<DecodedVariant>
    /// The cache folder, which other processes may use too, or nil if there is none.
    package let folder: DiskTier?
    /// The tiers behind memory, from near to far.
    let links: [TierLink]
    /// Entries waiting to be stored in the nearest tier. Until they are stored, they may exist only here.
    private let waiting: WaitingEntries
    /// The number of bytes that a waiting file counts as. It takes no memory, but it takes one of about a thousand file
    /// descriptors.
    private static let bytesOfWaitingFile = 1 << 20
    package let warn: @Sendable (String) -> Void
    private let hasLoggedNotice = Atomic<Bool>(false)
    let now: @Sendable () -> Double
    let nextCatchUp = Atomic<UInt64>(0)
    /// The purges by other machines, or nil if there is no fleet.
    let purgeUpdates: (any PurgeUpdates)?
    /// Whether records are being marked for validation. Until that is complete, all records are validated.
    let isDoubting = Atomic<Bool>(false)

    /// Opens the folder if the configuration contains one.
    package init(_ configuration: TiersConfiguration, readers: OwnedThreads) throws(StoreError) {
        memory = MemoryTier(configuration.memory)
        originals = memory.originals
        variants = memory.variants
        waiting = WaitingEntries(memory.purges)
        pixels = MemoryStore(budget: configuration.memory.pixels)
        let warn = configuration.warn
        (self.warn, now, purgeUpdates) = (warn, configuration.now, configuration.purgeUpdates)
        if let path = configuration.folder {
            folder = try DiskTier(
                folder: path, configuration: configuration.disk, readers: readers,
                longestInMemory: configuration.longestInMemory)
        } else {
            folder = nil
        }
        let near = folder.map { TierLink($0, nil, queueBytes: configuration.writeBehindBytes, warn: warn) }
        links =
            [near].compactMap(\.self)
            + configuration.tiers.map { TierLink($0.tier, $0, queueBytes: $0.queueBytes, warn: warn) }
        for (at, link) in links.enumerated() {
            (link.tier as? ObjectTier)?.purges.removeCopies.withLock { remove in
                remove = { [weak self] in await self?.removeCopies($0, before: at) }
            }
        }
        logNotice()
    }

    /// The counters of each tier behind memory, from near to far.
    package var tierCounters: [TierCounters] { links.map(\.counters) }

    /// The purges that this process knew of when a piece of work began. If a purge of the work's source has happened
    /// since, the result is not stored.
    package struct Marks: Sendable, Hashable {
        package var memory: PurgeMark
        /// The mark of the nearest tier behind memory.
        package var near: PurgeMark
        var farther: [PurgeMark]

        fileprivate subscript(tier: Int) -> PurgeMark { tier == 0 ? near : farther[tier - 1] }
    }

    // MARK: Looking up

    /// Returns the marks up to which this process has read purges. Call it before any look-up.
    package func marks() -> Marks {
        Marks(
            memory: memory.purges.mark, near: links.first?.mark ?? PurgeMark(0),
            farther: links.count < 2 ? [] : links.dropFirst().map(\.mark))
    }

    /// Removes entries from memory that other processes have purged, and then returns the marks.
    package func currentMarks() async -> Marks {
        await catchUp()
        return marks()
    }

    package struct RecordLookup: Sendable {
        package var records: [OriginalRecord]
        package var marks: Marks
        /// The tier that has the records, or nil if no tier has any.
        package var tier: TierName?
    }

    /// Returns the stored responses of a source, from memory or, if memory has none, from the nearest tier that has
    /// any.
    ///
    /// - Parameter again: whether this is the second look-up in the same request. It reads the folder even if memory
    ///   has records, because another process may have stored newer records. Tiers behind the folder are not queried
    ///   twice.
    package func records(of source: String, again: Bool = false) async -> RecordLookup {
        let isKnown = if let purgeUpdates, !purgeUpdates.isCurrent { await purgeUpdates.catchUp() } else { true }
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
        logNotice()
        let current = changes.applied(to: stored)
        let records = memory.merged(current, of: source, generation: marks.memory)
        // Leave out records that a waiting change removes or replaces, and records of which memory has a later version.
        if let tier {
            for record in stored where current.contains(record) && records.contains(record) {
                promote(.original(record, body: nil), from: tier, bytes: 0, marks)
            }
        }
        return RecordLookup(
            records: records, marks: marks, tier: records.isEmpty ? nil : tier.map { links[$0].name } ?? nearest)
    }

    /// Returns a source's records from memory, without suspending. Returns nil if memory has no records or must not be
    /// used now.
    package func recordsInMemory(of source: String) -> RecordLookup? {
        purgeUpdates?.isCurrent == false ? nil : heldRecords(of: source)
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

    /// Returns the body of an original by its digest. A long body is a file, which stays intact while the caller holds
    /// it.
    ///
    /// - Parameter record: a record, and the marks of the look-up that found it. If the body is read from a farther
    ///   tier, the record is stored together with the body, unless a purge since these marks covers it.
    package func originalBody(
        _ digest: String, of record: (OriginalRecord, Marks)? = nil
    ) async -> (body: EntryBody, tier: TierName)? {
        if digest == Self.emptyDigest { return (.bytes([]), .memory) }
        if !isMemoryCurrent { await catchUp() }
        if isMemoryCurrent {
            if let entry = originals.entry(for: digest) { return (.bytes(entry.body), .memory) }
            if let body = waiting.body(digest) { return (body, nearest) }
        }
        let (record, marks) = record.map { ($0, $1) } ?? (nil, marks())
        for (at, link) in links.enumerated() {
            guard case .original(let body?)? = await link.find(.original(digest), .body) else { continue }
            if case .bytes(let bytes) = body { memory.keep(bytes, of: digest, record, generation: marks.memory) }
            // Another request may have stored a later record in the meantime.
            let latest = record.map { record in
                memory.peek(source: record.source)?.first { $0.selection == record.selection } ?? record
            }
            if at > 0, let latest, latest.digest == digest {
                promote(.original(latest, body: body), from: at, bytes: queued(body), marks)
            }
            return (body, link.name)
        }
        return nil
    }

    /// Returns the tier that has the body of an original. Returns nil if no tier has it.
    package func tierOfOriginal(_ digest: String) async -> TierName? {
        if isMemoryCurrent, originals.peek(digest) != nil { return .memory }
        if waiting.body(digest) != nil { return nearest }
        for link in links where await link.find(.original(digest), .description, isCounted: false) != nil {
            return link.name
        }
        return nil
    }

    /// Returns a variant by its key. A variant found behind memory is copied to memory.
    ///
    /// - Parameters:
    ///   - source: the source of the variant's original, so that a purge of the source finds the copy.
    ///   - again: whether this is the second look-up in the same request. This look-up does not count a second miss,
    ///     and does not query tiers behind the folder.
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
            memory.keep(entry, body: body, of: source, generation: marks.memory)
            promote(.variant(entry, body: body, source: source), from: at, bytes: body.count, marks)
            return (StoredVariant(entry: entry, body: body), link.name)
        }
        return nil
    }

    /// Copies the second version of a variant from a tier behind memory, where another process or machine may have stored
    /// it, to the nearer tiers. Returns its length, or nil if no tier has it.
    package func adoptSecondPass(of first: VariantEntry, from source: String, _ marks: Marks) async -> Int? {
        for (at, link) in links.enumerated() {
            let found = await link.find(.variant(first.key, of: first.originalDigest), .body, isCounted: false)
            guard case .variant(let entry, let body?)? = found, entry.firstLength != nil else { continue }
            memory.keep(entry, body: body, of: source, generation: marks.memory)
            promote(.variant(entry, body: body, source: source), from: at, bytes: body.count, marks)
            return entry.length
        }
        return nil
    }

    // MARK: Storing

    /// Stores a record and, unless the source is a file, its body. A body that is a file is not kept in memory.
    ///
    /// - Parameter known: the records of the source as they were looked up, in case memory has evicted them since.
    package func store(
        _ record: OriginalRecord, body: EntryBody?, storage: StorageOptions, marks: Marks, known: [OriginalRecord] = []
    ) {
        let isBehind = !links.isEmpty && storage.contains(.originalsOnDisk)
        // The body is stored before the record becomes visible, so that a look-up that finds the record also finds the
        // body.
        let waitingBody =
            isBehind
            ? body.map {
                waiting.add(
                    .body($0), under: .body(record.digest), of: record.source, mark: marks.memory)
            } : nil
        if storage.contains(.originalsInMemory) {
            if case .bytes(let bytes)? = body { memory.keep(bytes, under: record, generation: marks.memory) }
        }
        guard update(record, known, storage, marks) else { return }
        let waitingRecord = wait(record, of: record, marks.memory)
        writeBehind(.original(record, body: body), bytes: body.map(queued) ?? 0, marks) {
            waitingRecord()
            waitingBody?()
        }
    }

    /// Returns whether a body may be a file. It may be a file if a tier takes over the file or if no tier stores the
    /// body.
    package func takesFiles(_ storage: StorageOptions) -> Bool {
        !links.isEmpty && (storage.contains(.originalsOnDisk) || !storage.contains(.originalsInMemory))
    }

    /// Replaces a record's header fields and times after a 304 response.
    package func freshen(
        _ record: OriginalRecord, storage: StorageOptions, marks: Marks, known: [OriginalRecord] = []
    ) {
        guard update(record, known, storage, marks) else { return }
        writeBehind(.freshenedRecord(record), bytes: 0, marks, end: wait(record, of: record, marks.memory))
    }

    /// Stores a record in memory. If a tier is not allowed to store the record, its own record is removed, because it
    /// is now outdated.
    ///
    /// - Returns: whether to store the record in the tiers behind memory.
    private func update(
        _ record: OriginalRecord, _ known: [OriginalRecord], _ storage: StorageOptions, _ marks: Marks
    ) -> Bool {
        let isBehind = !links.isEmpty && storage.contains(.originalsOnDisk)
        if storage.contains(.originalsInMemory) {
            _ = memory.update(record, known: known, generation: marks.memory)
            if !isBehind { removeBehindMemory(record) }
        } else if isBehind {
            memory.removeRecords(of: record.source)
        }
        return isBehind
    }

    /// Removes a record that the origin replaced with a response that must not be stored. Its variants stay under its
    /// digest.
    package func forget(_ record: OriginalRecord) {
        _ = memory.removeRecord(source: record.source, selection: record.selection)
        removeBehindMemory(record)
    }

    private func removeBehindMemory(_ record: OriginalRecord) {
        if links.isEmpty { return }
        let marks = marks()
        writeBehind(.removedRecord(record), bytes: 0, marks, end: wait(nil, of: record, marks.memory))
    }

    package func store(
        _ entry: VariantEntry, body: [UInt8], of source: String, storage: StorageOptions, marks: Marks
    ) {
        if storage.contains(.variantsInMemory) {
            memory.keep(entry, body: body, of: source, generation: marks.memory)
        }
        guard storage.contains(.variantsOnDisk), !links.isEmpty else { return }
        let end = waiting.add(
            .variant(StoredVariant(entry: entry, body: body)), under: .variant(entry.key), of: source,
            mark: marks.memory)
        writeBehind(.variant(entry, body: body, source: source), bytes: body.count, marks, end: end)
    }

    /// Lets look-ups find the record, or its removal if `new` is nil, while it is waiting to be stored. The returned
    /// closure ends this.
    private func wait(_ new: OriginalRecord?, of record: OriginalRecord, _ mark: PurgeMark) -> @Sendable () -> Void {
        waiting.add(
            .record(new, record.selection), under: .records(source: ByteString(record.source)), of: record.source,
            mark: mark)
    }

    private func queued(_ body: EntryBody) -> Int {
        if case .file = body { return Self.bytesOfWaitingFile }
        return body.count
    }

    /// Queues a change for every tier behind memory. Look-ups find the change until `end` runs, once the nearest tier
    /// has stored it.
    private func writeBehind(
        _ kind: EntryChange.Kind, bytes: Int, _ marks: Marks, end: @escaping @Sendable () -> Void
    ) {
        for (at, link) in links.enumerated() {
            write(kind, to: at, link, bytes, marks) { if at == 0 { end() } }
        }
    }

    /// Copies an entry found in a tier to the nearer tiers behind memory.
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
                isSmall: bytes <= link.longestOfSeveral
            ) { [link, now] isStored in
                if !isStored { link.recordMissed(kind, now: now()) }
                end()
            })
    }

    /// Returns a change in which the variant's cost is the cost of a look-up in a farther tier, if that is less than
    /// the cost of rendering the variant.
    private func charged(_ kind: EntryChange.Kind, in tier: Int) -> EntryChange.Kind {
        guard case .variant(var entry, let body, let source) = kind,
            let lookup = links[(tier + 1)...].compactMap(\.millisecondsOfHit).min(), lookup < entry.cost
        else { return kind }
        entry.cost = lookup
        return .variant(entry, body: body, source: source)
    }

    // MARK: The whole

    /// Waits until everything queued is stored.
    package func drain() async { for link in links { await link.queue.drain() } }

    /// Drains the queues, and then closes the folder.
    package func close() async {
        await drain()
        await folder?.close()
    }

    /// Logs the folder's notice once, for example that the cached entries are lost.
    private func logNotice() {
        guard let notice = folder?.store.notice, !hasLoggedNotice.exchange(true, ordering: .relaxed) else { return }
        warn(notice)
    }
}
