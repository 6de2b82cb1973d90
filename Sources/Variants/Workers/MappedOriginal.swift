import Glibc

/// Maps into memory the original that a worker renders.
///
/// The front process reuses one memory file for the copies of originals (`WorkerFiles`). That file stays mapped,
/// because mapping it again for each render would take several times as long as reading the bytes. A file on disk is
/// unmapped after each render.
// @unchecked Sendable: used only by the worker's main thread.
final class MappedOriginal: @unchecked Sendable {
    private var memory: UnsafeRawBufferPointer?
    private var device: dev_t = 0
    private var inode: ino_t = 0

    deinit { release() }

    /// Calls `body` with the first `count` bytes of a file. The memory is valid only during the call.
    func with<Value>(
        _ file: Int32, count: Int, _ body: (UnsafeRawBufferPointer) throws(RenderError) -> Value
    ) throws(RenderError) -> Value {
        guard count > 0 else { throw RenderError(.notAnImage, "the original is empty") }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_size >= count else {
            throw RenderError(.undecodable, "the original's file is shorter than \(count) bytes")
        }
        let memory = try mapped(file, status)
        // Memory files have no links, so this unmaps only files on disk.
        defer { if status.st_nlink > 0 { release() } }
        return try body(UnsafeRawBufferPointer(rebasing: memory[..<count]))
    }

    /// Returns the mapping of the complete file, and maps the file if necessary. (A file keeps its inode number while
    /// it is mapped.)
    private func mapped(_ file: Int32, _ status: stat) throws(RenderError) -> UnsafeRawBufferPointer {
        if let memory, memory.count == status.st_size, device == status.st_dev, inode == status.st_ino { return memory }
        release()
        guard let start = mmap(nil, status.st_size, PROT_READ, MAP_SHARED, file, 0), start != MAP_FAILED else {
            throw RenderError(
                .undecodable, "\(status.st_size) bytes cannot be mapped: \(String(cString: strerror(errno)))")
        }
        let mapped = UnsafeRawBufferPointer(start: start, count: status.st_size)
        memory = mapped
        (device, inode) = (status.st_dev, status.st_ino)
        return mapped
    }

    private func release() {
        if let memory { munmap(UnsafeMutableRawPointer(mutating: memory.baseAddress), memory.count) }
        memory = nil
    }
}
