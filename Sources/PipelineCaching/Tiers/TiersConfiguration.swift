/// Budgets of the memory tiers, each of its own.
public struct MemoryBudgets: Sendable, Hashable {
    /// Bytes for the bodies of originals as they were sent.
    public var originals: Int
    /// Bytes for the records of originals, on top of the bodies; a tenth of `originals` unless set.
    public var records: Int
    /// Bytes for encoded variants.
    public var variants: Int
    /// Bytes for pixels that `ImagePipeline.pixels(for:)` decoded.
    public var pixels: Int

    public init(originals: Int, variants: Int, pixels: Int = 0, records: Int? = nil) {
        self.originals = originals
        self.records = records ?? originals / 10
        self.variants = variants
        self.pixels = pixels
    }
}

/// What other machines purge. What is stored answers once that is known, or once it is validated.
package protocol PurgeNews: Sendable {
    /// Whether what they purged until a moment ago has been carried out here; does not block.
    var isCurrent: Bool { get }

    /// Returns once it has; false if that takes too long.
    func catchUp() async -> Bool
}

/// What `Tiers` is made with.
package struct TiersConfiguration: Sendable {
    package var memory: MemoryBudgets
    /// The cache folder; nil for no disk tier.
    package var folder: String?
    package var disk = DiskStoreConfiguration()
    /// Tiers behind memory and the folder, near to far.
    package var tiers: [TierPlacement] = []
    /// Unix seconds.
    package var now: @Sendable () -> Double = { 0 }
    /// Bytes that may wait for the folder.
    package var writeBehindBytes = 64 << 20
    /// Bytes of the longest body that is read from disk into memory.
    package var longestInMemory = 4 << 20
    /// How long to wait for another process that does the same work, before doing it as well.
    package var waits = KeyLocks.Waits()
    package var warn: @Sendable (String) -> Void = { _ in }
    /// What other machines purge; nil without a fleet.
    package var news: (any PurgeNews)?

    package init(memory: MemoryBudgets) { self.memory = memory }
}
