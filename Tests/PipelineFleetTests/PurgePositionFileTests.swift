import PipelineFleet
import PipelineSupport
import TestSupport
import Testing

@Suite struct PurgePositionFileTests {
    private let folder = ScratchFolder()

    private func write(_ bytes: [UInt8]) { folder.write(bytes, to: "cache.purge-place") }

    private func position(_ number: Int, _ id: String) throws -> PurgePosition {
        PurgePosition(number: number, streamID: try #require(StreamID(id)))
    }

    /// A file of an earlier version.
    private func text(_ lines: String) -> [UInt8] { Array("\(lines)\(sha256Hex(lines))\n".utf8) }

    @Test func `reads the place that an earlier version wrote`() async throws {
        let file = PurgePositionFile(folder: folder.path)
        #expect(await file.read() == .new)
        write(text("purge-place 1\n\(1 << 53) 18446744073709551615-7\n"))
        #expect(await file.read() == .position(try position(1 << 53, "18446744073709551615-7")))
        write(text("purge-place 1\n0 0-0\n"))
        #expect(await file.read() == .position(try position(0, "0-0")))
        await file.remove()
        #expect(await file.read() == .new)
    }

    @Test(arguments: [("5 17-1 ab", true), ("5 17-1 ", true), ("5 17-1", false), ("x 17-1 ab", false), ("", false)])
    func `a place is read as it is written`(text: String, isValid: Bool) {
        #expect(PurgePosition(text)?.description == (isValid ? text : nil))
    }

    @Test func `a file cut anywhere, or with any byte changed, is a damaged place`() async throws {
        let file = PurgePositionFile(folder: folder.path)
        let bytes = text("purge-place 1\n1234 1700000000000-5\n")
        for index in bytes.indices {
            write(Array(bytes[..<index]))
            #expect(await file.read() == .damagedPosition)
            var changed = bytes
            changed[index] ^= 1
            write(changed)
            #expect(await file.read() == .damagedPosition)
        }
        write(bytes + [0x0A])
        #expect(await file.read() == .damagedPosition)
        write(bytes)
        #expect(await file.read() == .position(try position(1234, "1700000000000-5")))
    }
}
