import Testing

@testable import Variants

/// ICC profiles with tables instead of primaries and curves. The tables here have two nodes along each side, so that
/// corners are exact.
@Suite struct ProfileTableTests {
    /// L*a*b* (D50) of sRGB's corners, by Lindbloom's calculator.
    private static let lab: [[Int]: [Double]] = [
        [0, 0, 0]: [0, 0, 0], [1, 1, 1]: [100, 0, 0], [1, 0, 0]: [54.29, 80.81, 69.89],
        [0, 1, 0]: [87.82, -79.27, 80.99], [0, 0, 1]: [29.57, 68.30, -112.03], [1, 1, 0]: [97.61, -15.75, 93.39],
        [0, 1, 1]: [90.67, -50.66, -14.96], [1, 0, 1]: [60.17, 93.55, -60.50],
    ]

    /// A profile with one table under each of `tags` (ICC.1:2022 §10.11, lut8Type), which shows a corner of the space as
    /// the corner of sRGB that `shown` says.
    static func profile(_ space: String, tags: [String], kind: String, _ shown: ([Int]) -> [Int]) -> [UInt8] {
        let big = HandmadeImages.big
        let ascii = HandmadeImages.ascii
        let channels = ["GRAY": 1, "RGB ": 3, "CMYK": 4][space] ?? 3
        let nodes = (0..<1 << channels).flatMap { node -> [UInt8] in
            let lab = Self.lab[shown((0..<channels).map { node >> (channels - 1 - $0) & 1 })] ?? [0, 0, 0]
            return [lab[0] * 2.55, lab[1] + 128, lab[2] + 128].map { UInt8($0.rounded()) }
        }
        let matrix = (0..<9).flatMap { big($0 % 4 == 0 ? 65536 : 0, 4) }
        let ramp = (0...255).map { UInt8($0) }
        var table = ascii("mft1") + big(0, 4) + [UInt8(channels), 3, 2, 0] + matrix
        for _ in 0..<channels { table += ramp }
        table += nodes
        for _ in 0..<3 { table += ramp }
        let point = big(0xF6D6, 4) + big(0x10000, 4) + big(0xD32D, 4)
        let white = ascii("XYZ ") + big(0, 4) + point
        let text = ascii("desc") + big(0, 4) + big(5, 4) + ascii("swap\0") + [UInt8](repeating: 0, count: 78)
        let entries = [("desc", text), ("wtpt", white)] + tags.map { ($0, table) }
        var (index, body) = (big(entries.count, 4), [UInt8]())
        for (name, data) in entries {
            index += ascii(name) + big(128 + 4 + 12 * entries.count + body.count, 4) + big(data.count, 4)
            body += data + [UInt8](repeating: 0, count: -data.count & 3)
        }
        let size = big(128 + index.count + body.count, 4)
        var header = size + ascii("lcms") + big(0x0240_0000, 4) + ascii(kind + space + "Lab ")
        header += [UInt8](repeating: 0, count: 12) + ascii("acsp") + [UInt8](repeating: 0, count: 28)
        header += point
        return header + [UInt8](repeating: 0, count: 128 - header.count) + index + body
    }

    /// The intents that have a table: AToB0 is the perceptual one, AToB1 the relative one.
    private static let tags = [["A2B0"], ["A2B1"], ["A2B0", "A2B1"]]

    @Test(arguments: ["png", "jpeg", "webp", "avif", "tiff"])
    func `a table of any intent is followed (ICC.1:2022 §9.2.1)`(container: String) async throws {
        for kind in ["mntr", "scnr"] {
            for tags in Self.tags {
                let profile = Self.profile("RGB ", tags: tags, kind: kind) { [$0[1], $0[0], $0[2]] }
                for (pixel, expected) in [
                    ([255, 0, 0], [0, 255, 0]), ([0, 255, 0], [255, 0, 0]), ([255, 0, 255], [0, 255, 255]),
                    ([255, 255, 255], [255, 255, 255]),
                ] {
                    let file = try ColorTests.saved(ColorTests.patch(pixel), container, profile)
                    for recipe in ["", "thumbnail:8x8"] {
                        let found = try await ColorTests.color(file, recipe)
                        #expect(
                            ColorTests.isNear(
                                found, expected + [255], container == "jpeg" || container == "avif" ? 12 : 8),
                            "\(kind) \(tags) \(pixel): \(found), not \(expected)")
                    }
                    let kept = try await ColorTests.color(file, "profile:keep")
                    #expect(ColorTests.isNear(kept, pixel, 2), "\(pixel) kept: \(kept)")
                }
            }
        }
    }

    @Test(arguments: [false, true]) func `so is one of sixteen bits with alpha`(hasAlpha: Bool) async throws {
        let profile = Self.profile("RGB ", tags: ["A2B0"], kind: "mntr") { [$0[1], $0[0], $0[2]] }
        let pixel = [65535, 0, 0] + (hasAlpha ? [0x8080] : [])
        let file = try ColorTests.saved(
            ColorTests.patch(pixel, wide: true, interpretation: "rgb16"), "png", profile)
        let found = try await ColorTests.color(file)
        #expect(ColorTests.isNear(found, [0, 255, 0, hasAlpha ? 128 : 255], 8), "\(found)")
    }

    @Test func `so are tables of grey and of inks`() async throws {
        for tags in Self.tags {
            let gray = Self.profile("GRAY", tags: tags, kind: "mntr") { [1 - $0[0], 1 - $0[0], 1 - $0[0]] }
            for (value, expected) in [(0, 255), (255, 0)] {
                let file = try ColorTests.saved(ColorTests.patch([value], interpretation: "b-w"), "png", gray)
                let found = try await ColorTests.color(file)
                #expect(
                    ColorTests.isNear(found, [expected, expected, expected, 255], 8), "\(tags) \(value): \(found)")
            }
            // Cyan and magenta change places, and black shows as nothing.
            let inks = Self.profile("CMYK", tags: tags, kind: "prtr") { [1 - $0[1], 1 - $0[0], 1 - $0[2]] }
            for (ink, expected) in [
                ([255, 0, 0, 0], [255, 0, 255]), ([0, 255, 0, 0], [0, 255, 255]), ([0, 0, 255, 255], [255, 255, 0]),
            ] {
                for container in ["jpeg", "tiff"] {
                    let file = try ColorTests.saved(ColorTests.patch(ink, interpretation: "cmyk"), container, inks)
                    let found = try await ColorTests.color(file)
                    #expect(ColorTests.isNear(found, expected + [255], 8), "\(tags) \(ink): \(found), not \(expected)")
                }
            }
        }
    }
}
