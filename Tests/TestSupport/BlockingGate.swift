import Glibc
import Synchronization

/// A gate that blocks a thread until a test opens it, for code that does not run in tasks.
public final class BlockingGate: Sendable {
    private let ends: (reading: Int32, writing: Int32)
    private let isOpen = Mutex(false)

    public init() {
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0, "no descriptors are left")
        self.ends = (ends[0], ends[1])
    }

    deinit {
        open()
        close(ends.reading)
    }

    /// Blocks the calling thread until `open()` is called. Returns immediately if it has already been called.
    public func pass() {
        var byte: UInt8 = 0
        while read(ends.reading, &byte, 1) < 0, errno == EINTR {}
    }

    public func open() {
        isOpen.withLock { isOpen in
            if !isOpen { close(ends.writing) }
            isOpen = true
        }
    }
}
