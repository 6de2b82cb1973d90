import HTTPCaching
package import PipelineSupport
import Synchronization
/// The four tiers as the stages use them: originals and variants, each in memory and on disk.
///
/// Disk errors are counted, and logged once; they cause a miss or a skipped store, and never fail a request.
package final class CacheTiers: Sendable {
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
    package let disk: (any Store)?
    /// Coordinates work with the other processes on the folder; nil without a folder.
    package let locks: FlightLocks?
    /// Threads for look-ups, which answers wait for.
    let readers: OwnedThreads
    /// Stores in the background, after the answer.
    let writer: WriteBehind
    /// Bytes of the longest body that is read from disk into memory.
    private let longestInMemory: Int
    /// Entries waiting to be stored on disk; until they are, this may be the only place that has them.
    private let waiting = WaitingEntries()
    /// Bytes that a waiting file counts as: it takes no memory, but one of about a thousand file descriptors.
    private static let bytesOfWaitingFile = 1 << 20
    private let failures = Atomic<Int>(0)
    private let warn: @Sendable (String) -> Void
    private let hasWarned = Atomic<Bool>(false)
    private let hasToldOfNotice = Atomic<Bool>(false)

    /// Opens the disk tier, if there is one.
    package init(_ configuration: TiersConfiguration, readers: OwnedThreads) throws(StoreError) {
        memory = MemoryTier(configuration.memory)
        originals = memory.originals
        variants = memory.variants
        pixels = MemoryStore(budget: configuration.memory.pixels)
        self.readers = readers
        longestInMemory = configuration.longestInMemory
        warn = configuration.warn
        if let store = configuration.store {
            (disk, locks) = (store, nil)
        } else if let folder = configuration.folder {
            disk = try DiskStore(folder: folder, configuration: configuration.disk)
            locks = FlightLocks(folder: folder, limits: configuration.waits)
        } else {
            (disk, locks) = (nil, nil)
        }
        let disk = disk
        writer = WriteBehind(limit: configuration.writeBehindBytes) { stores throws(StoreError) in
            try disk?.together { () throws(StoreError) in for store in stores { try store() } }
        }
        // Not the hint, which may be ahead of what has been committed.
        let generation = attempt { () throws(StoreError) in try disk?.generationNow() } ?? nil
        knownGeneration.store(generation ?? 0, ordering: .relaxed)
        tellOfNotice()
    }

    /// Stores dropped because the disk fell too far behind, and disk errors so far.
    var counters: (dropped: Int, failures: Int) {
        (writer.dropped, failures.load(ordering: .relaxed))
    }

    /// The purge generations of the tiers when work began; if a purge came since, its result is not stored.
    package struct Generation: Sendable, Hashable {
        package var disk: UInt64
        package var originals: UInt64
        var variants: UInt64
    }

    // MARK: Looking up

    /// The generations up to which this process has read purges; to be taken before anything is looked up.
    package func generation() -> Generation {
        Generation(
            disk: knownGeneration.load(ordering: .acquiring), originals: originals.generation,
            variants: variants.generation)
    }

    /// The generations once memory is rid of what other processes have purged.
    package func currentGeneration() async -> Generation {
        if let disk, disk.generationHint == nil || !isMemoryCurrent { await readers.run { [self] in catchUp() } }
        return generation()
    }

    package struct RecordLookup: Sendable {
        package var records: [OriginalRecord]
        package var generation: Generation
        /// nil if no tier has any.
        package var tier: TierName?
    }

    /// The stored responses of a source, from memory or else from disk.
    ///
    /// - Parameter looksOnDisk: reads the disk even if memory has some: another process may have stored newer ones.
    package func records(of source: String, looksOnDisk: Bool = false) async -> RecordLookup {
        let known = generation()
        if !looksOnDisk, isMemoryCurrent, let records = memory.foundRecords(of: source) {
            return RecordLookup(records: records, generation: known, tier: .memory)
        }
        guard let disk else { return RecordLookup(records: [], generation: known, tier: nil) }
        return await readers.run { [self] in
            catchUp()
            let generation = generation()
            let stored = waiting.merged(source, generation: generation.originals) {
                attempt { () throws(StoreError) in try disk.records(source: source) } ?? []
            }
            let records = memory.merged(stored, of: source, generation: generation.originals)
            return RecordLookup(records: records, generation: generation, tier: records.isEmpty ? nil : .disk)
        }
    }

    /// The disk's purge generation up to which purged entries have been removed from memory.
    let knownGeneration = Atomic<UInt64>(0)
    /// Until when memory may answer although the disk cannot report purges.
    let unknownUntil = Atomic<UInt64>(0)
    let catching = Mutex<Void>(())
    /// The digest of an empty body, which need not be stored.
    private static let emptyDigest = sha256Hex([UInt8]())

    /// The body of an original by its digest; a long one is a file, which stays intact while the caller holds it.
    ///
    /// - Parameter record: kept in memory together with a body that is read from disk.
    package func originalBody(
        _ digest: Digest, of record: OriginalRecord? = nil
    ) async -> (body: EntryBody, tier: TierName)? {
        if digest == Self.emptyDigest { return (.bytes([]), .memory) }
        let isCurrent = isMemoryCurrent
        if isCurrent, let entry = originals.entry(for: digest) { return (.bytes(entry.body), .memory) }
        guard let disk else { return nil }
        if isCurrent, let body = waiting.body(digest, generation: originals.generation) { return (body, .disk) }
        let longest = longestInMemory
        return await readers.run { [self] in
            if !isCurrent {
                catchUp()
                if isMemoryCurrent, let entry = originals.entry(for: digest) { return (.bytes(entry.body), .memory) }
            }
            let generation = originals.generation
            let found = attempt { () throws(StoreError) in
                try disk.originalBody(digest: digest, longest: longest)
            }
            guard let body = found ?? nil else { return nil }
            if case .bytes(let bytes) = body {
                memory.keep(bytes, of: digest, record, generation: generation)
            }
            return (body, .disk)
        }
    }

    /// The tier that has the body of an original; `none` if it is gone.
    package func tierOfOriginal(_ digest: Digest) async -> TierName? {
        if isMemoryCurrent, originals.peek(digest) != nil { return .memory }
        guard let disk else { return nil }
        if waiting.body(digest, generation: originals.generation) != nil { return .disk }
        return await readers.run { [self] in
            attempt { () throws(StoreError) in try disk.holdsOriginal(digest: digest) } == true ? .disk : nil
        }
    }

    /// A variant by its key; one found on disk is promoted to memory.
    ///
    /// - Parameter again: a second look-up in the same request, which counts no second miss.
    package func variant(_ key: String, of original: Digest, again: Bool = false) async -> (StoredVariant, TierName)? {
        let isCurrent = isMemoryCurrent
        if isCurrent, !again || variants.peek(key) != nil, let found = variants.entry(for: key) {
            return (StoredVariant(entry: found.value, body: found.body), .memory)
        }
        guard let disk else { return nil }
        if isCurrent, let variant = waiting.variant(key, generation: variants.generation) {
            return (variant, .memory)
        }
        return await readers.run { [self] in
            if !isCurrent {
                catchUp()
                if isMemoryCurrent, let found = variants.entry(for: key) {
                    return (StoredVariant(entry: found.value, body: found.body), .memory)
                }
            }
            let generation = variants.generation
            let found = attempt { () throws(StoreError) -> (entry: VariantEntry, body: [UInt8])? in
                if again, try !disk.holdsVariant(key: key, of: original) { return nil }
                return try disk.variant(key: key, of: original)
            }
            guard let (entry, body) = found ?? nil else { return nil }
            memory.keep(entry, body: body, generation: generation)
            return (StoredVariant(entry: entry, body: body), .disk)
        }
    }

    // MARK: Storing

    /// Stores a record and, unless the source is a file, its body; a body that is a file is stored on disk only.
    ///
    /// - Parameter known: records of the source as they were looked up, in case memory has evicted them since.
    package func store(
        _ record: OriginalRecord, body: EntryBody?, storage: StorageOptions, generation: Generation,
        known: [OriginalRecord] = []
    ) {
        let isOnDisk = disk != nil && storage.contains(.originalsOnDisk)
        // Added before the record becomes visible, so that a look-up that finds the record also finds its body.
        let waitingBody =
            isOnDisk
            ? body.map { waiting.add(.body($0), under: .body(record.digest), generation: generation.originals) } : nil
        if storage.contains(.originalsInMemory) {
            _ = memory.update(record, known: known, generation: generation.originals)
            if case .bytes(let bytes)? = body { memory.keep(bytes, under: record, generation: generation.originals) }
        }
        guard isOnDisk, let disk else { return }
        let waitingRecord = wait(record, of: record, generation.originals)
        var bytes = body?.count ?? 0
        if case .file? = body { bytes = Self.bytesOfWaitingFile }
        writeBehind(bytes: bytes) { () throws(StoreError) in
            _ = try disk.storeOriginal(record, content: body, generation: generation.disk)
        } end: {
            waitingRecord()
            waitingBody?()
        }
    }

    /// Whether a body may come as a file: if the disk tier takes it over, or no tier is to keep it.
    package func takesFiles(_ storage: StorageOptions) -> Bool {
        disk != nil && (storage.contains(.originalsOnDisk) || !storage.contains(.originalsInMemory))
    }

    /// Replaces a record's fields and times after a 304.
    package func freshen(
        _ record: OriginalRecord, storage: StorageOptions, generation: Generation, known: [OriginalRecord] = []
    ) {
        if storage.contains(.originalsInMemory) {
            _ = memory.update(record, known: known, generation: generation.originals)
        }
        guard storage.contains(.originalsOnDisk), let disk else { return }
        let end = wait(record, of: record, generation.originals)
        writeBehind(bytes: 0, { () throws(StoreError) in _ = try disk.freshen(record) }, end: end)
    }

    /// Removes a record that the origin replaced with one that may not be stored. Its variants stay under its digest.
    package func forget(_ record: OriginalRecord) {
        let selecting = record.response.selecting
        _ = memory.removeRecord(source: record.source, selecting: selecting)
        guard let disk else { return }
        let end = wait(nil, of: record, originals.generation)
        writeBehind(
            bytes: 0,
            { () throws(StoreError) in
                _ = try disk.removeRecord(source: record.source, selecting: selecting)
            }, end: end)
    }

    package func store(
        _ entry: VariantEntry, body: [UInt8], of source: String, storage: StorageOptions, generation: Generation
    ) {
        if storage.contains(.variantsInMemory) { memory.keep(entry, body: body, generation: generation.variants) }
        guard storage.contains(.variantsOnDisk), let disk else { return }
        let end = waiting.add(
            .variant(StoredVariant(entry: entry, body: body)), under: .variant(entry.key),
            generation: generation.variants)
        writeBehind(
            bytes: body.count,
            { () throws(StoreError) in
                _ = try disk.storeVariant(entry, body: body, generation: generation.disk, source: source)
            }, end: end)
    }

    /// Lets look-ups find the record (nil: its removal) while it waits to be stored; the returned closure ends that.
    private func wait(_ new: OriginalRecord?, of record: OriginalRecord, _ generation: UInt64) -> @Sendable () -> Void {
        waiting.add(
            .record(new, selecting: record.response.selecting), under: .records(source: record.source),
            generation: generation)
    }

    /// Counts, in the background, that records found on disk were stale.
    package func noteStale() {
        guard let disk else { return }
        readers.submit { [self] in attempt { () throws(StoreError) in try disk.noteStale() } }
    }

    /// Waits until everything queued is stored.
    package func drain() async {
        await readers.run { [self] in writer.drain() }
    }

    /// Drains, then closes the database.
    package func close() async {
        await readers.run { [self] in
            writer.stop()
            disk?.close()
        }
    }

    // MARK: Private

    /// Queues a write, which look-ups find until `end` removes it; drops it if too much is waiting already.
    private func writeBehind(
        bytes: Int, _ store: @escaping @Sendable () throws(StoreError) -> Void, end: @escaping @Sendable () -> Void
    ) {
        writer.submit(
            WriteBehind.Write(
                bytes: bytes, isSmall: bytes <= DiskStoreConfiguration().inlineLimit, store: store,
                storeAlone: { [self] in attempt(store) }, end: end))
    }

    /// Logs the store's notice once, such as that what was cached is gone.
    private func tellOfNotice() {
        guard let notice = disk?.notice, !hasToldOfNotice.exchange(true, ordering: .relaxed) else { return }
        warn(notice)
    }

    @discardableResult
    func attempt<Value>(_ work: () throws(StoreError) -> Value) -> Value? {
        defer { tellOfNotice() }
        do throws(StoreError) {
            return try work()
        } catch {
            failures.add(1, ordering: .relaxed)
            if !hasWarned.exchange(true, ordering: .relaxed) {
                warn("the disk cache failed; continuing without it where necessary: \(error.description)")
            }
            return nil
        }
    }
}
