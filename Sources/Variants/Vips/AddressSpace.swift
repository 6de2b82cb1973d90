import Glibc

/// Checks the available address space on behalf of libraries that do not check their allocations.
enum AddressSpace {
    /// Whether this many bytes can be allocated within the worker's limit. Tests this by reserving the bytes without
    /// touching them. Free heap memory is not counted.
    static func hasRoom(for bytes: Int) -> Bool {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        guard let memory = mmap(nil, bytes, PROT_NONE, flags, -1, 0), memory != MAP_FAILED else { return false }
        munmap(memory, bytes)
        return true
    }
}
