import Glibc

/// What libraries need to be told beforehand that do not check whether they get the memory they ask for.
enum AddressSpace {
    /// Whether so many bytes could be had. Reserving them, untouched, tells whether a worker's limit leaves them; what is
    /// free in the heap comes on top.
    static func hasRoom(for bytes: Int) -> Bool {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        guard let memory = mmap(nil, bytes, PROT_NONE, flags, -1, 0), memory != MAP_FAILED else { return false }
        munmap(memory, bytes)
        return true
    }
}
