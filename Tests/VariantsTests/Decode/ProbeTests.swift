import Testing
import Variants

/// `ImageHeader.probe` over handmade files of every format, over the samples, and over damaged bytes.
@Suite struct ProbeTests {
    typealias Make = HandmadeImages

    struct Example: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var bytes: [UInt8]
        var header: ImageHeader
    }

    static let examples: [Example] = [
        Example(
            testDescription: "JPEG, EXIF, three scans", bytes: Make.all[0],
            header: ImageHeader(format: .jpeg, encodedWidth: 640, encodedHeight: 480, orientation: 6, scans: 3)),
        Example(
            testDescription: "JPEG with a profile in two parts",
            bytes: Make.jpeg(
                width: 2, height: 1,
                extra: Make.segment(0xE2, Make.ascii("ICC_PROFILE\0") + [1, 2] + [UInt8](repeating: 9, count: 100))
                    + Make.segment(0xE2, Make.ascii("ICC_PROFILE\0") + [2, 2] + [UInt8](repeating: 9, count: 20))),
            header: ImageHeader(format: .jpeg, encodedWidth: 2, encodedHeight: 1, profileBytes: 120)),
        Example(
            testDescription: "JPEG with an orientation out of range",
            bytes: Make.jpeg(width: 2, height: 1, extra: Make.segment(0xE1, Make.ascii("Exif\0\0") + Make.exif(9))),
            header: ImageHeader(format: .jpeg, encodedWidth: 2, encodedHeight: 1)),
        Example(
            testDescription: "JPEG behind white space", bytes: Make.ascii("\r\n \t") + Make.jpeg(width: 2, height: 1),
            header: ImageHeader(format: .jpeg, encodedWidth: 2, encodedHeight: 1)),
        Example(
            testDescription: "SVG", bytes: Make.ascii("<?xml version='1.0'?><!-- a --><svg xmlns='x'/>"),
            header: ImageHeader(format: .svg, encodedWidth: 300, encodedHeight: 150, hasAlpha: true)),
        Example(
            testDescription: "BMP", bytes: HandmadeBMP().file,
            header: ImageHeader(format: .bmp, encodedWidth: 5, encodedHeight: 3)),
        Example(
            testDescription: "PNG with alpha and EXIF", bytes: Make.all[1],
            header: ImageHeader(format: .png, encodedWidth: 31, encodedHeight: 17, hasAlpha: true, orientation: 3)),
        Example(
            testDescription: "PNG with a transparent colour",
            bytes: Make.png(width: 5, height: 6, color: 3, extra: Make.pngChunk("tRNS", [0])),
            header: ImageHeader(format: .png, encodedWidth: 5, encodedHeight: 6, hasAlpha: true, hasFewColors: true)),
        Example(
            testDescription: "PNG of 60000 × 60000", bytes: Make.png(width: 60000, height: 60000),
            header: ImageHeader(format: .png, encodedWidth: 60000, encodedHeight: 60000)),
        Example(
            testDescription: "animated WebP", bytes: Make.all[2],
            header: ImageHeader(
                format: .webp, encodedWidth: 9, encodedHeight: 8, pages: 2, hasAlpha: true, orientation: 8)),
        Example(
            testDescription: "lossy WebP", bytes: Make.all[3],
            header: ImageHeader(format: .webp, encodedWidth: 100, encodedHeight: 50)),
        Example(
            testDescription: "lossless WebP", bytes: Make.all[4],
            header: ImageHeader(format: .webp, encodedWidth: 100, encodedHeight: 50, hasAlpha: true)),
        Example(
            testDescription: "GIF with a later frame beyond its screen", bytes: Make.all[5],
            header: ImageHeader(
                format: .gif, encodedWidth: 10, encodedHeight: 10, pages: 2, hasAlpha: true, hasFewColors: true)),
        Example(
            testDescription: "GIF with a first frame beyond its screen",
            bytes: Make.gif(width: 10, height: 10, frames: [(5, 5, 20, 2), (0, 0, 40, 40)]),
            header: ImageHeader(
                format: .gif, encodedWidth: 25, encodedHeight: 10, pages: 2, hasAlpha: true, hasFewColors: true)),
        Example(
            testDescription: "TIFF with alpha and pages", bytes: Make.all[6],
            header: ImageHeader(
                format: .tiff, encodedWidth: 300, encodedHeight: 200, pages: 3, hasAlpha: true, orientation: 5)),
        Example(
            testDescription: "big-endian TIFF", bytes: Make.all[7],
            header: ImageHeader(format: .tiff, encodedWidth: 300, encodedHeight: 200)),
        Example(
            testDescription: "TIFF whose directories loop",
            bytes: Make.tiff(width: 3, height: 2, pages: 2, loop: 8),
            header: ImageHeader(format: .tiff, encodedWidth: 3, encodedHeight: 2, pages: 2)),
        Example(
            testDescription: "AVIF turned by a quarter, with alpha", bytes: Make.all[8],
            header: ImageHeader(format: .avif, encodedWidth: 300, encodedHeight: 400, hasAlpha: true, profileBytes: 12)),
        Example(
            testDescription: "HEIC with a smaller thumbnail",
            bytes: Make.heif(width: 4000, height: 3000, thumbnail: (320, 240)),
            header: ImageHeader(format: .heif, encodedWidth: 4000, encodedHeight: 3000)),
        Example(
            testDescription: "HEIC with a larger thumbnail",
            bytes: Make.heif(width: 40, height: 30, thumbnail: (320, 240)),
            header: ImageHeader(format: .heif, encodedWidth: 40, encodedHeight: 30)),
        Example(
            testDescription: "BigTIFF", bytes: Make.all[9],
            header: ImageHeader(
                format: .tiff, encodedWidth: 300, encodedHeight: 200, pages: 3, hasAlpha: true, orientation: 6)),
        Example(
            testDescription: "big-endian BigTIFF", bytes: Make.bigTIFF(width: 3, height: 2, bigEndian: true),
            header: ImageHeader(format: .tiff, encodedWidth: 3, encodedHeight: 2, hasAlpha: true, orientation: 6)),
        Example(
            testDescription: "HEIC", bytes: Make.heif(brand: "heic", width: 4000, height: 3000),
            header: ImageHeader(format: .heif, encodedWidth: 4000, encodedHeight: 3000)),
    ]

    @Test(arguments: [0, 1]) func `JPEG scans behind a length too small to be one are counted, as libjpeg reads them`(
        length: UInt8
    ) throws {
        let whole = HandmadeImages.jpeg(width: 8, height: 8, scans: 3)
        let first = try #require(whole.indices.first { whole[$0] == 0xFF && whole[$0 + 1] == 0xDA })
        let bytes = whole[..<first] + [0xFF, 0xFE, 0, length] + whole[first...]
        #expect(try ImageHeader.probe(Array(bytes)).scans == 3)
    }

    @Test(arguments: examples) func `reads the header`(_ example: Example) throws {
        var header = try ImageHeader.probe(example.bytes)
        // `RenderMemoryTests` and `TIFFPageTests` look at these.
        (header.heldBytes, header.furtherPages) = (0, [])
        #expect(header == example.header)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var bytes: [UInt8]
        var code: RenderError.Code
        var words: String
    }

    /// gzip data with a stray byte behind, 26 bytes: libvips' own sniffing of these never returns.
    static let gzip26: [UInt8] =
        [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 3, 0x4B, 0x4C, 0x4A, 6, 0, 0xC2, 0x41, 0x24, 0x35, 3, 0, 0, 0, 0, 0, 0x0A]

    static let refusals: [Refusal] = [
        Refusal(testDescription: "nothing", bytes: [], code: .notAnImage, words: "empty"),
        Refusal(testDescription: "gzip", bytes: gzip26, code: .notAnImage, words: "gzip"),
        Refusal(
            testDescription: "HTML", bytes: Make.ascii("\n <!DOCTYPE HTML><title>404</title><svg/>"),
            code: .notAnImage, words: "HTML"),
        Refusal(testDescription: "JSON", bytes: Make.ascii("{\"error\": 1}"), code: .notAnImage, words: "JSON"),
        Refusal(testDescription: "text", bytes: Make.ascii("no such file"), code: .notAnImage, words: "plain text"),
        Refusal(
            testDescription: "PPM", bytes: Make.ascii("P6\n2 1\n255\nabcdef"), code: .unsupportedFormat, words: "PPM"),
        Refusal(
            testDescription: "TGA", bytes: [0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 24, 0x20, 0x81, 1, 2, 3],
            code: .unsupportedFormat, words: "TGA"),
        Refusal(
            testDescription: "TGA by its footer",
            bytes: [UInt8](repeating: 7, count: 40) + Make.ascii("TRUEVISION-XFILE.") + [0], code: .unsupportedFormat,
            words: "TGA"),
        Refusal(testDescription: "PDF", bytes: Make.ascii("%PDF-1.7"), code: .notAnImage, words: "PDF"),
        Refusal(
            testDescription: "video", bytes: Make.box("ftyp", Make.ascii("isom") + [0, 0, 2, 0] + Make.ascii("mp42")),
            code: .notAnImage, words: "isom"),
        Refusal(
            testDescription: "SVG of no size", bytes: Make.ascii("<svg width='0'/>"), code: .undecodable, words: "SVG"),
        Refusal(testDescription: "JPEG XL", bytes: [0xFF, 0x0A, 0, 0], code: .undecodable, words: "JPEG XL"),
        Refusal(
            testDescription: "JPEG 2000", bytes: [0, 0, 0, 12] + Make.ascii("jP  \r\n") + [0x87, 0x0A],
            code: .undecodable, words: "JPEG 2000"),
        Refusal(
            testDescription: "JPEG cut before its frame", bytes: [0xFF, 0xD8, 0xFF, 0xE0, 0, 16],
            code: .undecodable, words: "JPEG"),
        Refusal(
            testDescription: "PNG without width", bytes: Make.png(width: 0, height: 4),
            code: .undecodable, words: "0 × 4"),
        Refusal(
            testDescription: "PNG without pixels", bytes: Make.png(width: 4, height: 4).dropLast(12 + 15) + [],
            code: .undecodable, words: "no pixels"),
        Refusal(
            testDescription: "PNG beyond any decoder", bytes: Make.png(width: 1 << 30, height: 1 << 30),
            code: .overLimit, words: "1073741824"),
        Refusal(
            testDescription: "AVIF of the largest numbers", bytes: Make.heif(width: 0xFFFF_FFFF, height: 0xFFFF_FFFF),
            code: .overLimit, words: "AVIF"),
        Refusal(
            testDescription: "GIF without a frame", bytes: Make.gif(width: 4, height: 4, frames: []),
            code: .undecodable, words: "no frame"),
    ]

    @Test(arguments: refusals) func `refuses, saying what was found`(_ refusal: Refusal) {
        let error = #expect(throws: RenderError.self) { try ImageHeader.probe(refusal.bytes) }
        #expect(error?.code == refusal.code)
        #expect(error?.message.contains(refusal.words) == true, "\(error?.message ?? "")")
    }

    @Test func `counting the scans of a JPEG stops above a thousand`() throws {
        let header = try ImageHeader.probe(Make.jpeg(width: 8, height: 8, scans: 5000))
        #expect(header.scans == 1001)
    }

    @Test func `every truncation of a handmade file gives a header or an error`() {
        for bytes in Make.all {
            for length in 0...bytes.count { _ = try? ImageHeader.probe(Array(bytes.prefix(length))) }
        }
    }

    @Test func `two thousand seeded mutations of each format give a header or an error`() {
        var random = SplitMix64(state: 20_260_101)
        for bytes in Make.all {
            for _ in 0..<2000 {
                var mutated = bytes
                for _ in 0...Int.random(in: 0..<6, using: &random) {
                    let index = Int.random(in: 0..<mutated.count, using: &random)
                    let extremes: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF]
                    mutated[index] =
                        Bool.random(using: &random)
                        ? UInt8.random(in: 0...255, using: &random) : extremes[Int.random(in: 0..<5, using: &random)]
                }
                _ = try? ImageHeader.probe(mutated)
            }
        }
    }
}

/// A small seeded generator (Steele, Lea and Flood, 2014), so that mutations repeat.
struct SplitMix64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }
}
