import PipelineSupport

// Entry points for the Benchmarks package. Programs do not need these types, so they are not public.

/// The tiers of a cache folder, without a pipeline and without memory tiers, for `Benchmarks/run-hit-latency`.
@_spi(Benchmarks) public final class DiskTierProbe: Sendable {
    private let tiers: Tiers
    private let marks: Tiers.Marks

    /// - Parameter fsync: whether commits wait for the disk.
    public init(folder: String, fsync: Bool) throws(StoreError) {
        var configuration = TiersConfiguration(memory: MemoryBudgets(originals: 0, variants: 0))
        configuration.folder = folder
        configuration.disk.originals = 1 << 50
        configuration.disk.variants = 1 << 50
        configuration.disk.fsync = fsync
        tiers = try Tiers(configuration, readers: OwnedThreads(count: 4))
        marks = tiers.marks()
    }

    /// Looks up a variant in the way that the render stage does. Returns whether it was found.
    public func variant(_ key: String, of original: String) async -> Bool {
        await tiers.variant(key, of: original) != nil
    }

    /// Stores a variant in the background.
    public func store(_ entry: VariantEntry, body: [UInt8], of source: String) {
        tiers.store(entry, body: body, of: source, storage: .variantsOnDisk, marks: marks)
    }

    public func close() async { await tiers.close() }
}

/// A `DiskStore` for `Benchmarks/run-stores`.
@_spi(Benchmarks) public struct DiskStoreProbe: Sendable {
    private let store: DiskStore

    public init(folder: String, configuration: DiskStoreConfiguration = DiskStoreConfiguration()) throws(StoreError) {
        store = try DiskStore(folder: folder, configuration: configuration)
    }

    public func statistics() throws(StoreError) -> TierStatistics { try store.statistics() }
    public func generationNow() throws(StoreError) -> UInt64 { try store.generationNow() }

    /// Reads a variant with its body. Returns whether it was found.
    public func readVariant(_ key: String, of original: String) throws(StoreError) -> Bool {
        try store.variant(key: key, of: original) != nil
    }

    /// Reads the body of an original. Returns whether it was found.
    public func readOriginal(_ digest: String) throws(StoreError) -> Bool {
        try store.originalBody(digest: digest) != nil
    }

    public func store(
        _ entry: VariantEntry, body: [UInt8], generation: UInt64, source: String? = nil
    ) throws(StoreError) {
        try store.storeVariant(entry, body: body, generation: generation, source: source)
    }

    public func store(_ record: OriginalRecord, body: [UInt8], generation: UInt64) throws(StoreError) {
        try store.storeOriginal(record, body: body, generation: generation)
    }

    public func inOneTransaction(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try store.inOneTransaction(body)
    }

    /// Evicts variants until at most `entries` are left. Returns the number of evicted variants.
    public func trimVariants(to entries: Int) throws(StoreError) -> Int {
        var request = TrimRequest()
        request.tiers = [.variants]
        request.maxEntries = entries
        return try store.trim(request).variants
    }

    public func clear() throws(StoreError) { try store.clear() }
    public func flush() throws(StoreError) { try store.flush() }
    public func close() { store.close() }
}

/// A `MemoryStore` of variants for `Benchmarks/run-stores`.
@_spi(Benchmarks) public struct MemoryStoreProbe: Sendable {
    private let store: MemoryStore<VariantEntry>

    public init(budget: Int) { store = MemoryStore(budget: budget) }

    public func insert(_ entry: VariantEntry, body: [UInt8]) {
        store.insert(entry, body: body, for: entry.key, cost: entry.cost, name: entry.originalDigest)
    }

    /// Looks up an entry in the way that a request does. Returns whether it was found.
    public func find(_ key: String) -> Bool { store.entry(for: key) != nil }

    public var counters: StoreCounters { store.counters }
}
