/// How a `DiskStore` uses its folder.
///
/// Budgets count bodies, each as 512 bytes at least; rows and indexes take about 400 bytes per entry in addition
/// (docs/benchmarks.md).
public struct DiskStoreConfiguration: Sendable, Hashable {
    /// Bytes for bodies of originals; default 4 GB, a few thousand photographs.
    public var originals = 4_000_000_000
    /// Bytes for variants with their bodies; default 2 GB.
    public var variants = 2_000_000_000
    /// Bytes for records of originals, which outlive the bodies; default 64 MB, about 60,000 records.
    public var records = 64_000_000
    /// Free space in bytes that the store leaves on its file system: below it, the store evicts, and then stores
    /// nothing. Default nil: 1 GB, or a twentieth of the file system if that is less (16 MB at least); 0 sets no floor.
    public var freeSpace: Int?
    /// Bytes of the largest body kept in the index; larger ones become files. Default 32 KiB.
    public var inlineLimit = 32 * 1024
    /// Whether every write is forced to the disk. Default false: a power cut may lose about the last 30 seconds, but
    /// never leaves a torn entry.
    public var fsync = false
    /// Milliseconds to wait for another process; default 5,000.
    package var busyMilliseconds = 5_000
    /// Entries whose accesses are noted in memory before they are written to the index in batches; default 32,768,
    /// about 2 MB. The more there are, the more of them share a page when they are written. They are also written after
    /// 30 s and when the store is closed; a kill loses them.
    package var touchBatch = 32_768

    /// Seconds after which a body still being written is considered abandoned by a killed process, and is deleted;
    /// default 600.
    package var graceSeconds = 600

    /// Bytes of `freeSpace` unless set, on a file system of at least 20 GB.
    package static let usualFreeSpace = 1_000_000_000

    public init() {}
}
