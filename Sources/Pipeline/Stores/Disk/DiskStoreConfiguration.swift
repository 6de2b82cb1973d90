/// How a `DiskStore` uses its folder.
///
/// Budgets count bodies, each as 512 bytes at least; rows and indexes come on top, about 400 bytes an entry
/// (docs/benchmarks.md).
public struct DiskStoreConfiguration: Sendable, Hashable {
    /// Bytes for bodies of originals; default 4 GB, some thousand photographs.
    public var originals = 4_000_000_000
    /// Bytes for variants with their bodies; default 2 GB.
    public var variants = 2_000_000_000
    /// Bytes for records of originals, which outlive the bodies; default 64 MB, about 60,000 records.
    public var records = 64_000_000
    /// Bytes of the file system that the store leaves to others: below them it evicts, and then stores nothing. Default
    /// nil: 1 GB, or a twentieth of the file system where that is less (16 MB at least); 0 sets no floor.
    public var freeSpace: Int?
    /// Bytes of the largest body kept in the index; larger ones become files. Default 32 KiB.
    public var inlineLimit = 32 * 1024
    /// Whether every write is forced to the disk. Default false: a power cut may lose the last second, and never
    /// leaves a torn entry.
    public var fsync = false
    /// Milliseconds to wait for another process; default 5,000.
    public var busyMilliseconds = 5_000
    /// Entries whose uses are noted in memory before they are written to a file, some at a time; default 32,768, about
    /// 2 MB: the more there are, the more of them are written with their neighbours. They are written after 30 s too, and
    /// when the store is closed; a kill loses them.
    public var touchBatch = 32_768

    /// Seconds after which a body that is still being written counts as left behind by a killed process, and is deleted;
    /// default 600.
    public var graceSeconds = 600

    public init() {}
}
