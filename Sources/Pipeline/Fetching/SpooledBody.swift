import Glibc
import Synchronization

/// A body in a file of which it needs no more than the descriptor: it takes no memory, and what was never stored is
/// gone with the value or with the process.
public final class SpooledBody: Sendable, Hashable {
    /// Open for reading, valid as long as the value; read with `pread` or mapped, it has no position of its own that
    /// anybody may rely on.
    public let descriptor: Int32
    private let length: Atomic<Int>

    /// How much is read at a time where a body is gone through.
    private static let pieceBytes = 262_144

    /// Bytes of the body.
    public var count: Int { length.load(ordering: .acquiring) }

    /// A new file in a folder, to be written; nil where none can be made.
    init?(folder: String) {
        length = Atomic(0)
        // O_TMPFILE, whose definition Swift does not import; only such a file can be given a name later.
        let unnamed = open(folder, 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        if unnamed >= 0 {
            descriptor = unnamed
            return
        }
        // File systems without O_TMPFILE. mkstemp(3) asks for six times this letter, and puts a name of its own there.
        var name = Array((folder + "/.spool-" + String(repeating: "X", count: 6)).utf8CString)
        descriptor = mkstemp(&name)
        guard descriptor >= 0 else { return nil }
        unlink(name)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    /// A file that is there and is changed by nobody; the value closes it.
    ///
    /// - Parameter count: its length in bytes.
    init(descriptor: Int32, count: Int) {
        self.descriptor = descriptor
        length = Atomic(count)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Writes at the end; false where the disk takes no more, and then nothing of it counts.
    func append(_ bytes: [UInt8]) -> Bool {
        let start = count
        let isWritten = bytes.withUnsafeBytes { buffer in
            var written = 0
            while written < buffer.count {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[written...])
                let done = pwrite(descriptor, rest.baseAddress, rest.count, off_t(start + written))
                if done < 0, errno == EINTR { continue }
                guard done > 0 else { return false }
                written += done
            }
            return true
        }
        if isWritten { length.store(start + bytes.count, ordering: .releasing) }
        return isWritten
    }

    /// Gives the file a name beside the one it may have; false where the file system cannot, or the name is taken.
    func link(at path: String) -> Bool {
        linkat(AT_FDCWD, "/proc/self/fd/\(descriptor)", AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0
    }

    /// The same file opened once more, for reading only, so that whoever is handed it can change nothing; the caller's to
    /// close. nil where that fails.
    func reopenedForReading() -> Int32? {
        let file = open("/proc/self/fd/\(descriptor)", O_RDONLY | O_CLOEXEC)
        return file < 0 ? nil : file
    }

    /// The whole body, read now: blocks. nil where the disk fails.
    public func bytes() -> [UInt8]? { bytes(0..<count) }

    /// A part of the body, read now: blocks. nil where the disk fails, or the range is not within the body.
    public func bytes(_ range: Range<Int>) -> [UInt8]? {
        guard range.lowerBound >= 0, range.upperBound <= count else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { buffer, filled in
            filled = fill(
                UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<range.count]),
                from: range.lowerBound)
        }
        return bytes.count == range.count ? bytes : nil
    }

    /// Hands the body over in pieces, in order, until `take` returns false: blocks. False then, and where the disk fails.
    func forEachPiece(_ take: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
        defer { buffer.deallocate() }
        let end = count
        var at = 0
        while at < end {
            let wanted = min(end - at, buffer.count)
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
            guard fill(piece, from: at) == wanted, take(UnsafeRawBufferPointer(piece)) else { return false }
            at += wanted
        }
        return true
    }

    /// Shows the body as memory that stays valid during the call; nil where it cannot be mapped.
    ///
    /// Only for what nobody else can shorten: reading beyond the end of a file ends the process.
    func withMapping<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
        let count = count
        guard count > 0, let address = mmap(nil, count, PROT_READ, MAP_PRIVATE, descriptor, 0), address != MAP_FAILED
        else { return nil }
        defer { munmap(address, count) }
        return body(UnsafeRawBufferPointer(start: address, count: count))
    }

    /// Reads into a buffer; how many bytes there were, all of them unless the disk fails or the file was cut.
    private func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int) -> Int {
        var filled = 0
        while filled < buffer.count, let base = buffer.baseAddress {
            let got = pread(descriptor, base + filled, buffer.count - filled, off_t(offset + filled))
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { break }
            filled += got
        }
        return filled
    }

    public static func == (a: SpooledBody, b: SpooledBody) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
