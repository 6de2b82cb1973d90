import Glibc
import Synchronization

/// A body in a file, accessed through its descriptor alone: it takes no memory, and a file that was never given a name
/// disappears with the value or with the process.
public final class SpooledBody: Sendable, Hashable {
    /// Open for reading, valid for as long as the value. Use `pread` or map it; its file position is unspecified.
    public let descriptor: Int32
    private let length: Atomic<Int>

    /// Bytes read at a time by `forEachPiece`.
    private static let pieceBytes = 262_144

    /// Bytes of the body.
    public var count: Int { length.load(ordering: .acquiring) }

    /// Creates a file in a folder, to be written; nil if that fails.
    package init?(folder: String) {
        length = Atomic(0)
        // O_TMPFILE, whose definition Swift does not import; only a file opened with it can be given a name later.
        let unnamed = open(folder, 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        if unnamed >= 0 {
            descriptor = unnamed
            return
        }
        // For file systems without O_TMPFILE. mkstemp(3) wants six of this letter, and replaces them.
        var name = Array((folder + "/.spool-" + String(repeating: "X", count: 6)).utf8CString)
        descriptor = mkstemp(&name)
        guard descriptor >= 0 else { return nil }
        unlink(name)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Takes ownership of an open file that no one changes any more; the value closes it.
    ///
    /// - Parameter count: its length in bytes.
    package init(descriptor: Int32, count: Int) {
        self.descriptor = descriptor
        length = Atomic(count)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Appends bytes; false if the disk does not take all of them, and then none count.
    package func append(_ bytes: [UInt8]) -> Bool {
        let start = count
        let isWritten = bytes.withUnsafeBytes { FileIO.write($0, to: descriptor, at: start) }
        if isWritten { length.store(start + bytes.count, ordering: .releasing) }
        return isWritten
    }

    /// Links the file at a path, besides any name it has; false if the file system cannot, or the name exists.
    package func link(at path: String) -> Bool {
        linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0
    }

    /// Opens the same file again, for reading only, so that its recipient cannot change anything. The caller closes it;
    /// nil if that fails.
    package func reopenedForReading() -> Int32? {
        let file = open("/proc/self/fd/\(descriptor)", O_RDONLY | O_CLOEXEC)
        return file < 0 ? nil : file
    }

    /// Whether the file has all bytes of the body.
    package var isWhole: Bool {
        var info = stat()
        return fstat(descriptor, &info) == 0 && Int(info.st_size) >= count
    }

    /// Reads the whole body; blocks. nil if the disk fails.
    public func bytes() -> [UInt8]? { bytes(0..<count) }

    /// Reads a part of the body; blocks. nil if the disk fails, or the range is not within the body.
    public func bytes(_ range: Range<Int>) -> [UInt8]? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return FileIO.bytes(range.count, of: descriptor, at: range.lowerBound)
    }

    /// Passes the body on in pieces, in order, until `take` returns false; blocks. False then, and if the disk fails.
    package func forEachPiece(_ take: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
        defer { buffer.deallocate() }
        let end = count
        var at = 0
        while at < end {
            let wanted = min(end - at, buffer.count)
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
            guard FileIO.fill(piece, from: descriptor, at: at) == wanted, take(UnsafeRawBufferPointer(piece)) else {
                return false
            }
            at += wanted
        }
        return true
    }

    /// Maps the body into memory for the duration of the call; nil if it cannot be mapped.
    ///
    /// Only for files that no one else can truncate: reading beyond the end of a mapped file kills the process.
    package func withMapping<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
        let count = count
        guard count > 0, let address = mmap(nil, count, PROT_READ, MAP_PRIVATE, descriptor, 0), address != MAP_FAILED
        else { return nil }
        defer { munmap(address, count) }
        return body(UnsafeRawBufferPointer(start: address, count: count))
    }

    public static func == (a: SpooledBody, b: SpooledBody) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
