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
    /// Whether a write is under way. `bytes` is then what has arrived since.
    private(set) var isWriting = false
    /// The hash of all but the last `unhashed` of `bytes`; nil before anything is hashed.
    private var hash: SHA256?
    private var unhashed = 0
    private var folder: String?
    private var spoolBytes: Int
    private let floor: Int
    private let beforeWriting: @Sendable () -> Void

    /// Bytes gathered before they are written: libcurl delivers 16 kB at a time.
    private static let gathered = 262_144
    /// The most bytes that wait to be hashed, so that they are still in the processor's cache.
    private static let hashedLater = 65_536

    /// - Parameters:
    ///   - folder: where a file may be made; nil keeps everything in memory.
    ///   - spoolBytes: how much is kept in memory before a file is used.
    ///   - floor: bytes that a file leaves free on its file system.
    init(
        folder: String? = nil, spoolBytes: Int = 0, floor: Int = 0, beforeWriting: @escaping @Sendable () -> Void = {}
    ) {
        self.beforeWriting = beforeWriting
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

    /// Adds a piece. The caller runs the write that is due then.
    func add(_ piece: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: piece)
        count += piece.count
        unhashed += piece.count
        if unhashed > Self.hashedLater { hashRest() }
    }

    /// Adds a piece and writes what is due; blocks. False if what is in the file is lost.
    func append(_ piece: UnsafeRawBufferPointer) -> Bool {
        add(piece)
        return run(nextWrite())
    }

    /// Writes what is still in memory, if there is a file; blocks. False if what is in it is lost.
    func completeFile() -> Bool { run(nextWrite(isComplete: true)) }

    /// Loads the whole body into memory; blocks. False if the file cannot be read.
    func load() -> Bool { run(loading()) }

    private func run(_ write: Write?) -> Bool { write.map { take($0()) } ?? true }

    // MARK: Writing

    /// A write to the file, which blocks: the caller runs it on another thread and passes its outcome to `take`.
    typealias Write = @Sendable () -> Written

    /// The outcome of a write.
    enum Written: Sendable {
        case file(SpooledBody)
        /// The disk takes no more. The body so far stays in memory.
        case bytes([UInt8])
        /// The file cannot be read.
        case lost
    }

    /// Whether as much waits for the write under way as may.
    var isFull: Bool { isWriting && bytes.count >= Self.gathered }

    /// Begins the write that is due; returns nil if no write is due or one is under way.
    ///
    /// - Parameter isComplete: whether the whole body has arrived. A file then gets the rest of it.
    func nextWrite(isComplete: Bool = false) -> Write? {
        guard let folder, !isWriting else { return nil }
        let isDue =
            file == nil ? count > spoolBytes : isComplete ? !bytes.isEmpty : bytes.count >= Self.gathered
        guard isDue else { return nil }
        hashRest()
        isWriting = true
        let (piece, file, floor, beforeWriting) = (bytes, file, floor, beforeWriting)
        bytes = []
        if !isComplete { bytes.reserveCapacity(Self.gathered + Self.hashedLater) }
        return {
            beforeWriting()
            let space = floor > 0 ? FileSystemSpace(holding: folder) : nil
            let hasRoom = space.map { $0.free - piece.count >= floor } ?? true
            if hasRoom, let file = file ?? SpooledBody(folder: folder), file.append(piece) { return .file(file) }
            // A full disk does not fail the transfer: the body stays in memory, within the byte limit.
            guard let file else { return .bytes(piece) }
            return file.bytes().map { .bytes($0 + piece) } ?? .lost
        }
    }

    /// Begins to load the whole body into memory, like a write; returns nil if it is in memory or a write is under way.
    func loading() -> Write? {
        guard let file, !isWriting else { return nil }
        isWriting = true
        let rest = bytes
        bytes = []
        return { file.bytes().map { .bytes($0 + rest) } ?? .lost }
    }

    /// Takes the outcome of a write; false if what is in the file is lost.
    func take(_ written: Written) -> Bool {
        isWriting = false
        switch written {
        case .file(let file): self.file = file
        case .bytes(let first):
            bytes = first + bytes
            (file, folder) = (nil, nil)
        case .lost: return false
        }
        return true
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
