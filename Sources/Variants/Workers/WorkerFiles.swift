import CSandbox
import Glibc

/// The memory files that a worker uses again and again: one its originals are copied into, one for its outputs.
///
/// Allocating and freeing pages costs several times what filling them does. Reuse leaks nothing: no other process reads
/// the files, and the worker has seen all they ever held.
final class WorkerFiles {
    private var original: CopiedOriginal?
    /// The name of the original that was copied last, if it had one.
    private var name: String?
    private var output: Int32 = -1

    /// The largest files kept from render to render, in bytes: an original's copy, and an output.
    private static let keptOriginal = 16 << 20
    private static let keptOutput = 1 << 20

    deinit { if output >= 0 { close(output) } }

    /// Copies an original, and returns a read-only descriptor of the copy, which this object owns.
    ///
    /// - Parameter name: identifies the original; one that the file already holds is not copied again.
    func copied(_ encoded: EncodedBytes, named name: String?) throws(RenderError) -> Int32 {
        if let original, let name, self.name == name { return original.reading }
        self.name = nil
        let bytes = try encoded.bytes()
        if let original, original.capacity < bytes.count { self.original = nil }
        let copy: CopiedOriginal
        if let original { copy = original } else { copy = try CopiedOriginal(count: bytes.count) }
        copy.fill(bytes)
        (original, self.name) = (copy, name)
        return copy.reading
    }

    /// A file to write a variant to, which may still hold the last one; this object owns it.
    func usedOutput() throws(RenderError) -> Int32 {
        if output < 0 { output = try MemoryFile.make("variant") }
        return output
    }

    /// Must be called after a render: frees files that are too large to be kept. An output is emptied rather than
    /// replaced: a worker that was taken over would keep its descriptor, and fill each in turn.
    func settle() {
        if let original, original.capacity > Self.keptOriginal { self.original = nil }
        var status = stat()
        if output >= 0, fstat(output, &status) != 0 || status.st_size > Self.keptOutput {
            // If that fails, the pages stay until the worker ends.
            _ = ftruncate(output, 0)
        }
    }
}

/// A memory file that this process has mapped for writing, and that a worker reads.
private final class CopiedOriginal {
    let reading: Int32
    let capacity: Int
    private let memory: UnsafeMutableRawPointer

    init(count: Int) throws(RenderError) {
        // The next power of two, so that originals of similar sizes share one file.
        var capacity = 1 << 18
        while capacity < count { capacity *= 2 }
        let file = try MemoryFile.make("original")
        defer { close(file) }
        // Allocate all pages now: running out of memory is an error here, but would be a signal when writing.
        var status = posix_fallocate(file, 0, off_t(capacity))
        // Fix the length, so that a worker cannot truncate the file under this process's mapping.
        if status == 0 { status = -csandbox_fix_length(file) }
        guard status == 0, let memory = mmap(nil, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
            memory != MAP_FAILED
        else {
            throw RenderError(
                .workerUnavailable,
                "cannot allocate \(capacity) bytes: \(String(cString: strerror(status == 0 ? errno : status)))")
        }
        self.memory = memory
        self.capacity = capacity
        let reading = open("/proc/self/fd/\(file)", O_RDONLY | O_CLOEXEC)
        // Without /proc the worker gets a writable descriptor, but could change only its own copy.
        self.reading = reading >= 0 ? reading : dup(file)
    }

    deinit {
        munmap(memory, capacity)
        close(reading)
    }

    /// Copies an original to the beginning; there are at most `capacity` bytes.
    func fill(_ bytes: [UInt8]) {
        precondition(bytes.count <= capacity)
        bytes.withUnsafeBytes { if let start = $0.baseAddress { memory.copyMemory(from: start, byteCount: $0.count) } }
    }
}
