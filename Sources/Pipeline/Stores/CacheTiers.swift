import Synchronization
import Variants

/// The four tiers as the stages use them: originals and variants, each in memory and on disk.
///
/// Trouble with the disk is a miss or a store that did not happen, counted and warned of once; it fails no request.
final class CacheTiers: Sendable {
    struct StoredVariant: Sendable {
        var entry: VariantEntry
        var body: [UInt8]
    }

    let memory: MemoryTier
    let originals: MemoryStore<[OriginalRecord]>
    let variants: MemoryStore<VariantEntry>
    let disk: (any Store)?
    /// Look-ups, which answers wait for.
    let readers: OwnedThreads
    /// Storing behind the answer; one thread, since SQLite has one writer.
    let writer = OwnedThreads(count: 1)
    private let pendingBytes = Atomic<Int>(0)
    private let pendingLimit: Int
    /// Bytes of the longest body that is taken from disk into memory.
    private let longestInMemory: Int
    /// Bodies in files that wait for the disk tier: until they are there this is the only place that has them.
    private let waiting = Mutex<[Digest: (file: SpooledBody, stores: Int)]>([:])
    /// What a waiting file counts as: it takes a descriptor, of which there are a thousand or so, and no memory.
    private static let bytesOfWaitingFile = 1 << 20
    private let dropped = Atomic<Int>(0)
    private let troubles = Atomic<Int>(0)
    private let warn: @Sendable (String) -> Void
    private let hasWarned = Atomic<Bool>(false)
    private let hasToldOfNotice = Atomic<Bool>(false)

    init(_ configuration: PipelineConfiguration, readers: OwnedThreads) throws(PipelineError) {
        memory = MemoryTier(configuration.memory)
        originals = memory.originals
        variants = memory.variants
        self.readers = readers
        pendingLimit = configuration.writeBehindBytes
        longestInMemory = configuration.fetch.spoolBytes
        warn = configuration.warn
        do throws(StoreError) {
            var settings = DiskStoreConfiguration()
            settings.originals = configuration.disk.originals
            settings.variants = configuration.disk.variants
            settings.fsync = configuration.fsync
            if let store = configuration.store {
                disk = store
            } else if let folder = configuration.cacheFolder {
                disk = try DiskStore(folder: folder, configuration: settings)
            } else {
                disk = nil
            }
        } catch {
            throw PipelineError(.cacheUnavailable, error.description, cause: error)
        }
        tellOfNotice()
    }

    /// Stores dropped because the disk was too far behind, and disk failures met so far.
    var counters: (dropped: Int, troubles: Int) {
        (dropped.load(ordering: .relaxed), troubles.load(ordering: .relaxed))
    }

    /// The purge generations of the tiers when work began: what a purge has overtaken is stored nowhere.
    struct Generation: Sendable {
        var disk: UInt64
        var originals: UInt64
        var variants: UInt64
    }

    // MARK: Looking up

    /// The generations now, as far as this process knows; taken before anything is looked up.
    func generation() -> Generation {
        Generation(
            disk: lastDiskGeneration.load(ordering: .relaxed), originals: originals.generation,
            variants: variants.generation)
    }

    /// The generations now, read from the disk.
    func currentGeneration() async -> Generation {
        let known = generation()
        guard disk != nil else { return known }
        return await readers.run { [self] in readGeneration(known) }
    }

    /// Blocks on the disk.
    private func readGeneration(_ known: Generation) -> Generation {
        var generation = known
        if let disk, let now = attempt({ () throws(StoreError) in try disk.generationNow() }) {
            generation.disk = now
            lastDiskGeneration.store(now, ordering: .relaxed)
        }
        return generation
    }

    struct RecordLookup: Sendable {
        var records: [OriginalRecord]
        var generation: Generation
        var tier: OriginalOutcome
    }

    /// The stored responses of a source, from memory or else from disk.
    func records(of source: String) async -> RecordLookup {
        let known = generation()
        if let (records, _) = originals.entry(for: "record:" + source) {
            return RecordLookup(records: records, generation: known, tier: .memory)
        }
        guard let disk else { return RecordLookup(records: [], generation: known, tier: .none) }
        return await readers.run { [self] in
            let generation = readGeneration(known)
            let records = attempt { () throws(StoreError) in try disk.records(source: source) } ?? []
            if !records.isEmpty { memory.keep(records, of: source, generation: generation.originals) }
            return RecordLookup(records: records, generation: generation, tier: records.isEmpty ? .none : .disk)
        }
    }

