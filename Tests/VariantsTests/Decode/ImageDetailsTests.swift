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
            ("balloon.webp", "RGB", 8, nil), ("forest.avif", "RGB", 8, "sRGB (nclx)"), ("meadow.tiff", "RGB", 8, nil),
        ] as [(String, String, Int, String?)])
    func `colour space, depth and profile are told`(name: String, space: String, depth: Int, profile: String?) throws {
        let details = try details(ProbeSampleTests.read("originals/" + name))
        #expect(details.colorSpace == space && details.bitDepth == depth)
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
            let latitude = try #require(summary.latitude)
            #expect(abs(latitude + 33.858417) < 1e-6 && summary.longitude == 151.2)
        }
    }

    @Test func `gain maps and content credentials are noticed where formats have them`() throws {
        let ascii = HandmadeImages.ascii
        func jpeg(_ marker: UInt8, _ data: [UInt8], _ after: [UInt8] = []) -> [UInt8] {
            HandmadeImages.jpeg(width: 8, height: 8, extra: HandmadeImages.segment(marker, data)) + after
        }
        let description = [0, 0, 0, 40] + ascii("jumdc2pa") + [0, 0x11, 0, 0x10, 0x80, 0]
        let jumbf = [0, 0, 0, 60] + ascii("jumb") + description
        func box(_ type: String, _ data: [UInt8]) -> [UInt8] {
            [0, 0, 0, UInt8(8 + data.count)] + ascii(type) + data
        }
        let jxl = [0, 0, 0, 12] + ascii("JXL ") + [13, 10, 0x87, 10]
        let identifier: [UInt8] = [
            0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
        ]
        let avif = try ProbeSampleTests.read("originals/forest.avif")
        let gif = try ProbeSampleTests.read("originals/balloon.gif")
        let extended = HandmadeImages.vp8x(0, width: 8, height: 8)
        let xmp = ascii("http://ns.adobe.com/xap/1.0/\0<x:xmpmeta ")
        let apple = "urn:com:apple:photo:2020:aux:hdrgainmap"
        let files: [(format: ImageFormat, bytes: [UInt8], map: Bool, credentials: Bool)] = [
            (.jpeg, jpeg(0xE2, ascii("urn:iso:std:iso:ts:21496:-1\0\0")), true, false),
            (.jpeg, jpeg(0xE1, xmp + ascii("xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\"")), true, false),
            (.jpeg, jpeg(0xE2, ascii("MPF\0"), ascii(apple)), true, false),
            (.jpeg, jpeg(0xEB, ascii("JP") + [0, 1, 0, 0, 0, 1] + jumbf), false, true),
            (.png, HandmadeImages.png(width: 8, height: 8, extra: HandmadeImages.pngChunk("caBX", jumbf)), false, true),
            (.webp, HandmadeImages.webp([extended, ("C2PA", jumbf)]), false, true),
            (.gif, gif.dropLast() + [0x21, 0xFF, 0x0B] + ascii("C2PA_GIF") + [1, 0, 0, 0, 0x3B], false, true),
            (.avif, avif + box("uuid", identifier + [0]), false, true),
            (.jxl, jxl + box("jhgm", [0]), true, false),
            (.jxl, jxl + box("jumb", description), false, true),
            // None of these.
            (.jpeg, jpeg(0xE1, xmp), false, false), (.jpeg, jpeg(0xE2, ascii("MPF\0")), false, false),
            (.jpeg, jpeg(0xEB, ascii("JP")), false, false), (.avif, avif, false, false), (.gif, gif, false, false),
            (.jxl, jxl + box("jumb", ascii("c2pa")), false, false),
        ]
        for (number, file) in files.enumerated() {
            let details = ImageDetails.read(
                file.bytes, ImageHeader(format: file.format, encodedWidth: 8, encodedHeight: 8))
            #expect(details.hasGainMap == file.map && details.hasContentCredentials == file.credentials, "\(number)")
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
            _ = ImageDetails.read(
                Array(file[..<length]), ImageHeader(format: .avif, encodedWidth: 40, encodedHeight: 40))
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
        #expect(summary?.latitude == nil && summary?.longitude == nil)
        let nothing = camera.block([camera.short(0x0112, 1)])
        #expect(nothing.withUnsafeBytes { EXIFSummary(ByteReader($0)) } == nil)
    }
}
