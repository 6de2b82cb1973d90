import Glibc
import PipelineFleet
import TestSupport
import Testing

@Suite struct PurgePlaceFileTests {
    /// A folder that is removed with this value.
    final class Folder: Sendable {
        let path: String
        init() throws {
            var name = Array("/tmp/purge-place-XXXXXX".utf8CString)
            try #require(mkdtemp(&name) != nil)
            path = String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
        deinit { _ = try? HelperProgram(["rm", "-rf", path]).waitForEnd() }

        var bytes: [UInt8] {
            guard let file = fopen(path + "/cache.purge-place", "r") else { return [] }
            defer { fclose(file) }
            var buffer = [UInt8](repeating: 0, count: 1000)
            let count = fread(&buffer, 1, buffer.count, file)
            return Array(buffer[..<count])
        }

        func write(_ bytes: [UInt8]) {
            guard let file = fopen(path + "/cache.purge-place", "w") else { return }
            fwrite(bytes, 1, bytes.count, file)
            fclose(file)
        }
    }

    private func place(_ number: Int, _ id: String) throws -> PurgePlace {
        PurgePlace(number: number, streamID: try #require(StreamID(id)))
    }

    @Test func `reads back what was written last`() async throws {
        let folder = try Folder()
        let file = PurgePlaceFile(folder: folder.path)
        #expect(await file.read() == .new)
        try await file.write(place(1 << 53, "18446744073709551615-7"))
        try await file.write(place(0, "0-0"))
        #expect(await file.read() == .place(try place(0, "0-0")))
        #expect(await PurgePlaceFile(folder: folder.path).read() == .place(try place(0, "0-0")))
    }

    @Test func `a file cut anywhere, or with any byte changed, is a damaged place`() async throws {
        let folder = try Folder()
        let file = PurgePlaceFile(folder: folder.path)
        try await file.write(place(1234, "1700000000000-5"))
        let bytes = folder.bytes
        for index in bytes.indices {
            folder.write(Array(bytes[..<index]))
            #expect(await file.read() == .damagedPlace)
            var changed = bytes
            changed[index] ^= 1
            folder.write(changed)
            #expect(await file.read() == .damagedPlace)
        }
        folder.write(bytes + [0x0A])
        #expect(await file.read() == .damagedPlace)
        folder.write(bytes)
        #expect(await file.read() == .place(try place(1234, "1700000000000-5")))
    }

    @Test func `says which place cannot be stored`() async throws {
        let folder = try Folder()
        let file = PurgePlaceFile(folder: folder.path + "/missing")
        let place = try place(1, "1-1")
        let error = await #expect(throws: PurgePlaceFile.Failure.self) { try await file.write(place) }
        #expect(error?.description.contains("\(folder.path)/missing/cache.purge-place") == true)
        #expect(error?.description.contains("No such file or directory") == true)
    }
}
