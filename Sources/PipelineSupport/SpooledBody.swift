import Glibc
import Synchronization

/// Contains a long body in a file, which is accessed through a descriptor and uses no memory. A response has one if the
/// request accepts a file (`OriginalRequest.acceptsFile`).
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// var request = OriginalRequest(url: "https://example.org/large.tiff")
/// request.acceptsFile = true
/// let response = try await pipeline.original(for: request)
/// let first = response.file?.bytes(0..<16) ?? Array(response.body.prefix(16))
/// ```
///
/// A file without a name disappears with this value or with the process.
public final class SpooledBody: Sendable, Hashable {
    /// The descriptor, which is open for reading and valid for as long as this object exists. Use `pread` or map the
    /// file, because the file position is unspecified.
    public let descriptor: Int32
    private let length: Atomic<Int>

    /// The number of bytes that `forEachPiece` reads at a time.
    private static let pieceBytes = 262_144

    /// The length of the body in bytes.
    public var count: Int { length.load(ordering: .acquiring) }

    /// Creates a file in a folder for writing. Returns nil if that fails.
    package init?(folder: String) {
        length = Atomic(0)
        // The number is `O_TMPFILE`, which Swift does not import. A file can be given a name later only if it was
        // opened with this flag.
        let unnamed = open(folder, 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        if unnamed >= 0 {
            descriptor = unnamed
            return
        }
        // This is for file systems without O_TMPFILE. mkstemp(3) requires six of these letters and replaces them.
        var name = Array((folder + "/.spool-" + String(repeating: "X", count: 6)).utf8CString)
        descriptor = mkstemp(&name)
        guard descriptor >= 0 else { return nil }
        unlink(name)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// Takes ownership of an open file that is not modified any more, and closes it when this object is released.
    ///
    /// - Parameter count: the length of the file in bytes.
    package init(descriptor: Int32, count: Int) {
        self.descriptor = descriptor
        length = Atomic(count)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Appends bytes. Returns false if the disk does not accept all of them. In that case, none of them is part of the
    /// body.
    package func append(_ bytes: [UInt8]) -> Bool {
        let start = count
        let isWritten = bytes.withUnsafeBytes { FileIO.write($0, to: descriptor, at: start) }
        if isWritten { length.store(start + bytes.count, ordering: .releasing) }
        return isWritten
    }

    /// Creates a link to this file at `path`, in addition to any name that it already has. Returns false if the file
    /// system does not support it or the path exists.
    package func link(at path: String) -> Bool {
        linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0
    }

    /// Opens the same file again for reading only, so that the recipient cannot modify it. The caller must close the
    /// descriptor. Returns nil if that fails.
    package func reopenedForReading() -> Int32? {
        let file = open("/proc/self/fd/\(descriptor)", O_RDONLY | O_CLOEXEC)
        return file < 0 ? nil : file
    }

    /// Whether the file contains all bytes of the body.
    package var isWhole: Bool {
        var info = stat()
        return fstat(descriptor, &info) == 0 && Int(info.st_size) >= count
    }

    /// Returns the complete body, or nil if reading fails. This call blocks.
    public func bytes() -> [UInt8]? { bytes(0..<count) }

    /// Returns a part of the body, or nil if reading fails or the range exceeds the body. This call blocks.
    public func bytes(_ range: Range<Int>) -> [UInt8]? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        return FileIO.bytes(range.count, of: descriptor, at: range.lowerBound)
    }

    /// Passes the body to `take` in pieces, in order, until it returns false. Returns false in that case, or if reading
    /// fails. This call blocks.
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

    /// Maps the body into memory for the duration of the call. Returns nil if it cannot be mapped.
    ///
    /// Use this only for files that no other process can truncate, because reading beyond the end of a mapped file
    /// kills the process.
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
