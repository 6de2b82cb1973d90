import Glibc
import Testing

@testable import Variants

/// Memory that a worker's own limits do not count: files that it writes to.
@Suite struct WorkerMemoryTests {
    private static func size(_ file: Int32) -> Int {
        var status = stat()
        return fstat(file, &status) == 0 ? Int(status.st_size) : -1
    }

    @Test func `a worker's stderr takes 64 KiB, and the last text is read from it`() throws {
        let worker = try WorkerProcess.start(WorkerPoolTests.configuration())
        #expect(worker.remarks == nil)
        let text = Array("something failed\n".utf8)
        #expect(write(worker.notes, text, text.count) == text.count)
        #expect(worker.remarks == "something failed")
        // Through the same file, like the worker itself.
        let flood = [UInt8](repeating: 0x61, count: 10_000)
        var total = text.count
        while case let count = write(worker.notes, flood, flood.count), count > 0 { total += count }
        #expect(errno == EPERM && total == 65_536 && Self.size(worker.notes) == 65_536)
        #expect(pwrite(worker.notes, text, text.count, 1 << 28) < 0 && ftruncate(worker.notes, 1 << 28) < 0)
        #expect(worker.remarks == String(repeating: "a", count: 400))
        lseek(worker.notes, 1 << 40, SEEK_SET)
        #expect(worker.remarks == String(repeating: "a", count: 400))
    }

    @Test func `a long output is emptied, so that a worker never has two to fill`() throws {
        let files = WorkerFiles()
        let output = try files.usedOutput()
        for (length, kept) in [(1 << 20, 1 << 20), (1 << 28, 0)] {
            #expect(ftruncate(output, off_t(length)) == 0)
            files.discardLargeFiles()
            #expect(try files.usedOutput() == output)
            #expect(Self.size(output) == kept)
        }
    }
}
