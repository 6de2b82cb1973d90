import Glibc
import PipelineSupport
import Testing

@Suite struct FileIOTests {
    private func temporaryFile(_ body: (Int32) -> Void) {
        let file = open("/tmp", 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        defer { close(file) }
        body(file)
    }

    @Test func `a call that a signal interrupts is repeated, another failure is not`() {
        var calls = 0
        func call(_ error: Int32) -> Int {
            calls += 1
            errno = error
            return calls < 3 ? -1 : 7
        }
        #expect(uninterrupted { call(EINTR) } == 7 && calls == 3)
        calls = 0
        #expect(uninterrupted { call(EIO) } == -1 && calls == 1)
    }

    @Test func `whole buffers are written and read, at offsets`() {
        temporaryFile { file in
            let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            #expect(bytes.withUnsafeBytes { FileIO.write($0, to: file) })
            #expect(FileIO.bytes(100_000, of: file) == bytes)
            #expect(bytes[..<10].withUnsafeBytes { FileIO.write($0, to: file, at: 50_000) })
            let read = FileIO.bytes(20, of: file, at: 49_995)
            #expect(read.map { Array($0[5..<15]) } == Array(bytes[..<10]))
        }
    }

    @Test func `a file that ends early, and one that cannot be read, are told apart`() {
        temporaryFile { file in
            #expect([1, 2, 3].withUnsafeBytes { FileIO.write($0, to: file) })
            errno = EIO
            #expect(FileIO.bytes(100, of: file) == nil && errno == 0)
            #expect(FileIO.bytes(1, of: -1) == nil && errno == EBADF)
            #expect([1].withUnsafeBytes { FileIO.write($0, to: -1) } == false)
        }
    }

    @Test func `digits of either case have values`() {
        #expect("09afAF".utf8.map { hexValue($0) } == [0, 9, 10, 15, 10, 15])
        #expect("/:@G`g".utf8.allSatisfy { hexValue($0) == nil })
    }
}
