import Glibc
import Testing

@testable import Variants

/// JPEG XL of 8 × 8 pixels of one colour, which libjxl 0.7 wrote. libvips writes no named colour spaces.
@Suite struct JXLColorTests {
    struct Sample: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let color: [Int]
        /// Primaries and transfer as PNG's cICP has them.
        let codes: [UInt8]
        let digits: String

        var file: [UInt8] { GrayAVIF.bytes(digits) }
    }

    static let hdr = [
        Sample(
            testDescription: "PQ", color: [136, 136, 136], codes: [9, 16],
            digits: "ff0a41041090478f381c00000000020802010054004b188b15c249415e20028010000000000000000000"),
        Sample(
            testDescription: "PQ, a colour", color: [200, 60, 60], codes: [9, 16],
            digits: "ff0a41041090478f381c0000000002080201005c004b188b15c249c2e505220018f28b700000000000000000"),
        Sample(
            testDescription: "PQ in Display P3", color: [200, 60, 60], codes: [12, 16],
            digits: "ff0a41041090498f381c0000000002080201005c004b188b15c249c2e505220018f28b700000000000000000"),
        Sample(
            testDescription: "HLG", color: [200, 60, 60], codes: [9, 18],
            digits: "ff0a410410906720d0630000000008080201005c004b188b15c249c2e505220018f28b700000000000000000"),
        Sample(
            testDescription: "PQ of grey", color: [136, 136, 136], codes: [1, 16],
            digits: "ff0a410410143de27000000000080802010044004b188b15c249414e080000000000000000"),
        Sample(
            testDescription: "PQ with loss", color: [136, 136, 136], codes: [9, 16],
            digits: "ff0a4140421e3d0200128800d400bfca28010050a132cab8c1cbb99e2f3f74584cdbb8"
                + "ced056db1696248a8c639374028724b112635c8061180000983930c3682a4900"),
        Sample(
            testDescription: "PQ in 16 bits", color: [136, 136, 136], codes: [9, 16],
            digits: "0000000c4a584c200d0a870a00000014667479706a786c20000000006a786c20000000096a786c6c0a00000033"
                + "6a786c63ff0a4104fc00e4d1230e07000000800802010058004b188b15428a02f10211008488000000000000000000"),
        Sample(
            testDescription: "PQ in floats", color: [136, 136, 136], codes: [9, 16],
            digits: "0000000c4a584c200d0a870a00000014667479706a786c20000000006a786c20000000096a786c6c0a00000039"
                + "6a786c63ff0a4104720079f488c301000000200802010070004b188b1542fa04f95f200280252222fc888834000000000000000000"
        ),
    ]

    /// The colour in the middle of what a JPEG XL becomes.
    private static func color(_ file: [UInt8], _ recipe: String = "") async throws -> [Int] {
        var job = try RenderSamples.job(file, recipe)
        job.limits.formats.insert(.jxl)
        let pixels = try await RenderFixture.renderer.pixels(job)
        let at = (pixels.height / 2 * pixels.width + pixels.width / 2) * 4
        return pixels.pixels[at..<at + 4].map(Int.init)
    }

    @Test(arguments: JXLColorTests.hdr) func `PQ and HLG become SDR as in a PNG with cICP`(sample: Sample) async throws
    {
        let chunk: (String, [UInt8]) = ("cICP", sample.codes + [0, 1])
        let png = try CodedColorSpaceTests.png(ColorTests.saved(ColorTests.patch(sample.color), "png"), [chunk])
        let expected = try await ColorTests.color(png)
        for recipe in ["", "thumbnail:4x4", "profile:keep"] {
            let found = try await Self.color(sample.file, recipe)
            #expect(ColorTests.isNear(found, expected, 1), "\(recipe): \(found), not \(expected)")
        }
        let title = sample.file.withUnsafeBytes { JXLHeader.details(ByteReader($0)).profileName }
        #expect(title?.contains(sample.codes[1] == 16 ? "PQ" : "HLG") == true)
    }

    @Test func `PQ is light of a display (BT.2100), dimmed by a half up to reference white`() async throws {
        let value = pow(136.0 / 255, 32.0 / 2523)
        let nits = 10_000 * pow((value - 3424.0 / 4096) / (2413.0 / 128 - 2392.0 / 128 * value), 16384.0 / 2610)
        let expected = CodedColorSpaceTests.encoded([nits / 203 / 2, nits / 203 / 2, nits / 203 / 2])
        #expect(nits < 203)
        let found = try await Self.color(Self.hdr[0].file)
        #expect(ColorTests.isNear(found, expected, 1), "\(found), not \(expected)")
    }

    /// Colours of (90, 47, 16) at an alpha of 100, where alpha is marked as associated.
    @Test(arguments: [
        ("RGB", [230, 120, 41, 100], "ff0a41c00028010808100064004b188b15c241035ebd800400d15eade3010000000000000000"),
        ("grey", [230, 230, 230, 100], "ff0a41c00088e246080810005c004b188b15c24142e1050e000400d3220000000000000000"),
        (
            "16 bits", [230, 120, 41, 100],
            "0000000c4a584c200d0a870a00000014667479706a786c20000000006a786c20000000096a786c6c0a00000033"
                + "6a786c63ff0a41f023f881120808100074004b188b15428206f0b5179000205adaabac0d7b923c0000000000000000"
        ),
    ]) func `colours are divided by alpha if they are multiplied by it`(
        name: String, expected: [Int], digits: String
    ) async throws {
        let found = try await Self.color(GrayAVIF.bytes(digits))
        #expect(ColorTests.isNear(found, expected, 1), "\(name): \(found), not \(expected)")
    }

    @Test func `damaged headers never trap`() {
        for sample in Self.hdr {
            for at in 0..<min(40, sample.file.count) * 8 {
                var file = sample.file
                file[at / 8] ^= 1 << UInt8(at % 8)
                file.withUnsafeBytes { _ = try? JXLHeader.read(ByteReader($0)) }
                Array(file[..<(at / 8)]).withUnsafeBytes { _ = try? JXLHeader.read(ByteReader($0)) }
            }
        }
    }
}
