import Glibc
import TestSupport
import Testing

@testable import Variants

@Suite struct RenderLibrariesTests {
    private static func without(_ formats: ImageFormat...) -> RenderLibraries {
        var libraries = RenderLibraries.unknown
        libraries.written.subtract(formats)
        libraries.read.subtract(formats)
        return libraries
    }

    @Test func `what cannot be written is not chosen, but an output that is written out stays`() throws {
        let jpeg = ImageHeader(format: .jpeg, encodedWidth: 90, encodedHeight: 60)
        let avif = ImageHeader(format: .avif, encodedWidth: 90, encodedHeight: 60)
        let poor = Self.without(.avif, .jxl)
        func format(_ recipe: String, _ header: ImageHeader, _ libraries: RenderLibraries = .unknown) throws
            -> ImageFormat
        {
            try Recipe(recipe).resolvedOutput(for: header, negotiated: [.jxl, .avif, .webp], with: libraries).format
        }
        #expect(try format("auto", jpeg) == .jxl && format("auto", jpeg, poor) == .webp)
        #expect(try format("auto", jpeg, Self.without(.avif, .jxl, .webp)) == .jpeg)
        #expect(try format("original", avif) == .avif && format("original", avif, poor) == .jpeg)
        #expect(try format("circle,original", avif, poor) == .png)
        #expect(try format("jxl", jpeg, poor) == .jxl)
    }

    @Test func `what is missing is named, with the packages of both Debians`() throws {
        #expect(RenderLibraries.unknown.missing(decoding: Set(ImageFormat.decodable)).isEmpty)
        let missing = Self.without(.avif, .jxl).missing(decoding: [.avif, .jpeg])
        #expect(
            missing == [
                "the libraries on this machine cannot write AVIF: install libvips42 with libheif1 (Debian 12) or "
                    + "libheif-plugin-aomenc (Debian 13)",
                "the libraries on this machine cannot write JPEG XL: install libvips42 with libjxl0.7 (Debian 12) or "
                    + "libvips42t64 with libjxl0.11 (Debian 13)",
                "the libraries on this machine cannot read AVIF: install libvips42 with libheif1 (Debian 12) or "
                    + "libheif-plugin-dav1d (Debian 13)",
            ])
        let error = #expect(throws: RenderError.self) { try Self.without(.jxl).checkWrites(.jxl) }
        #expect(error?.code == .notAvailable && error?.message.contains("libjxl0.11") == true)
        let entries = Catalog.entries(with: Self.without(.jxl)).map(\.token)
        #expect(!entries.contains("jxl") && entries.contains("auto") && entries.count == Catalog.entries.count - 1)
    }

    @Test func `the text says all of it`() throws {
        var libraries = Self.without(.heif)
        libraries.files = ["/a", "/b c"]
        #expect(RenderLibraries(text: libraries.text) == libraries)
        libraries.libheif = "1.2"
        #expect(RenderLibraries(text: libraries.text) == libraries && RenderLibraries(text: "a\nb\nc") == nil)
    }

    @Test func `a worker reports what it has loaded, as this process would`() async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let there = try #require(await pool.loadLibraries())
        #expect(pool.statistics.started == 1)
        let here = try #require(await RenderFixture.renderer.loadLibraries())
        #expect(there.written == here.written && there.read == here.read && there.libheif == here.libheif)
        #expect(there.libvips == here.libvips && there.description.hasPrefix("libvips \(here.libvips), libheif "))
        #expect(there.files.contains { $0.contains("/libvips.so.42") } && there.files.contains("/etc/ld.so.cache"))
        #expect(try await pool.render(WorkerPoolTests.job()).libraries == there)
        await pool.shutdown()
        let none = WorkerPool(WorkerPoolTests.configuration { $0.executable = "/bin/true" })
        #expect(await none.loadLibraries() == nil)
        await none.shutdown()
        #expect(await none.loadLibraries() == nil)
    }

    @Test func `libraries that are updated take effect with the next worker, and replace the others`() async throws {
        let folder = ScratchFolder()
        let pool = WorkerPool(
            WorkerPoolTests.configuration {
                $0.maxConcurrentRenders = 2
                $0.environment.append("LD_LIBRARY_PATH=" + folder.path)
            })
        let job = try WorkerPoolTests.job()
        let before = try #require(try await pool.render(job).libraries)
        let vips = try #require(before.files.first { $0.contains("/libvips.so.42") })
        // A libvips without the modules beside it: another one, as far as a worker can tell. A link would find the
        // modules beside its target.
        let (from, to) = (open(vips, O_RDONLY), open(folder("libvips.so.42"), O_WRONLY | O_CREAT, 0o600))
        #expect(sendfile(to, from, nil, 1 << 30) > 1 << 20)
        close(from)
        close(to)
        let gate = BlockingGate()
        var slow = job
        let bytes = try job.original.bytes()
        slow.original = EncodedBytes(count: bytes.count) {
            gate.pass()
            return bytes
        }
        let held = Task { [slow] in try await pool.render(slow).libraries }
        try await waitWhile { pool.running == 0 }
        let after = try #require(try await pool.render(job).libraries)
        #expect(after != before && after.libvips == before.libvips && pool.libraries == after)
        gate.open()
        #expect(try await held.value == before)
        try await waitWhile { pool.statistics.recycled < 1 }
        for _ in 0..<3 { #expect(try await pool.render(job).libraries == after) }
        await pool.shutdown()
    }
}
