import Glibc
import Testing

@testable import Variants

/// Patches of one colour in every kind of file, with the sRGB they must become, computed here and not by libvips.
@Suite struct ColorTests {
    // MARK: Files

    static let size = 16

    /// `pixel` in 8 bits, or in 16 as libvips' native numbers.
    static func patch(_ pixel: [Int], wide: Bool = false, interpretation: String = "srgb") throws -> Image {
        try VipsLibrary.load()
        var bytes: [UInt8] = []
        for _ in 0..<(size * size) {
            for value in pixel { bytes += wide ? [UInt8(value & 0xFF), UInt8(value >> 8)] : [UInt8(value)] }
        }
        return try Image(
            PixelStorage(bytes), width: size, height: size, bands: pixel.count, format: wide ? 2 : 0
        ).labeled(interpretation)
    }

    static func saved(_ image: Image, _ saver: String, _ profile: [UInt8]? = nil) throws -> [UInt8] {
        switch saver {
        case "png":
            return try KeptBlobs(profile: profile).inserted(
                intoPNG: image.saved(by: "pngsave_buffer", ["in": .image(image), "strip": true]))
        case "jpeg":
            return try KeptBlobs(profile: profile).inserted(
                intoJPEG: image.saved(by: "jpegsave_buffer", ["in": .image(image), "Q": 100, "strip": true]))
        case "webp":
            let file = try image.saved(by: "webpsave_buffer", ["in": .image(image), "lossless": true, "strip": true])
            let pixels = EncodablePixels(
                storage: PixelStorage(byteCount: 0), width: size, height: size, bands: image.bands)
            return KeptBlobs(profile: profile).wrapped(webP: file, pixels)
        case "avif":
            return try KeptBlobs(profile: profile).inserted(
                intoAVIF: image.saved(
                    by: "heifsave_buffer",
                    [
                        "in": .image(image), "compression": "av1", "lossless": true, "subsample-mode": "off",
                        "bitdepth": 8, "strip": true,
                    ]))
        default:
            let copy = try VipsCall("copy", ["in": .image(image)]).image()
            if let profile { copy.set("icc-profile-data", profile) }
            return try copy.saved(by: "tiffsave_buffer", ["in": .image(copy)])
        }
    }

