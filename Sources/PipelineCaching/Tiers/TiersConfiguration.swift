/// Limits the bytes that a pipeline keeps in memory (`PipelineConfiguration.memory`). Each kind of entry has a separate
/// budget. When it is exceeded, the entries that would save the least time per byte are evicted.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.memory = MemoryBudgets(originals: 64 << 20, variants: 128 << 20)
/// configuration.memory.pixels = 32 << 20  // For `ImagePipeline.pixels(for:)`.
/// configuration.memory = .share(0.25)  // A quarter of the memory that this process may use.
/// ```
///
/// `ImagePipeline.setMemoryBudgets(_:)` changes the budgets later.
public struct MemoryBudgets: Sendable, Hashable {
    /// The number of bytes for the bodies of originals as they were received.
    public var originals: Int
    /// The number of bytes for the records of originals, in addition to the bodies. Defaults to a tenth of `originals`.
    public var records: Int
    /// The number of bytes for encoded variants.
    public var variants: Int
    /// The number of bytes for pixels decoded by `ImagePipeline.pixels(for:)`.
    public var pixels: Int

    /// Creates budgets in bytes. `records` is a tenth of `originals` by default, and `pixels` is 0.
    public init(originals: Int, variants: Int, pixels: Int = 0, records: Int? = nil) {
        self.originals = originals
        self.records = records ?? originals / 10
        self.variants = variants
        self.pixels = pixels
    }
}

/// Purges by other machines. Stored entries are served only after these purges have been applied, or after validation.
package protocol PurgeUpdates: Sendable {
    /// Whether the purges by other machines have been applied here, up to a very recent moment. Does not block.
    var isCurrent: Bool { get }

    /// Waits until these purges have been applied. Returns false if that takes too long.
    func catchUp() async -> Bool
}

/// The configuration of `Tiers`.
package struct TiersConfiguration: Sendable {
    package var memory: MemoryBudgets
    /// The cache folder. If nil, there is no disk tier.
    package var folder: String?
    package var disk = DiskStoreConfiguration()
    /// The tiers behind memory and the folder, from near to far.
    package var tiers: [TierPlacement] = []
    /// The current time in Unix seconds.
    package var now: @Sendable () -> Double = { 0 }
    /// The number of bytes that may be waiting to be stored in the folder.
    package var writeBehindBytes = 64 << 20
    /// The size in bytes of the longest body that is read from disk into memory.
    package var longestInMemory = 4 << 20
    package var warn: @Sendable (String) -> Void = { _ in }
    /// The purges by other machines, or nil if there is no fleet.
    package var purgeUpdates: (any PurgeUpdates)?

    package init(memory: MemoryBudgets) { self.memory = memory }
}
