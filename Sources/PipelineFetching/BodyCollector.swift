import PipelineSupport

/// Collects a body as it arrives, and computes its digest: in memory, and beyond a size in a file.
///
/// `@unchecked Sendable`: one owner at a time. It belongs to the loop's thread while a transfer fills it, and then,
/// through the transfer's locked hand-over, to the response or to the next attempt.
final class BodyCollector: @unchecked Sendable {
    /// The whole body, or if there is a file, what is not yet written to it.
    private(set) var bytes: [UInt8] = []
    private(set) var file: SpooledBody?
    private(set) var count = 0
    /// The hash of all but the last `unhashed` of `bytes`; nil before anything is hashed.
    private var hash: SHA256?
    private var unhashed = 0
    private var folder: String?
    private var spoolBytes: Int
    private let floor: Int

    /// Bytes gathered before they are written: libcurl delivers 16 kB at a time.
    private static let gathered = 262_144
    /// The most bytes that wait to be hashed, so that they are still in the processor's cache.
    private static let hashedLater = 65_536

    /// - Parameters:
    ///   - folder: where a file may be made; nil keeps everything in memory.
    ///   - spoolBytes: how much is kept in memory before a file is used.
    ///   - floor: bytes that a file leaves free on its file system.
    init(folder: String? = nil, spoolBytes: Int = 0, floor: Int = 0) {
        self.folder = folder
        self.spoolBytes = spoolBytes
        self.floor = floor
    }

    /// Reserves memory for an announced length. An announcement alone must not cost much memory: at most 1 MiB is
    /// reserved beforehand. A body that is announced as too long for memory goes to a file from the start.
    func reserve(_ length: Int) {
        if length > spoolBytes { spoolBytes = min(spoolBytes, Self.gathered) }
        bytes.reserveCapacity(min(length, folder != nil && length > spoolBytes ? 2 * Self.gathered : 1 << 20))
    }

    /// Keeps less in memory if there is a folder, for one of many transfers.
    func keepLittle() { spoolBytes = min(spoolBytes, Self.gathered) }

    /// Appends a piece; false if what is in the file is lost.
    func append(_ piece: UnsafeRawBufferPointer) -> Bool {
        bytes.append(contentsOf: piece)
        count += piece.count
        unhashed += piece.count
        if unhashed > Self.hashedLater { hashRest() }
        guard folder != nil, file == nil ? count > spoolBytes : bytes.count >= Self.gathered else { return true }
        return write()
    }

    /// Writes what is still in memory, if there is a file; false if what is in it is lost.
    func completeFile() -> Bool { file == nil || bytes.isEmpty || write() }

    /// Loads the whole body into memory; false if the file cannot be read.
    func load() -> Bool {
        guard let file else { return true }
        guard let written = file.bytes() else { return false }
        bytes = written + bytes
        self.file = nil
        return true
    }

    private func write() -> Bool {
        hashRest()
        let hasRoom = hasRoom
        if file == nil, hasRoom { file = folder.flatMap(SpooledBody.init) }
        if hasRoom, let file, file.append(bytes) {
            bytes.removeAll(keepingCapacity: bytes.count <= Self.gathered * 2)
            return true
        }
        // A full disk does not fail the transfer: the body stays in memory, within the byte limit.
        folder = nil
        return load()
    }

    /// Whether the bytes fit on the disk above the floor.
    private var hasRoom: Bool {
        guard floor > 0, let folder, let space = FileSystemSpace(holding: folder) else { return true }
        return space.free - bytes.count >= floor
    }

    // MARK: Digest

    /// SHA-256 of what has arrived, as hexadecimal digits.
    var digest: String {
        if count == 0 { return Self.emptyDigest }
        var hash = hash ?? SHA256()
        updateWithRest(&hash)
        return hex(hash.finalize())
    }

    private static let emptyDigest = sha256Hex([UInt8]())

    private func updateWithRest(_ hash: inout SHA256) {
        bytes.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0.suffix(unhashed))) }
    }

    private func hashRest() {
        var running = hash ?? SHA256()
        // Keep only one reference, or every update would copy it.
        hash = nil
        updateWithRest(&running)
        hash = running
        unhashed = 0
    }
}
