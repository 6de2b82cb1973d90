import CSandbox
import Glibc

/// The memory files that a worker reuses: one for copies of originals, and one for its outputs.
///
/// Allocating and freeing pages takes several times as long as filling them. Reuse leaks no data: no other process
/// reads the files, and the worker has already seen everything that they contained.
final class WorkerFiles {
    private var original: CopiedOriginal?
    /// The name of the original that was copied last, if it has a name.
    private var name: String?
    private var output: Int32 = -1

    /// The maximum sizes in bytes of the files that are kept between renders, for the copy of an original and for an
    /// output.
    private static let keptOriginal = 16 << 20
    private static let keptOutput = 1 << 20

    deinit { if output >= 0 { close(output) } }

    /// Copies an original and returns a read-only descriptor of the copy. This object owns the descriptor.
    ///
    /// - Parameter name: identifies the original. An original that the file already contains is not copied again.
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

    /// Returns the file to write a variant to. The file may still contain the previous variant. This object owns the
    /// descriptor.
    func usedOutput() throws(RenderError) -> Int32 {
        if output < 0 { output = try MemoryFile.make("variant") }
        return output
    }

    /// Frees files that are too large to keep. Must be called after each render. An output file is truncated instead of
    /// replaced, because a compromised worker could keep the descriptors of replaced files and fill each file.
    func discardLargeFiles() {
        if let original, original.capacity > Self.keptOriginal { self.original = nil }
        var status = stat()
        if output >= 0, fstat(output, &status) != 0 || status.st_size > Self.keptOutput {
            // If truncating fails, the pages are not freed before the worker ends.
            _ = ftruncate(output, 0)
        }
    }
}

/// A memory file that this process has mapped for writing and that a worker reads.
private final class CopiedOriginal {
    let reading: Int32
    let capacity: Int
    private let memory: UnsafeMutableRawPointer

    init(count: Int) throws(RenderError) {
        // Use the next power of two, so that originals of similar sizes can use the same file.
        var capacity = 1 << 18
        while capacity < count { capacity *= 2 }
        let file = try MemoryFile.make("original")
        defer { close(file) }
        // Allocate all pages now, because running out of memory is an error here, but would raise a signal during a
        // write.
        var status = posix_fallocate(file, 0, off_t(capacity))
        // Seal the length, so that a worker cannot truncate the file while it is mapped in this process.
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
        // Without /proc, the worker gets a writable descriptor, but it can only change its own copy.
        self.reading = reading >= 0 ? reading : dup(file)
    }

    deinit {
        munmap(memory, capacity)
        close(reading)
    }

    /// Copies at most `capacity` bytes of an original to the beginning of the file.
    func fill(_ bytes: [UInt8]) {
        precondition(bytes.count <= capacity)
        bytes.withUnsafeBytes { if let start = $0.baseAddress { memory.copyMemory(from: start, byteCount: $0.count) } }
    }
}
