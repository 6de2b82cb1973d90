import TestSupport
import Testing

@testable import Variants

struct ImageDetailsTests {
    private func details(_ bytes: [UInt8]) throws -> ImageDetails {
        ImageDetails.read(bytes, try ImageHeader.probe(bytes))
    }

    @Test(
        arguments: [
            ("cmyk.jpg", "CMYK", 8, nil), ("cmyk-profile.jpg", "CMYK", 8, "Sample inks"), ("grey.jpg", "grey", 8, nil),
            ("wide-gamut-p3.jpg", "RGB", 8, "Sample P3"), ("sky-16bit.png", "RGB", 16, nil),
            ("balloon-palette.png", "RGB", 8, nil), ("moon-grey-alpha.png", "grey", 8, nil),
            ("balloon.gif", "RGB", 8, nil),
            ("balloon.webp", "RGB", 8, nil), ("forest.avif", "RGB", 8, nil), ("meadow.tiff", "RGB", 8, nil),
        ] as [(String, String, Int, String?)])
    func `colour space, depth and profile are told`(name: String, space: String, depth: Int, profile: String?) throws {
        let details = try details(ProbeSampleTests.read("originals/" + name))
        #expect(details.colourSpace?.rawValue == space && details.bitDepth == depth)
        #expect(details.profileName == profile && details.exif == nil)
    }

    @Test(arguments: [true, false])
    func `what a camera wrote is summed up, in either byte order and every format`(isBigEndian: Bool) throws {
        let exif = CameraEXIF(isBigEndian: isBigEndian).complete
        let prefixed = HandmadeImages.ascii("Exif\0\0") + exif
        let files = [
            HandmadeImages.jpeg(width: 8, height: 8, extra: HandmadeImages.segment(0xE1, prefixed)),
            HandmadeImages.png(width: 8, height: 8, extra: HandmadeImages.pngChunk("eXIf", exif)),
            HandmadeImages.webp([HandmadeImages.vp8x(8, width: 8, height: 8), ("EXIF", exif)]),
            HandmadeImages.webp([HandmadeImages.vp8x(8, width: 8, height: 8), ("EXIF", prefixed)]),
        ]
        for file in files {
            let summary = try #require(try details(file).exif)
            #expect(summary.camera == "Canon EOS R5" && summary.lens == "RF50mm F1.8 STM")
            #expect(summary.exposureTime == 1.0 / 250 && summary.aperture == 2.8 && summary.sensitivity == 400)
            #expect(summary.focalLength == 50 && summary.date == "2024-05-01T12:30:07+02:00")
            let position = try #require(summary.position)
            #expect(abs(position.latitude + 33.858417) < 1e-6 && position.longitude == 151.2)
        }
    }

    @Test func `an AVIF's EXIF is found where its boxes say`() async throws {
        let plain = try await RenderFixture.renderer.render(
            RenderSamples.job("meadow-small.jpg", "thumbnail:40x40,avif")
        ).bytes
        let file = try KeptBlobs(exif: CameraEXIF().complete).inserted(intoAVIF: plain)
        #expect(try details(file).exif?.camera == "Canon EOS R5")
        // Nothing of it is needed.
        for length in stride(from: 0, to: file.count, by: 7) {
            _ = ImageDetails.read(Array(file[..<length]), ImageHeader(format: .avif, width: 40, height: 40))
        }
    }

    @Test(
        arguments: [
            ("0000:00:00 00:00:00", nil), ("    :  :     :  :  ", nil), ("2024:05:01", nil),
            ("2024:13:01 00:00:00", nil),
            ("2024:05:01 12:30:07", "2024-05-01T12:30:07"),
        ] as [(String, String?)])
    func `a date is told if it is one`(text: String, date: String?) {
        let camera = CameraEXIF()
        let block = camera.block([camera.text(0x010F, "A"), camera.text(0x0132, text)])
        #expect(block.withUnsafeBytes { EXIFSummary(ByteReader($0)) }?.date == date)
    }

    @Test func `entries that make no sense are left out`() {
        let camera = CameraEXIF()
        let block = camera.block(
            [camera.text(0x010F, "   "), camera.text(0x0110, "A\u{1b}[31m")],
            photo: [camera.rationals(0x829A, [(1, 0)]), camera.short(0x829D, 3)],
            position: [
                camera.text(1, "N"), camera.rationals(2, [(91, 1), (0, 1), (0, 1)]), camera.text(3, "E"),
                camera.rationals(4, [(10, 1), (0, 1), (0, 1)]),
            ])
        let summary = block.withUnsafeBytes { EXIFSummary(ByteReader($0)) }
        #expect(summary?.camera == "A\u{1b}[31m" && summary?.exposureTime == nil && summary?.aperture == nil)
        #expect(summary?.position == nil)
        let nothing = camera.block([camera.short(0x0112, 1)])
        #expect(nothing.withUnsafeBytes { EXIFSummary(ByteReader($0)) } == nil)
    }
}
