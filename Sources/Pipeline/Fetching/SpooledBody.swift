import Glibc
import Synchronization

/// A body in a file without a name: it takes no memory, and is gone with the value or with the process.
public final class SpooledBody: Sendable, Hashable {
    /// Open for reading and writing, valid as long as the value; read with `pread` or mapped, it has no position of
    /// its own that anybody may rely on.
    public let descriptor: Int32
    private let length = Atomic(0)

    /// Bytes of the body.
    public var count: Int { length.load(ordering: .acquiring) }

    /// A new file in a folder; nil where none can be made.
    init?(folder: String) {
        var name = Array((folder + "/.spool-XXXXXX").utf8CString)
        descriptor = mkstemp(&name)
        guard descriptor >= 0 else { return nil }
        unlink(name)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
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

    /// The whole body, read now: blocks. nil where the disk fails.
    public func bytes() -> [UInt8]? {
        let wanted = count
        let bytes = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, filled in
            guard let base = buffer.baseAddress else { return }
            while filled < wanted {
                let got = pread(descriptor, base + filled, wanted - filled, off_t(filled))
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { return }
                filled += got
            }
        }
        return bytes.count == wanted ? bytes : nil
    }

    public static func == (a: SpooledBody, b: SpooledBody) -> Bool { a === b }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
