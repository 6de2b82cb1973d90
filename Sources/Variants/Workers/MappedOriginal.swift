import Glibc

/// The original that a worker renders, mapped into memory.
///
/// The front process copies originals into one memory file again and again (`WorkerFiles`). That file stays mapped,
/// because remapping it for each render would cost several times what reading the bytes does; a file on disk is
/// unmapped.
// @unchecked Sendable: used by the worker's main thread only.
final class MappedOriginal: @unchecked Sendable {
    private var memory: UnsafeRawBufferPointer?
    private var device: dev_t = 0
    private var inode: ino_t = 0

    deinit { release() }

    /// Passes the first `count` bytes of a file to `body`, as memory that stays valid during the call.
    func with<Value>(
        _ file: Int32, count: Int, _ body: (UnsafeRawBufferPointer) throws(RenderError) -> Value
    ) throws(RenderError) -> Value {
        guard count > 0 else { throw RenderError(.notAnImage, "there are no bytes") }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_size >= count else {
            throw RenderError(.undecodable, "the original's file is shorter than \(count) bytes")
        }
        let memory = try mapped(file, status)
        // Memory files have no link, so only files on disk are unmapped.
        defer { if status.st_nlink > 0 { release() } }
        return try body(UnsafeRawBufferPointer(rebasing: memory[..<count]))
    }

    /// Maps the whole file, unless it is mapped already. (A file keeps its inode number while it is mapped.)
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