    private let lastDiskGeneration = Atomic<UInt64>(0)
    /// What no bytes digest to; nothing needs to be kept to have them.
    private static let emptyDigest = sha256Hex([UInt8]())

    /// The body of an original by its digest: a long one as a file that stays whole as long as somebody has it.
    func originalBody(_ digest: Digest) async -> (body: EntryBody, tier: OriginalOutcome)? {
        if digest == Self.emptyDigest { return (.bytes([]), .memory) }
        if let (_, bytes) = originals.entry(for: "body:" + digest) { return (.bytes(bytes), .memory) }
        guard let disk else { return nil }
        if let (file, _) = waiting.withLock({ $0[digest] }) { return (.file(file), .disk) }
        let generation = originals.generation
        let longest = longestInMemory
        return await readers.run { [self] in
            let found = attempt { () throws(StoreError) in
                try disk.originalBody(digest: digest, longest: longest)
            }
            guard let body = found ?? nil else { return nil }
            if case .bytes(let bytes) = body {
                originals.insert(
                    [], body: bytes, for: "body:" + digest, cost: MemoryTier.fetchEstimate(bytes: bytes.count),
                    generation: generation)
            }
            return (body, .disk)
        }
    }

    /// Where the body of an original lies; `none` where it is gone.
    func tierOfOriginal(_ digest: Digest) async -> OriginalOutcome {
        if originals.peek("body:" + digest) != nil { return .memory }
        guard let disk else { return .none }
        if waiting.withLock({ $0[digest] != nil }) { return .disk }
        return await readers.run { [self] in
            attempt { () throws(StoreError) in try disk.holdsOriginal(digest: digest) } == true ? .disk : .none
        }
    }

    /// A variant by its key; what the disk had is promoted to memory.
    func variant(_ key: String) async -> (StoredVariant, Outcome)? {
        if let (entry, body) = variants.entry(for: key) { return (StoredVariant(entry: entry, body: body), .memory) }
        guard let disk else { return nil }
        let generation = variants.generation
        return await readers.run { [self] in
            guard let (entry, body) = attempt({ () throws(StoreError) in try disk.variant(key: key) }) ?? nil else {
                return nil
            }
            variants.insert(entry, body: body, for: key, cost: entry.cost, generation: generation)
            return (StoredVariant(entry: entry, body: body), .disk)
        }
    }

    // MARK: Storing

    /// Keeps a record and, unless the source is a file, its body; one in a file goes to disk alone.
    ///
    /// - Parameter known: records of the source as they were looked up, in case memory has let them go since.
    func store(
        _ record: OriginalRecord, body: EntryBody?, storage: StorageOptions, generation: Generation,
        known: [OriginalRecord] = []
    ) {
        let isOnDisk = disk != nil && storage.contains(.originalsOnDisk)
        // Before the record is found, so that its body is too.
        if isOnDisk, case .file(let file)? = body { wait(for: record.digest, file) }
        if storage.contains(.originalsInMemory) {
            _ = memory.update(record, known: known, generation: generation.originals)
            if case .bytes(let bytes)? = body { memory.keep(bytes, under: record, generation: generation.originals) }
        }
        guard isOnDisk, let disk else { return }
        guard case .file? = body else {
            writeBehind(bytes: body?.count ?? 0) { () throws(StoreError) in
                _ = try disk.storeOriginal(record, content: body, generation: generation.disk)
            }
            return
        }
        let isQueued = writeBehind(bytes: Self.bytesOfWaitingFile) { [self] () throws(StoreError) in
            defer { endWaiting(for: record.digest) }
            _ = try disk.storeOriginal(record, content: body, generation: generation.disk)
        }
        if !isQueued { endWaiting(for: record.digest) }
    }

    /// Whether a body may come as a file: where the disk tier takes it over, or nobody is to keep it.
    func takesFiles(_ storage: StorageOptions) -> Bool {
        disk != nil && (storage.contains(.originalsOnDisk) || !storage.contains(.originalsInMemory))
    }

    /// Replaces a record's fields and times after a 304.
    func freshen(
        _ record: OriginalRecord, storage: StorageOptions, generation: Generation, known: [OriginalRecord] = []
    ) {
        if storage.contains(.originalsInMemory) {
            _ = memory.update(record, known: known, generation: generation.originals)
        }
        guard storage.contains(.originalsOnDisk), let disk else { return }
        writeBehind(bytes: 0) { () throws(StoreError) in _ = try disk.freshen(record) }
    }

