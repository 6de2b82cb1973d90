import Testing

@testable import Variants

@Suite struct TIFFOutputTests {
    private func render(_ original: [UInt8], _ recipe: String) async throws -> RenderedVariant {
        try await RenderFixture.renderer.render(RenderSamples.job(original, recipe))
    }

    private func read(_ bytes: [UInt8], _ name: String) throws -> [UInt8]? {
        try bytes.withUnsafeBytes { try Decoding.open($0, .tiff).blob(name) }
    }

    @Test(arguments: ["dunes-2mp.jpg", "balloon-alpha.png", "grey.jpg"])
    func `a TIFF holds every pixel, and alpha that is not premultiplied`(name: String) async throws {
        let original = try ProbeSampleTests.read("originals/" + name)
        let expected = try await RenderSamples.pixels(name, "thumbnail:120x120")
        let tiff = try await render(original, "thumbnail:120x120,tiff")
        #expect(tiff.format == .tiff && tiff.hasAlpha == name.contains("alpha"))
        #expect(try await RenderSamples.decoded(tiff.bytes) == expected)
        let header = try ImageHeader.probe(tiff.bytes)
        #expect((header.width, header.height) == (expected.width, expected.height) && header.pages == 1)
        #expect(header.hasAlpha == tiff.hasAlpha && header.orientation == 1 && header.profileBytes == 0)
    }

    @Test func `it is deflated, with the horizontal predictor`() async throws {
        let tiff = try await render(ProbeSampleTests.read("originals/grey.jpg"), "thumbnail:120x120,tiff")
        try tiff.bytes.withUnsafeBytes { bytes in
            let directories = try #require(TIFFHeader(ByteReader(bytes)))
            #expect(directories.value(259) == 8 && directories.value(317) == 2)  // Compression, Predictor
            #expect(directories.value(258) == 8)  // BitsPerSample
        }
    }

    @Test func `profile and XMP are kept on request, and EXIF cannot be`() async throws {
        let original = try RenderOutputTests.tagged()
        let own = try original.withUnsafeBytes { try Decoding.open($0, .jpeg).blob("icc-profile-data") }
        let kept = try await render(original, "profile:keep,thumbnail:60x60,tiff:keep=xmp").bytes
        #expect(try own != nil && read(kept, "icc-profile-data") == own)
        #expect(try read(kept, "xmp-data") == RenderOutputTests.xmp)
        #expect(try ImageHeader.probe(kept).profileBytes == own?.count)

        let converted = try await render(original, "thumbnail:60x60,tiff:keep=icc").bytes
        let profile = try #require(try read(converted, "icc-profile-data"))
        #expect(try profile != own && read(converted, "xmp-data") == nil)
        #expect(try read(await render(original, "thumbnail:60x60,tiff:keep=xmp").bytes, "icc-profile-data") == nil)

        let error = #expect(throws: RecipeError.self) { try Recipe("tiff:keep=exif") }
        #expect(error?.description.contains("expected `keep=copyright+icc+iptc+position+xmp`") == true)
    }

    @Test func `a worker writes the same file under its locks`() async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        for recipe in ["thumbnail:300x300,tiff", "profile:keep,circle,tiff:keep=xmp"] {
            let job = try RenderSamples.job(RenderOutputTests.tagged(), recipe)
            let made = try await pool.render(job)
            #expect(made.format == .tiff)
            #expect(try await RenderFixture.renderer.render(job).bytes == made.bytes)
        }
        await pool.shutdown()
    }

    @Test func `a TIFF original stays one only if the recipe says so`() throws {
        let header = ImageHeader(format: .tiff, encodedWidth: 40, encodedHeight: 30)
        for (recipe, format) in [("original", ImageFormat.jpeg), ("", .jpeg), ("circle", .png), ("tiff", .tiff)] {
            #expect(try Recipe(recipe).resolvedOutput(for: header).format == format)
        }
        #expect(
            try Recipe("tiff").resolvedOutput(for: header).description
                == "tiff:quality=100:lossless=yes:max=none:progressive=no:chroma=auto:effort=none:keep=copyright")
        #expect(try Recipe("tif:lossless").description == "tiff")
    }
}