    /// The colour in the middle of what a file becomes.
    static func color(_ file: [UInt8], _ recipe: String = "") async throws -> [Int] {
        let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(file, recipe))
        let at = (pixels.height / 2 * pixels.width + pixels.width / 2) * 4
        return pixels.pixels[at..<(at + 4)].map(Int.init)
    }

    static func isNear(_ found: [Int], _ expected: [Int], _ tolerance: Int) -> Bool {
        found.count >= expected.count && zip(found, expected).allSatisfy { abs($0 - $1) <= tolerance }
    }

    /// The profile of a sample.
    static func profile(of name: String) throws -> [UInt8] {
        try VipsLibrary.load()
        let bytes = try ProbeSampleTests.read("originals/" + name)
        return try bytes.withUnsafeBytes { try #require(Decoding.open($0, .jpeg).blob("icc-profile-data")) }
    }

    // MARK: Wide gamut

    /// A colour space by its primaries against D65 (to XYZ) and its curve.
    struct Space: Sendable {
        var sample: String
        var toXYZ: [[Double]]
        var linear: @Sendable (Double) -> Double

        /// Display P3 (SMPTE EG 432-1 primaries, sRGB's curve) and Adobe RGB (1998), as matrices of Lindbloom's tables.
        static let all = [
            Space(
                sample: "wide-gamut-p3.jpg",
                toXYZ: [[0.486571, 0.265668, 0.198217], [0.228975, 0.691739, 0.079287], [0, 0.045113, 1.043944]],
                linear: { SRGBCurve.linear($0) }),
            Space(
                sample: "wide-gamut-adobe.jpg",
                toXYZ: [
                    [0.576731, 0.185554, 0.188185], [0.297377, 0.627349, 0.075274], [0.027034, 0.070687, 0.991109],
                ],
                linear: { pow($0, 2.19921875) }),
        ]

        func sRGB(_ pixel: [Int], of most: Double) -> [Int] {
            let light = pixel.prefix(3).map { linear(Double($0) / most) }
            let xyz = toXYZ.map { row in zip(row, light).map(*).reduce(0, +) }
            let back = [
                [3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560],
                [0.0556434, -0.2040259, 1.0572252],
            ]
            return back.map { row in
                let value = zip(row, xyz).map(*).reduce(0, +)
                return Int((255 * SRGBCurve.encoded(min(1, max(0, value)))).rounded())
            }
        }
    }

    static let pixels = [
        [128, 128, 128], [200, 120, 90], [60, 140, 110], [90, 80, 160], [250, 250, 250], [20, 24, 22],
    ]

    @Test(arguments: ["png", "jpeg", "webp", "avif", "tiff"])
    func `wide gamut becomes the same sRGB out of every container`(container: String) async throws {
        for space in Space.all {
            let profile = try Self.profile(of: space.sample)
            for pixel in Self.pixels {
                let file = try Self.saved(Self.patch(pixel), container, profile)
                let expected = space.sRGB(pixel, of: 255)
                for recipe in ["", "thumbnail:8x8"] {
                    let found = try await Self.color(file, recipe)
                    #expect(Self.isNear(found, expected, 3), "\(space.sample) \(pixel): \(found), not \(expected)")
                }
                let kept = try await Self.color(file, "profile:keep")
                #expect(Self.isNear(kept, pixel, 2), "\(pixel) kept: \(kept)")
            }
        }
    }

    @Test(arguments: ["png", "tiff"])
    func `sixteen bits become eight, with and without profile and alpha`(container: String) async throws {
        for pixel in Self.pixels {
            let wide = pixel.map { $0 * 257 }
            let plain = try Self.saved(Self.patch(wide, wide: true, interpretation: "rgb16"), container)
            #expect(Self.isNear(try await Self.color(plain), pixel, 1))
            let soft = try Self.saved(Self.patch(wide + [0x8080], wide: true, interpretation: "rgb16"), container)
            #expect(Self.isNear(try await Self.color(soft), pixel + [128], 1))
            #expect(Self.isNear(try await Self.color(soft, "thumbnail:8x8"), pixel + [128], 2))
            let space = Space.all[0]
            let profiled = try Self.saved(
                Self.patch(wide, wide: true, interpretation: "rgb16"), container, Self.profile(of: space.sample))
            #expect(Self.isNear(try await Self.color(profiled), space.sRGB(pixel, of: 255), 3))
        }
    }

    // MARK: Grey

    @Test(arguments: ["png", "jpeg", "tiff"])
    func `grey becomes equal channels`(container: String) async throws {
        for value in [0, 17, 128, 200, 255] {
            let file = try Self.saved(Self.patch([value], interpretation: "b-w"), container)
            for recipe in ["", "thumbnail:8x8"] {
                #expect(Self.isNear(try await Self.color(file, recipe), [value, value, value, 255], 1))
            }
            if container == "jpeg" { continue }
            let soft = try Self.saved(Self.patch([value, 100], interpretation: "b-w"), container)
            let wide = try Self.saved(
                Self.patch([value * 257, 100 * 257], wide: true, interpretation: "grey16"), container)
            for file in [soft, wide] {
                #expect(Self.isNear(try await Self.color(file), [value, value, value, 100], 1))
                #expect(Self.isNear(try await Self.color(file, "thumbnail:8x8"), [value, value, value, 100], 2))
            }
        }
    }

    /// A grey profile of light that grows with the number, ICC.1:2001-04.
    static let linearGray: [UInt8] = {
        func number(_ value: Int, _ count: Int = 4) -> [UInt8] { HandmadeImages.big(value, count) }
        let ascii = HandmadeImages.ascii
        let curve = ascii("curv") + number(0) + number(0)
        let white = ascii("XYZ ") + number(0) + number(0xF6D6) + number(0x10000) + number(0xD32D)
        let tags: [(String, [UInt8])] = [("wtpt", white), ("kTRC", curve)]
        var (table, data, at): ([UInt8], [UInt8], Int) = (number(tags.count), [], 128 + 4 + tags.count * 12)
        for (name, body) in tags {
            table += ascii(name) + number(at) + number(body.count)
            data += body
            at += body.count
        }
        var header = number(at) + ascii("none") + number(0x0210_0000) + ascii("mntrGRAYXYZ ")
        header += [UInt8](repeating: 0, count: 12) + ascii("acsp") + [UInt8](repeating: 0, count: 28)
        header += number(0xF6D6) + number(0x10000) + number(0xD32D)
        return header + [UInt8](repeating: 0, count: 128 - header.count) + table + data
    }()

    @Test(arguments: ["png", "jpeg", "tiff"])
    func `a grey profile is followed`(container: String) async throws {
        for value in [20, 55, 128, 255] {
            let expected = Int((255 * SRGBCurve.encoded(Double(value) / 255)).rounded())
            let file = try Self.saved(Self.patch([value], interpretation: "b-w"), container, Self.linearGray)
            let found = try await Self.color(file)
            #expect(Self.isNear(found, [expected, expected, expected, 255], 2), "\(value): \(found)")
        }
    }

    // MARK: Profiles that do not fit

    @Test func `a profile that is broken or of another space is ignored, not a failure`() async throws {
        let p3 = try Self.profile(of: "wide-gamut-p3.jpg")
        let cmyk = try Self.profile(of: "cmyk-profile.jpg")
        let broken: [[UInt8]] = [
            Array(p3.prefix(p3.count / 2)), Array(p3.prefix(100)), Array(p3.prefix(131)), [1, 2, 3],
            [UInt8](repeating: 0, count: 600), cmyk, Self.linearGray,
        ]
        for (index, profile) in broken.enumerated() {
            for container in ["png", "jpeg", "webp", "tiff"] {
                let file = try Self.saved(Self.patch([200, 120, 90]), container, profile)
                for recipe in ["", "thumbnail:8x8"] {
                    let found = try await Self.color(file, recipe)
                    #expect(Self.isNear(found, [200, 120, 90, 255], 2), "\(container) with profile \(index): \(found)")
                }
            }
        }
        for profile in [p3, cmyk, Array(Self.linearGray.prefix(140))] {
            for container in ["png", "jpeg", "tiff"] {
                let file = try Self.saved(Self.patch([99], interpretation: "b-w"), container, profile)
                let found = try await Self.color(file)
                #expect(Self.isNear(found, [99, 99, 99, 255], 1), "\(container): \(found)")
            }
        }
    }

    // MARK: CMYK

    /// Inks, 255 for full, and bounds of what they look like in print: lowest and highest red, green and blue.
    static let inks: [(ink: [Int], low: [Int], high: [Int])] = [
        ([0, 0, 0, 0], [250, 250, 250], [255, 255, 255]),
        ([0, 255, 255, 0], [200, 0, 0], [255, 70, 70]),
        ([255, 0, 255, 0], [0, 120, 0], [60, 190, 110]),
        ([255, 255, 0, 0], [0, 0, 90], [90, 80, 180]),
        ([0, 0, 0, 255], [0, 0, 0], [60, 60, 60]),
        ([0, 0, 0, 128], [120, 120, 120], [175, 175, 175]),
    ]

    /// The file without its APP14 (Adobe) segment.
    static func withoutAdobe(_ jpeg: [UInt8]) -> [UInt8] {
        var at = 2
        while at + 4 < jpeg.count, jpeg[at] == 0xFF, jpeg[at + 1] != 0xDA {
            let length = 2 + Int(jpeg[at + 2]) << 8 + Int(jpeg[at + 3])
            if jpeg[at + 1] == 0xEE { return Array(jpeg[..<at] + jpeg[(at + length)...]) }
            at += length
        }
        return jpeg
    }

    @Test func `CMYK looks as printed, and JPEG stores it inverted even without Adobe's mark, as browsers take it`()
        async throws
    {
        for (ink, low, high) in Self.inks {
            func check(_ file: [UInt8], _ what: String) async throws {
                for recipe in ["", "thumbnail:8x8"] {
                    let found = try await Self.color(file, recipe)
                    let fits = (0..<3).allSatisfy { (low[$0]...high[$0]).contains(found[$0]) }
                    #expect(fits && found[3] == 255, "\(what) \(ink): \(found)")
                }
            }
            let adobe = try Self.saved(Self.patch(ink, interpretation: "cmyk"), "jpeg")
            #expect(adobe != Self.withoutAdobe(adobe))
            try await check(adobe, "inverted")
            try await check(Self.withoutAdobe(adobe), "without mark")
            try await check(Self.saved(Self.patch(ink, interpretation: "cmyk"), "tiff"), "TIFF")
        }
    }

    @Test func `a CMYK file with a profile of RGB or a broken one is taken as one without`() async throws {
        let cmyk = try Self.profile(of: "cmyk-profile.jpg")
        let wrong = [
            try Self.profile(of: "wide-gamut-p3.jpg"), Self.linearGray, Array(cmyk.prefix(cmyk.count / 2)), [9, 9, 9],
        ]
        for (ink, _, _) in Self.inks {
            let plain = try await Self.color(Self.saved(Self.patch(ink, interpretation: "cmyk"), "jpeg"))
            for profile in wrong {
                let file = try Self.saved(Self.patch(ink, interpretation: "cmyk"), "jpeg", profile)
                let found = try await Self.color(file)
                #expect(Self.isNear(found, plain, 2), "\(ink): \(found), not \(plain)")
            }
            let profiled = try Self.saved(Self.patch(ink, interpretation: "cmyk"), "jpeg", cmyk)
            #expect(try await Self.color(profiled).allSatisfy { (0...255).contains($0) })
        }
    }
}
