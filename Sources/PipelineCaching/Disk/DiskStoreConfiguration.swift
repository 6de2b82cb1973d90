/// Configures the cache folder: its budgets, the free space to keep, and synchronization to disk
/// (`PipelineConfiguration.disk`). When a budget is exceeded, the entries that would save the least time per byte are
/// evicted.
///
/// ```swift
/// var configuration = PipelineConfiguration(cacheFolder: "/var/cache/my-app")
/// configuration.disk.originals = 2_000_000_000
/// configuration.disk.variants = 4_000_000_000
/// configuration.disk.freeSpace = 10_000_000_000
/// ```
///
/// Responses do not wait for writes. Several processes may share a folder. Budgets count bodies, each as at least 512
/// bytes. In addition, rows and indexes take 500 to 1,000 bytes per entry (docs/benchmarks.md).
public struct DiskStoreConfiguration: Sendable, Hashable {
    /// The budget in bytes for bodies of originals. Defaults to 4 GB, which is enough for a few thousand photographs.
    public var originals = 4_000_000_000
    /// The budget in bytes for variants with their bodies. Defaults to 2 GB.
    public var variants = 2_000_000_000
    /// The budget in bytes for records of originals, which outlive the bodies. Defaults to 64 MB, which is enough for
    /// about 60,000 records.
    public var records = 64_000_000
    /// The number of bytes that the store leaves free on its file system. Below this floor, the store evicts entries,
    /// and if that does not help, it stores nothing. If nil, which is the default, this is 1 GB, or a twentieth of the
    /// file system if that is less, but at least 16 MB. If 0, there is no floor.
    public var freeSpace: Int?
    /// The size in bytes of the largest body kept in the index. Larger bodies are files. Defaults to 32 KiB.
    public var inlineLimit = 32 * 1024
    /// Whether every write is forced to disk. Defaults to false, in which case a power failure may lose about the last
    /// 30 seconds, but never leaves an incomplete entry.
    public var fsync = false
    /// The number of milliseconds to wait for another process. Defaults to 5,000.
    package var busyMilliseconds = 5_000
    /// The number of entries with accesses in memory at which the accesses are written to the index as a batch.
    /// Defaults to 32,768, which takes about 2 MB. In larger batches, more entries share a page. Accesses are also
    /// written after 30 s and when the store is closed. They are lost if the process is killed.
    package var touchBatch = 32_768

    /// The number of seconds after which a body still being written is considered abandoned by a killed process and is
    /// deleted. Defaults to 600.
    package var graceSeconds = 600

    /// The default of `freeSpace` in bytes on a file system of at least 20 GB.
    package static let usualFreeSpace = 1_000_000_000

    /// Creates a configuration with the defaults.
    public init() {}
}
