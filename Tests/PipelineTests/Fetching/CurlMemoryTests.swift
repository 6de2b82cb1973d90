import CCurlMemory
import Glibc
import Testing

/// libcurl's memory: lists of one thread, so each test stays on its thread from turning keeping on to turning it off.
@Suite struct CurlMemoryTests {
    /// Sizes around every bound: the smallest block, steps of 16, the largest kept, the receive buffer.
    static let sizes = [
        0, 1, 24, 25, 40, 41, 1000, 2087, 2088, 2089, 2104, 2105, 16_383, 16_384, 16_385, 16_400, 16_401,
    ]

    @Test func `a freed block serves the next request of its size, and no larger one`() throws {
        ccurl_keep_memory(true)
        defer { ccurl_keep_memory(false) }
        let first = try #require(ccurl_malloc(100))
        ccurl_free(first)
        let larger = try #require(ccurl_malloc(121))
        #expect(larger != first)
        let again = try #require(ccurl_malloc(104))
        #expect(again == first)
        ccurl_free(again)
        ccurl_free(larger)
    }

    @Test(arguments: [true, false])
    func `blocks of every size hold what is written, are zeroed by calloc, and grow with what they hold`(
        keeps: Bool
    ) throws {
        ccurl_keep_memory(keeps)
        defer { ccurl_keep_memory(false) }
        for _ in 0..<3 {
            var blocks: [(UnsafeMutableRawPointer, Int, UInt8)] = []
            for (index, size) in Self.sizes.enumerated() {
                let mark = UInt8(index + 1)
                var block = try #require(ccurl_calloc(1, size))
                #expect((0..<size).allSatisfy { block.load(fromByteOffset: $0, as: UInt8.self) == 0 })
                memset(block, Int32(mark), size)
                block = try #require(ccurl_realloc(block, size * 2 + 1))
                memset(block + size, Int32(mark), size + 1)
                blocks.append((block, size * 2 + 1, mark))
            }
            for (block, size, mark) in blocks {
                #expect((0..<size).allSatisfy { block.load(fromByteOffset: $0, as: UInt8.self) == mark })
                ccurl_free(block)
            }
        }
        #expect(ccurl_calloc(Int.max, 4) == nil)
        let copy = try #require(ccurl_strdup("a name"))
        #expect(String(cString: copy) == "a name")
        ccurl_free(copy)
        ccurl_free(nil)
    }
}
