import CSandbox
import Glibc

/// The files in memory that a worker is given again and again: one its originals are copied into, one for its outputs.
///
/// Taking pages from the system and giving them back costs several times what filling them does. Nobody else reads them,
/// and the worker has seen all they ever held.
final class WorkerFiles {
    private var original: CopiedOriginal?
    /// Of the original in the copy, where it was given one.
    private var name: String?
    private var output: Int32 = -1

    /// What is kept from render to render: bytes of an original's copy, and of an output.
    private static let keptOriginal = 16 << 20
    private static let keptOutput = 1 << 20

    deinit { if output >= 0 { close(output) } }

    /// A copy of an original, as a descriptor for reading only that stays this object's.
    ///
    /// - Parameter name: what no other original has; one that is in the file already is not copied again.
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

    /// A file to write a variant to, which may hold the last one still; it stays this object's.
    func usedOutput() throws(RenderError) -> Int32 {
        if output < 0 { output = try MemoryFile.make("variant") }
        return output
    }

    /// After a render: lets go of files that are too large to be kept.
    func settle() {
        if let original, original.capacity > Self.keptOriginal { self.original = nil }
        var status = stat()
        if output >= 0, fstat(output, &status) != 0 || status.st_size > Self.keptOutput {
            close(output)
            output = -1
        }
    }
}

/// A file in memory that this process writes to as memory, and that a worker reads.
private final class CopiedOriginal {
    let reading: Int32
    let capacity: Int
    private let memory: UnsafeMutableRawPointer

    init(count: Int) throws(RenderError) {
        // The next power of two, so that originals of like sizes share one file.
        var capacity = 1 << 18
        while capacity < count { capacity *= 2 }
        let file = try MemoryFile.make("original")
        defer { close(file) }
        // All pages now: memory that runs out is an error here, and would be a signal where it is written to.
        var status = posix_fallocate(file, 0, off_t(capacity))
        // Its length is fixed, so that whoever has it cannot take the memory away from under this process.
        if status == 0 { status = -csandbox_fix_length(file) }
        guard status == 0, let memory = mmap(nil, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
            memory != MAP_FAILED
        else {
            throw RenderError(
                .workerUnavailable,
                "no memory for \(capacity) bytes: \(String(cString: strerror(status == 0 ? errno : status)))")
        }
        self.memory = memory
        self.capacity = capacity
        let reading = open("/proc/self/fd/\(file)", O_RDONLY | O_CLOEXEC)
        // Without /proc the worker could write to its own copy, which harms nobody else.
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
