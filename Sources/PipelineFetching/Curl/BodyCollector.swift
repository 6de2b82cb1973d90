import PipelineSupport

/// Collects a body as it arrives and computes its digest. A body above a certain size is moved from memory to a file.
///
/// `@unchecked Sendable`: a collector has one owner at a time. The loop's thread owns it while a transfer fills it. The
/// transfer's lock then hands it over to the response or to the next attempt.
final class BodyCollector: @unchecked Sendable {
    /// The complete body, or, if there is a file, the bytes not yet written to the file.
    private(set) var bytes: [UInt8] = []
    private(set) var file: SpooledBody?
    private(set) var count = 0
    /// Whether a write is in progress. `bytes` then contains what has arrived since the write began.
    private(set) var isWriting = false
    /// The hash of all but the last `unhashed` bytes, or nil if no bytes have been hashed yet.
    private var hash: SHA256?
    private var unhashed = 0
    private var folder: String?
    private var spoolBytes: Int
    private let floor: Int
    private let beforeWriting: @Sendable () -> Void

    /// The number of bytes collected before a write. libcurl delivers only 16 kB at a time.
    private static let gathered = 262_144
    /// The maximum number of bytes waiting to be hashed. The limit is small so that they are still in the CPU cache
    /// when they are hashed.
    private static let hashedLater = 65_536

    /// - Parameters:
    ///   - folder: where a file may be created. If nil, everything is kept in memory.
    ///   - spoolBytes: the number of bytes kept in memory before a file is used.
    ///   - floor: the number of bytes that must stay free on the file system.
    init(
        folder: String? = nil, spoolBytes: Int = 0, floor: Int = 0, beforeWriting: @escaping @Sendable () -> Void = {}
    ) {
        self.beforeWriting = beforeWriting
        self.folder = folder
        self.spoolBytes = spoolBytes
        self.floor = floor
    }

    /// Reserves memory for an announced length, but at most 1 MiB, so that an announcement alone cannot cost much
    /// memory. A body whose announced length does not fit in memory goes to a file from the start.
    func reserve(_ length: Int) {
        if length > spoolBytes { spoolBytes = min(spoolBytes, Self.gathered) }
        bytes.reserveCapacity(min(length, folder != nil && length > spoolBytes ? 2 * Self.gathered : 1 << 20))
    }

    /// Lowers the memory limit if there is a folder, because many transfers are in progress.
    func keepLittle() { spoolBytes = min(spoolBytes, Self.gathered) }

    /// Adds a piece of the body. The caller then runs the write that `nextWrite` returns.
    func add(_ piece: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: piece)
        count += piece.count
        unhashed += piece.count
        if unhashed > Self.hashedLater { hashRest() }
    }

    /// Adds a piece of the body, and writes to the file if a write is due. The write blocks. Returns false if the
    /// file's content is lost.
    func append(_ piece: UnsafeRawBufferPointer) -> Bool {
        add(piece)
        return run(nextWrite())
    }

    /// Writes the bytes still in memory to the file, if there is one. This call blocks. Returns false if the file's
    /// content is lost.
    func completeFile() -> Bool { run(nextWrite(isComplete: true)) }

    /// Loads the complete body into memory, which may block. Returns false if the file cannot be read.
    func load() -> Bool { run(loading()) }

    private func run(_ write: Write?) -> Bool { write.map { take($0()) } ?? true }

    // MARK: Writing

    /// A blocking write to the file. The caller runs the write on another thread and passes the outcome to `take`.
    typealias Write = @Sendable () -> WriteOutcome

    /// The outcome of a write.
    enum WriteOutcome: Sendable {
        case file(SpooledBody)
        /// The disk is full. The body received so far stays in memory.
        case bytes([UInt8])
        /// The file cannot be read.
        case lost
    }

    /// Whether the maximum number of bytes is waiting for the write in progress.
    var isFull: Bool { isWriting && bytes.count >= Self.gathered }

    /// Begins the next write. Returns nil if no write is due or a write is in progress.
    ///
    /// - Parameter isComplete: whether the complete body has arrived. The rest of the body is then written to the file.
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
            // A full disk does not fail the transfer, because the body stays in memory, within the byte limit.
            guard let file else { return .bytes(piece) }
            return file.bytes().map { .bytes($0 + piece) } ?? .lost
        }
    }

    /// Begins to load the complete body into memory, in the same way as a write begins. Returns nil if the body is in
    /// memory already or a write is in progress.
    func loading() -> Write? {
        guard let file, !isWriting else { return nil }
        isWriting = true
        let rest = bytes
        bytes = []
        return { file.bytes().map { .bytes($0 + rest) } ?? .lost }
    }

    /// Applies the outcome of a write. Returns false if the file's content is lost.
    func take(_ written: WriteOutcome) -> Bool {
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

    /// The SHA-256 of the bytes received so far, in hexadecimal.
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
        // Keep a single reference, because every update would otherwise copy the hash state.
        hash = nil
        updateWithRest(&running)
        hash = running
        unhashed = 0
    }
}
