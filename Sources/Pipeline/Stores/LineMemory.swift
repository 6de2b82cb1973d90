import Glibc

/// Memory of zeros that begins with a line of the processor's cache. Where there is much of it, it is of pages of 2 MB, if
/// the system has them: finding out where a page of 4 kB lies is another wait for memory once there are many.
///
/// @unchecked Sendable because it only owns the memory: who uses it sees to order.
final class LineMemory: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    /// What was mapped for it; nil: it is of the heap.
    private let mapping: UnsafeMutableRawBufferPointer?

    private static let page = 2 << 20
    private static let line = 64

    /// The bytes of whole large pages that hold so many, from two pages on: the rest of a page would be of small ones.
    static func wholePages(_ bytes: Int) -> Int {
        bytes > 2 * page ? (bytes + page - 1) / page * page : bytes
    }

    init(bytes: Int) {
        mapping = bytes >= Self.page ? Self.mapped(bytes) : nil
        if let mapping, let first = mapping.baseAddress {
            start = first.alignedUp(toMultipleOf: Self.page)
            // Only a hint: without it the memory is as good, and slower.
            madvise(start, bytes, MADV_HUGEPAGE)
        } else {
            start = .allocate(byteCount: bytes, alignment: Self.line)
            start.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        }
    }

    deinit {
        if let mapping { munmap(mapping.baseAddress, mapping.count) } else { start.deallocate() }
    }

    /// With room to begin where a large page does; what is not used of it takes no memory.
    private static func mapped(_ bytes: Int) -> UnsafeMutableRawBufferPointer? {
        let count = bytes + page
        let memory = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let memory, memory != MAP_FAILED else { return nil }
        return UnsafeMutableRawBufferPointer(start: memory, count: count)
    }
}
