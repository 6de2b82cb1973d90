public import Variants

/// Everything an `ImagePipeline` can be told. Set by mutation; the defaults suit a server of two cores and 4 GB.
public struct PipelineConfiguration: Sendable {
    /// The folder of the disk tiers, made on first use; nil keeps everything in memory.
    public var cacheFolder: String?
    /// Byte budgets of the memory tiers; by default a tenth of what there is, and no decoded pixels.
    public var memory: MemoryBudgets
    /// Whether the memory tiers give back half of what they hold when the kernel says that work stalls for want of
    /// memory, at most every two seconds. Default true; without effect where the kernel does not tell, or where the tiers
    /// hold less than 64 MB together.
    public var yieldsToMemoryPressure = true
    /// Byte budgets on disk; 4 GB for originals, 2 GB for variants.
    public var disk = TierBudgets(
        originals: DiskStoreConfiguration().originals, variants: DiskStoreConfiguration().variants)
    /// Bytes of the file system that the disk tiers leave to others: below them they evict, and then store nothing. nil: 1
    /// GB, or a twentieth of the file system where that is less; 0 sets no floor.
    public var freeSpace: Int?
    /// Forces every write to the disk; off, since a cache may lose its last second in a power cut.
    public var fsync = false
    /// Transfers: limits, addresses, retries.
    public var fetch = FetchConfiguration()
    /// Shared or private, and lifetimes for origins that send none.
    public var caching = CachingConfiguration()
    /// How resizing trades CPU for fidelity; `balanced` by default.
    public var quality = RenderQuality.balanced
    /// What a render may take.
    public var limits = RenderLimits()
    /// Where pictures are decoded: in this process by default, which a decoder that crashes or is taken over then takes
    /// along. `.workers` renders in processes of their own; whoever fetches what strangers publish wants that.
    public var isolation = RenderIsolation.inProcess
    /// What `.inProcess` decodes; by default all formats but `ImageFormat.decodedInWorkersOnly` (AVIF and HEIF).
    public var inProcessFormats = Set(ImageFormat.decodable).subtracting(ImageFormat.decodedInWorkersOnly)
    /// Renders at once in this process; nil: one more than cores, since a render waits for nothing but the processor.
    /// Workers have their own number.
    public var renderThreads: Int?
    /// The folder that `mask:NAME` looks into.
    public var masks: String?
    /// The folder that `overlay:NAME` looks into.
    public var overlays: String?
    /// Media types accepted from origins, with `*` for a subtype; the magic bytes decide in the end.
    public var acceptedTypes = ["image/*", "application/octet-stream"]
    /// Bytes waiting for the disk before further ones are dropped (and counted) instead of queued.
    public var writeBehindBytes = 64 << 20
    /// Threads that look things up in the caches and read files: at least 1, 4 by default. A program that asks for one
    /// thing at a time needs no second one.
    public var lookupThreads = 4
    /// Replaces the libcurl transport.
    public var transport: (any Transport)?
    /// Replaces the renderer, whatever `isolation` says.
    public var renderer: (any Rendering)?
    /// Asked once for every original about to be stored and for every one freshened by a 304: false keeps it, and the
    /// variants of it, from being stored; what it changes of the candidate is stored instead. It is called on the way to
    /// the answer and should be quick. nil, the default, stores what HTTP permits.
    ///
    /// The rules of HTTP come first: what they forbid to store is not offered.
    public var willStore: (@Sendable (inout StoredOriginalCandidate) -> Bool)?
    /// Takes the place of the disk tiers; tests bring their own, and `cacheFolder` is not looked at.
    var store: (any Store)?
    /// Unix seconds; tests set their own clock.
    var now: @Sendable () -> Double = { ImagePipeline.unixTime() }
    /// Told once of each kind of trouble that costs no answer, such as a cache that cannot be written.
    public var warn: @Sendable (String) -> Void = { _ in }

    public init(memory: MemoryBudgets = .share(0.1)) { self.memory = memory }

    /// Bytes for what is kept in memory, keys and bookkeeping included; 0 keeps nothing of a kind.
    public struct MemoryBudgets: Sendable, Hashable {
        /// Bytes for the bodies of originals as they were sent.
        public var originals: Int
        /// Bytes for the records of originals, beside them; a tenth of `originals` unless set.
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

        /// A share (0…1) of the memory this process may use: two fifths of it for originals, three for variants, which are
        /// small and asked for most.
        public static func share(_ share: Double) -> MemoryBudgets {
            let bytes = Double(MachineMemory.bytes) * min(max(share, 0), 1)
            return MemoryBudgets(originals: Int(bytes * 0.4), variants: Int(bytes * 0.6))
        }
    }

    /// Bytes for originals and for variants, apart.
    public struct TierBudgets: Sendable, Hashable {
        /// Bytes for originals.
        public var originals: Int
        /// Bytes for variants.
        public var variants: Int
        public init(originals: Int, variants: Int) {
            self.originals = originals
            self.variants = variants
        }
    }
}
