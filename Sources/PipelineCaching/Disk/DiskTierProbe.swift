import PipelineSupport

/// The tiers of a cache folder without a pipeline and without memory tiers, as `Benchmarks/run-hit-latency` measures
/// them.
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

    /// Looks a variant up as the render stage does; returns whether it was found.
    public func variant(_ key: String, of original: String) async -> Bool {
        await tiers.variant(key, of: original) != nil
    }

    /// Stores a variant in the background.
    public func store(_ entry: VariantEntry, body: [UInt8], of source: String) {
        tiers.store(entry, body: body, of: source, storage: .variantsOnDisk, marks: marks)
    }

    public func close() async { await tiers.close() }
}