    /// Removes a record that the origin has replaced by what may not be stored. Its variants stay under its digest.
    func forget(_ record: OriginalRecord) {
        let selecting = record.response.selecting
        _ = memory.removeRecord(source: record.source, selecting: selecting)
        guard let disk else { return }
        writeBehind(bytes: 0) { () throws(StoreError) in
            _ = try disk.removeRecord(source: record.source, selecting: selecting)
        }
    }

    func store(
        _ entry: VariantEntry, body: [UInt8], of source: String, storage: StorageOptions, generation: Generation
    ) {
        if storage.contains(.variantsInMemory) {
            variants.insert(entry, body: body, for: entry.key, cost: entry.cost, generation: generation.variants)
        }
        guard storage.contains(.variantsOnDisk), let disk else { return }
        writeBehind(bytes: body.count) { () throws(StoreError) in
            _ = try disk.storeVariant(entry, body: body, generation: generation.disk, source: source)
        }
    }

    /// Removes everything that came from a source, in every tier of this process and on disk.
    func purge(source: String) async throws(PipelineError) -> PurgeResult {
        // The bytes of a caller have no record; their name tells their digest.
        var digests: Set<Digest> = source.hasPrefix("bytes:") ? [String(source.dropFirst(6))] : []
        let known = digests
        let result: Result<PurgeResult, StoreError> = await readers.run { [self] in
            // What was queued before the purge lands before it, so that it is purged too.
            writer.drain()
            guard let disk else { return .success(PurgeResult()) }
            do throws(StoreError) {
                let result = try disk.purge(source: source, digests: known)
                lastDiskGeneration.store(try disk.generationNow(), ordering: .relaxed)
                return .success(result)
            } catch {
                return .failure(error)
            }
        }
        if case .success(let purged) = result { digests.formUnion(purged.digests) }
        memory.purge(source: source, digests: digests)
        switch result {
        case .success(let purged):
            return purged
        case .failure(let error):
            throw PipelineError(.cacheUnavailable, error.description, cause: error)
        }
    }

    /// Waits until everything queued is stored.
    func drain() async {
        await readers.run { [self] in writer.drain() }
    }

    /// Drains, then closes the database.
    func close() async {
        await readers.run { [self] in
            writer.stop()
            disk?.close()
        }
    }

    // MARK: Private

    /// Notes one more store of a file; the same bytes may come twice, and the first to come will do for both.
    private func wait(for digest: Digest, _ file: SpooledBody) {
        waiting.withLock { $0[digest, default: (file, 0)].stores += 1 }
    }

    private func endWaiting(for digest: Digest) {
        let last = waiting.withLock { waiting -> SpooledBody? in
            guard let (file, stores) = waiting[digest] else { return nil }
            waiting[digest] = stores > 1 ? (file, stores - 1) : nil
            return file
        }
        // Closed outside the lock: the last reference to a file that was not stored frees its blocks.
        withExtendedLifetime(last) {}
    }

    /// Queues a write; false where too many bytes wait already, and it is dropped.
    @discardableResult
    private func writeBehind(bytes: Int, _ write: @escaping @Sendable () throws(StoreError) -> Void) -> Bool {
        guard pendingBytes.load(ordering: .relaxed) + bytes <= pendingLimit else {
            dropped.add(1, ordering: .relaxed)
            return false
        }
        pendingBytes.add(bytes, ordering: .relaxed)
        writer.submit { [self] in
            attempt(write)
            pendingBytes.subtract(bytes, ordering: .relaxed)
        }
        return true
    }

    /// Says once what the store has to tell, such as that what was cached is gone.
    private func tellOfNotice() {
        guard let notice = disk?.notice, !hasToldOfNotice.exchange(true, ordering: .relaxed) else { return }
        warn(notice)
    }

    @discardableResult
    private func attempt<Value>(_ work: () throws(StoreError) -> Value) -> Value? {
        defer { tellOfNotice() }
        do throws(StoreError) {
            return try work()
        } catch {
            troubles.add(1, ordering: .relaxed)
            if !hasWarned.exchange(true, ordering: .relaxed) {
                warn("the cache on disk is in trouble, going on without it where needed: \(error.description)")
            }
            return nil
        }
    }
}
