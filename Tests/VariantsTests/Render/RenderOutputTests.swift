import Testing

@testable import Variants

/// Every output format decodes back, holds what it should keep and nothing else.
@Suite struct RenderOutputTests {
    @Test(arguments: ["attention", "entropy"], RenderQuality.allCases)
    func `content gravities give exact sizes`(gravity: String, quality: RenderQuality) async throws {
        for (name, box) in [
            ("dusk-2mp.jpg", "101x203"), ("exif-orientation-6.jpg", "300x90"), ("balloon-alpha.png", "33x150"),
            ("grey.jpg", "80x80"),
        ] {
            let variant = try await RenderFixture.renderer.render(
                RenderSamples.job(name, "thumbnail:\(box):fill:gravity=\(gravity),png", quality: quality))
            #expect("\(variant.width)x\(variant.height)" == box)
            let header = try ImageHeader.probe(variant.bytes)
            #expect("\(header.width)x\(header.height)" == box)
        }
    }

    @Test(arguments: [("jpeg:95", 2.0), ("png", 0), ("webp:95", 2), ("webp:lossless", 0), ("gif", 6), ("avif:80", 3)])
    func `every output decodes back to the picture`(output: String, tolerance: Double) async throws {
        for name in ["dunes-2mp.jpg", "balloon-alpha.png"] {
            let recipe = "thumbnail:200x200"
            let expected = try await RenderSamples.pixels(
                name, output.hasPrefix("jpeg") ? recipe + ",background:ffffff" : recipe)
            let variant = try await RenderFixture.renderer.render(RenderSamples.job(name, recipe + "," + output))
            #expect(variant.width == expected.width && variant.height == expected.height)
            let header = try ImageHeader.probe(variant.bytes)
            #expect(header.format == variant.format)
            #expect(header.width == expected.width && header.height == expected.height)
            let decoded = try await RenderSamples.decoded(variant.bytes)
            #expect(variant.hasAlpha == (name.contains("alpha") && !output.hasPrefix("jpeg")))
            // Colours count where something is seen; GIF's alpha is all or nothing.
            let seen = try #require(ColorDifference.mean(Self.onGray(decoded), Self.onGray(expected)))
            #expect(seen <= tolerance)
        }
    }

    /// The picture on a gray page.
    static func onGray(_ picture: PixelBuffer) -> PixelBuffer {
        var result = picture
        for at in stride(from: 0, to: result.pixels.count, by: 4) {
            let alpha = Int(result.pixels[at + 3])
            for band in 0..<3 {
                result.pixels[at + band] = UInt8(
                    (Int(result.pixels[at + band]) * alpha + 128 * (255 - alpha) + 127) / 255)
            }
            result.pixels[at + 3] = 255
        }
        return result
    }

    static let tiff: [UInt8] = [
        0x49, 0x49, 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
    ]
    static let xmp = [UInt8]("<x:xmpmeta xmlns:x='adobe:ns:meta/'/>".utf8)

    /// The wide gamut sample with EXIF and XMP of ours.
    static func tagged() throws -> [UInt8] {
        try KeptBlobs(exif: tiff, xmp: xmp).inserted(
            intoJPEG: ProbeSampleTests.read("originals/wide-gamut-p3.jpg"))
    }

    private func opened(_ bytes: [UInt8], _ body: (Image) throws -> Void) throws {
        try VipsLibrary.load()
        let format = try ImageHeader.probe(bytes).format
        try bytes.withUnsafeBytes { try body(Decoding.open($0, format)) }
    }

    @Test(arguments: ["jpeg", "png", "webp", "webp:lossless", "avif"])
    func `kept metadata reads back through libvips`(output: String) async throws {
        let original = try Self.tagged()
        var profile: [UInt8]?
        try opened(original) { profile = $0.blob("icc-profile-data") }
        let wanted = try #require(profile)
        let variant = try await RenderFixture.renderer.render(
            RenderSamples.job(original, "profile:keep,thumbnail:120x120,\(output):keep=exif+xmp"))
        #expect(variant.width == 80 && variant.height == 120)
        try opened(variant.bytes) { image in
            #expect(image.width == 80 && image.height == 120)
            #expect(image.blob("icc-profile-data") == wanted)
            #expect(image.blob("xmp-data") == Self.xmp)
            // libvips may write EXIF again when it reads; the orientation must be upright in any case.
            #expect(image.has("exif-data"))
        }
        #expect(try ImageHeader.probe(variant.bytes).orientation == 1)

        let converted = try await RenderFixture.renderer.render(
            RenderSamples.job(original, "thumbnail:120x120,\(output):keep=icc"))
        try opened(converted.bytes) { image in
            let profile = try #require(image.blob("icc-profile-data"))
            #expect(profile != wanted, "sRGB pixels must not carry the profile of the original")
            #expect(!image.has("exif-data") && !image.has("xmp-data"))
        }
    }

    @Test(arguments: ["jpeg", "png", "webp", "webp:lossless", "gif", "avif", "tiff"])
    func `nothing is left of metadata that is not kept`(output: String) async throws {
        let variant = try await RenderFixture.renderer.render(
            RenderSamples.job(Self.tagged(), "thumbnail:64x64," + output))
        try opened(variant.bytes) { image in
            for name in ["exif-data", "xmp-data", "icc-profile-data", "iptc-data"] { #expect(!image.has(name)) }
        }
        for text in ["xmpmeta", "Exif\0\0", "ICC_PROFILE", "iCCP", "eXIf", "iTXt", "tEXt", "tIME", "EXIF", "ICCP"] {
            #expect(!variant.bytes.contains(text.utf8), "\(text) is in the file")
        }
        if output == "png" {
            #expect(Set(Self.chunks(ofPNG: variant.bytes)).isSubset(of: ["IHDR", "pHYs", "IDAT", "IEND"]))
        }
    }

    /// The types of a PNG's chunks.
    static func chunks(ofPNG bytes: [UInt8]) -> [String] {
        var types: [String] = []
        var at = 8
        while at + 8 <= bytes.count {
            types.append(String(decoding: bytes[(at + 4)..<(at + 8)], as: UTF8.self))
            at += 12 + bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) }
        }
        return types
    }

    @Test(arguments: [
        "jpeg", "jpeg:progressive", "png", "webp", "webp:lossless", "gif", "avif", "avif:lossless", "jxl", "tiff",
    ])
    func `the same input gives the same bytes`(output: String) async throws {
        for recipe in ["thumbnail:90x90", "circle,scaled:0.3", "frames:all,thumbnail:50x50"] {
            let job = try RenderSamples.job("balloon.webp", "\(recipe),\(output)", quality: .balanced)
            let first = try await RenderFixture.renderer.render(job).bytes
            #expect(try await RenderFixture.renderer.render(job).bytes == first)
        }
    }
}
