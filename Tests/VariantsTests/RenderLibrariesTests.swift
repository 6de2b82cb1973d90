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
        let jpeg = ImageHeader(format: .jpeg, width: 90, height: 60)
        let avif = ImageHeader(format: .avif, width: 90, height: 60)
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
                "the libraries of this machine cannot write AVIF: install libvips42 with libheif1 (Debian 12) or "
                    + "libheif-plugin-aomenc (Debian 13)",
                "the libraries of this machine cannot write JPEG XL: install libvips42 with libjxl0.7 (Debian 12) or "
                    + "libvips42t64 with libjxl0.11 (Debian 13)",
                "the libraries of this machine cannot read AVIF: install libvips42 with libheif1 (Debian 12) or "
                    + "libheif-plugin-dav1d (Debian 13)",
            ])
        let error = #expect(throws: RenderError.self) { try Self.without(.jxl).checkWrites(.jxl) }
        #expect(error?.code == .notAvailable && error?.message.contains("libjxl0.11") == true)
        let entries = Catalogue.entries(with: Self.without(.jxl)).map(\.token)
        #expect(!entries.contains("jxl") && entries.contains("auto") && entries.count == Catalogue.entries.count - 1)
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
        #expect(there.versions.hasPrefix(here.versions.prefix { $0 != " " }) && there.versions.contains("libjpeg.so."))
        #expect(there.files.contains { $0.contains("/libvips.so.42") } && there.files.contains("/etc/ld.so.cache"))
        #expect(try await pool.render(WorkerPoolTests.job()).libraries == there)
        await pool.shutdown()
        let none = WorkerPool(WorkerPoolTests.configuration { $0.executable = "/bin/true" })
        #expect(await none.loadLibraries() == nil)
        await none.shutdown()
        #expect(await none.loadLibraries() == nil)
    }
}
