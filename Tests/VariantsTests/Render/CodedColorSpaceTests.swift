import Glibc
import TestSupport
import Testing

@testable import Variants

/// Colour spaces named by code points or numbers instead of an ICC profile. Expected values are the standards'
/// arithmetic, computed here.
@Suite struct CodedColorSpaceTests {
    // MARK: Files

    static func number(_ value: Int, _ count: Int = 4) -> [UInt8] { HandmadeImages.big(value, count) }

    /// A PNG with chunks before its pixels.
    static func png(_ file: [UInt8], _ chunks: [(String, [UInt8])]) -> [UInt8] {
        let added = chunks.flatMap { HostileFiles.chunk($0.0, $0.1) }
        return Array(file[..<33]) + added + file[33...]
    }

    static func gamma(_ value: Int) -> (String, [UInt8]) { ("gAMA", number(value)) }
    static func codes(_ codes: UInt8...) -> (String, [UInt8]) { ("cICP", codes) }
    static func primaries(_ points: [Double]) -> (String, [UInt8]) {
        ("cHRM", ([0.3127, 0.3290] + points).flatMap { number(Int(($0 * 100_000).rounded())) })
    }

    static let adobe = [0.64, 0.33, 0.21, 0.71, 0.15, 0.06]
    static let srgb: (String, [UInt8]) = ("sRGB", [0])

    /// An AVIF or HEIC with these code points in its `nclx`. libheif 1.15 writes AVIF of 8 and 12 bits only.
    static func heif(
        _ image: Image, _ primaries: Int, _ transfer: Int, compression: String = "av1", bits: Int = 8
    ) throws -> [UInt8] {
        var file = try image.saved(
            by: "heifsave_buffer",
            [
                "in": .image(image), "compression": .string(compression), "Q": 100,
                "subsample-mode": "off", "bitdepth": .int(bits), "strip": true,
            ])
        let nclx = [UInt8]("colrnclx".utf8)
        if compression == "hevc" {
            let codes = [UInt8]("nclx".utf8) + number(primaries, 2) + number(transfer, 2) + number(6, 2) + [0x80]
            return try HEIFAlphaTests.rewritten(file, color: [("colr", codes)])
        }
        let at = try #require((0..<file.count - 12).first { file[$0..<$0 + 8].elementsEqual(nclx) })
        file.replaceSubrange(at + 8..<at + 12, with: number(primaries, 2) + number(transfer, 2))
        return file
    }

    // MARK: Arithmetic

    /// 8-bit sRGB of light in BT.709's primaries.
    static func encoded(_ light: [Double]) -> [Int] {
        light.map { Int((255 * SRGBCurve.encoded(min(1, max(0, $0)))).rounded()) }
    }

    /// Light of Display P3, BT.2020 and Adobe RGB as light of sRGB (matrices of CSS Color 4 §18, multiplied out).
    static let fromP3 = [
        [1.2249401763, -0.2249401763, 0], [-0.0420569547, 1.0420569547, 0],
        [-0.0196375546, -0.0786360456, 1.0982736002],
    ]
    static let fromBT2020 = [
        [1.6604910021, -0.5876411388, -0.0728498633], [-0.1245504745, 1.1328998971, -0.0083494226],
        [-0.0181507634, -0.1005788980, 1.1187296614],
    ]
    static let fromAdobe = [
        [1.3983557440, -0.3983557440, 0], [0, 1, 0], [0, -0.0429289893, 1.0429289893],
    ]

    static func converted(_ pixel: [Int], _ matrix: [[Double]], _ linear: (Double) -> Double) -> [Int] {
        let light = pixel.map { linear(Double($0) / 255) }
        return encoded(matrix.map { zip($0, light).map(*).reduce(0, +) })
    }

    /// Gray light in nits with a peak of 1000 nits after SMPTE ST 2094-50, as light of sRGB. Above reference white
    /// these are points of Chromium 156.
    static let toned: [(nits: Double, light: Double)] = [
        (0, 0), (10, 0.0246), (100, 0.2463), (203, 0.5), (300, 0.6514), (500, 0.807), (1000, 1),
    ]

    /// Light by the inverse of the curve of SMPTE 240M (H.273 table 3).
    static func smpte240(_ value: Int) -> Double {
        let value = Double(value) / 255
        return value < 0.0912 ? value / 4 : pow((value + 0.1115) / 1.1115, 1 / 0.45)
    }

    static func pq(_ nits: Double) -> Double {
        let power = pow(nits / 10_000, 2610.0 / 16384)
        return pow((3424.0 / 4096 + 2413.0 / 128 * power) / (1 + 2392.0 / 128 * power), 2523.0 / 32)
    }

    // MARK: PNG

    @Test func `gAMA and cHRM of PNG are followed, where sRGB's do not say it better (W3C PNG §11.3.2)`() async throws {
        for value in [17, 34, 68, 136, 204, 255] {
            let plain = try ColorTests.saved(ColorTests.patch([value, value, value]), "png")
            let gray = try ColorTests.saved(ColorTests.patch([value], interpretation: "b-w"), "png")
            let linear = Self.encoded([Double(value) / 255])[0]
            let old = Self.encoded([pow(Double(value) / 255, 1.8)])[0]
            let cases: [([(String, [UInt8])], Int)] = [
                ([Self.gamma(100_000)], linear), ([Self.gamma(55_556)], old), ([Self.gamma(45_455)], value),
                ([Self.srgb, Self.gamma(100_000)], value), ([Self.gamma(100_000), Self.gamma(45_455)], linear),
                ([Self.gamma(0)], value), ([Self.primaries(Self.adobe)], value),
                ([Self.gamma(100_000), Self.primaries([0.3, 0.3, 0.3, 0.3, 0.3, 0.3])], value),
                ([Self.gamma(100_000), Self.primaries([0, 0, 0, 0, 0, 0])], value),
                ([Self.gamma(100_000), ("cHRM", [1, 2, 3])], value), ([("gAMA", [1])], value),
            ]
            for (chunks, expected) in cases {
                for (file, recipe) in [(plain, ""), (plain, "thumbnail:8x8"), (gray, ""), (gray, "thumbnail:8x8")] {
                    let found = try await ColorTests.color(Self.png(file, chunks), recipe)
                    let wanted = [expected, expected, expected, 255]
                    #expect(
                        ColorTests.isNear(found, wanted, 1), "\(value) \(chunks) \(recipe): \(found), not \(wanted)")
                }
            }
        }
        let file = try ColorTests.saved(ColorTests.patch([200, 50, 50]), "png")
        let wide = Self.png(file, [Self.gamma(45_455), Self.primaries(Self.adobe)])
        let expected = Self.converted([200, 50, 50], Self.fromAdobe) { pow($0, 2.2) }
        #expect(ColorTests.isNear(try await ColorTests.color(wide), expected + [255], 2))
        #expect(ColorTests.isNear(try await ColorTests.color(wide, "profile:keep"), [200, 50, 50, 255], 0))
    }

    @Test func `light is mixed as light where a PNG stores it so`() async throws {
        // Columns of two greys: the mean of their light, whatever the picture is shrunk to.
        let columns = try RenderFixture.image(64, 8) { x, _ in x % 2 == 0 ? [20, 20, 20] : [220, 220, 220] }
        let file = Self.png(try ColorTests.saved(columns, "png"), [Self.gamma(100_000)])
        let found = try await ColorTests.color(file, "thumbnail:8x1:light=linear")
        let mean = 120.0 / 255
        #expect(ColorTests.isNear(found, Self.encoded([mean, mean, mean]), 3), "\(found)")
    }

    @Test func `a transparent picture keeps its alpha, in 8 and 16 bits`() async throws {
        let chunks = [
            [Self.gamma(100_000)], [Self.gamma(55_556)], [Self.codes(12, 13, 0, 1)], [Self.codes(9, 16, 0, 1)],
        ]
        for chunk in chunks {
            let narrow = try ColorTests.saved(ColorTests.patch([200, 50, 50, 100]), "png")
            let wide = try ColorTests.saved(
                ColorTests.patch([51400, 12850, 12850, 25700], wide: true, interpretation: "rgb16"), "png")
            let (first, second) = (
                try await ColorTests.color(Self.png(narrow, chunk)),
                try await ColorTests.color(Self.png(wide, chunk))
            )
            #expect(first[3] == 100 && second[3] == 100 && ColorTests.isNear(first, second, 1), "\(first), \(second)")
        }
    }

    @Test func `cICP comes before iCCP, and a usable iCCP before all else`() async throws {
        let p3 = try ColorTests.profile(of: "wide-gamut-p3.jpg")
        let pixel = [200, 50, 50]
        let profiled = try ColorTests.saved(ColorTests.patch(pixel), "png", p3)
        let half = try ColorTests.saved(ColorTests.patch(pixel), "png", Array(p3.prefix(p3.count / 2)))
        let inP3 = Self.converted(pixel, Self.fromP3, SRGBCurve.linear)
        let inBT2020 = Self.converted(pixel, Self.fromBT2020, SRGBCurve.linear)
        let linear = Self.encoded(pixel.map { Double($0) / 255 })
        let cases: [([UInt8], [(String, [UInt8])], [Int])] = [
            (profiled, [Self.gamma(100_000)], inP3),
            (profiled, [Self.codes(9, 13, 0, 1)], inBT2020), (profiled, [Self.codes(1, 13, 0, 1)], pixel),
            (profiled, [Self.codes(1, 8, 0, 1)], linear),
            // Reserved, unspecified, a matrix, a narrow range, too short.
            (profiled, [Self.codes(3, 13, 0, 1)], inP3), (profiled, [Self.codes(2, 2, 0, 1)], inP3),
            (profiled, [Self.codes(9, 13, 1, 1)], inP3), (profiled, [Self.codes(9, 13, 0, 0)], inP3),
            (profiled, [Self.codes(9, 13, 0)], inP3),
            // A profile that is cut short counts as none.
            (half, [Self.gamma(100_000)], linear), (half, [Self.srgb, Self.gamma(100_000)], pixel), (half, [], pixel),
        ]
        for (file, chunks, expected) in cases {
            let found = try await ColorTests.color(Self.png(file, chunks))
            #expect(ColorTests.isNear(found, expected + [255], 2), "\(chunks): \(found), not \(expected)")
        }
    }

    @Test func `half a profile is no profile, and is not kept`() throws {
        let whole = CodedColorSpace(primaries: 12, transfer: 13, "")?.profile(isGray: false) ?? []
        func isUsable(_ profile: [UInt8]) -> Bool {
            profile.withUnsafeBytes { ICCProfile.intent(ByteReader($0), for: "RGB ") } != nil
        }
        #expect(isUsable(whole) && isUsable(whole + [0, 0]))
        for count in 0..<whole.count { #expect(!isUsable(Array(whole.prefix(count)))) }
        // Without one of its tags; with a table for the other direction in its place.
        for name in ["A2B9", "B2A0"] {
            var changed = whole
            let at = try #require((0..<whole.count).first { whole[$0...].starts(with: "gXYZ".utf8) })
            changed.replaceSubrange(at..<at + 4, with: name.utf8)
            #expect(!isUsable(changed))
        }
    }

    // MARK: AVIF, HEIF

    @Test(arguments: ["av1", "hevc"])
    func `code points of AVIF and HEIF are followed, in 8 bits and more`(compression: String) async throws {
        let pixel = [200, 50, 50]
        let image = try ColorTests.patch(pixel)
        let wide = try ColorTests.patch(pixel.map { $0 * 257 }, wide: true, interpretation: "rgb16")
        let cases: [(Int, Int, [Int])] = [
            (1, 13, pixel), (1, 1, pixel), (2, 2, pixel),
            (12, 13, Self.converted(pixel, Self.fromP3, SRGBCurve.linear)),
            (9, 13, Self.converted(pixel, Self.fromBT2020, SRGBCurve.linear)),
            (9, 14, Self.converted(pixel, Self.fromBT2020, SRGBCurve.linear)),
            (1, 8, Self.encoded(pixel.map { Double($0) / 255 })),
            (1, 4, Self.encoded(pixel.map { pow(Double($0) / 255, 2.2) })),
            (1, 7, Self.encoded(pixel.map { Self.smpte240($0) })),
            (250, 13, pixel), (12, 250, pixel),
        ]
        for (primaries, transfer, expected) in cases {
            for (image, bits) in [(image, 8), (wide, compression == "av1" ? 12 : 10)] {
                let file = try Self.heif(image, primaries, transfer, compression: compression, bits: bits)
                for recipe in ["", "thumbnail:8x8"] {
                    let found = try await ColorTests.color(file, recipe)
                    #expect(
                        ColorTests.isNear(found, expected + [255], 4),
                        "\(primaries)/\(transfer), \(bits) bits, \(recipe): \(found), not \(expected)")
                }
            }
        }
    }

    @Test(
        arguments: [(0, 0, 0), (1, 0.2126, 0.0722), (5, 0.299, 0.114), (6, 0.299, 0.114), (9, 0.2627, 0.0593)],
        [true, false])
    func `the matrix and the range of an AVIF are followed (H.273 §8.3)`(
        matrix: (code: Int, red: Double, blue: Double), isFull: Bool
    ) async throws {
        func coded(_ value: Double) -> Double { Double(Int(min(255, max(0, value)) + 0.5)) }
        for pixel in [
            [128, 128, 128], [240, 240, 240], [200, 60, 60], [60, 200, 60], [60, 60, 200], [220, 180, 40],
        ] {
            var file = try ColorTests.saved(ColorTests.patch(pixel), "avif")
            let at = try #require((0..<file.count - 15).first { file[$0...].starts(with: "colrnclx".utf8) })
            let codes = Self.number(1, 2) + Self.number(13, 2) + Self.number(matrix.code, 2) + [isFull ? 0x80 : 0]
            file.replaceSubrange(at + 8..<at + 15, with: codes)
            // The saver stores Y, Cb and Cr by BT.601 in full range, whatever the box says now.
            let (red, green, blue) = (Double(pixel[0]), Double(pixel[1]), Double(pixel[2]))
            let luma = 0.299 * red + 0.587 * green + 0.114 * blue
            let cb = coded((blue - luma) / 1.772 + 128) - 128
            let cr = coded((red - luma) / 1.402 + 128) - 128
            let y = isFull ? coded(luma) / 255 : (coded(luma) - 16) / 219
            let chroma = isFull ? 255.0 : 224
            let r = y + 2 * (1 - matrix.red) * cr / chroma
            let b = y + 2 * (1 - matrix.blue) * cb / chroma
            let g = (y - matrix.red * r - matrix.blue * b) / (1 - matrix.red - matrix.blue)
            // Matrix 0: green, blue and red are stored unchanged.
            let stored = [coded(coded(cr + 128)), coded(luma), coded(cb + 128)].map {
                isFull ? $0 / 255 : ($0 - 16) / 219
            }
            let expected = (matrix.code == 0 ? stored : [r, g, b]).map { Int(coded($0 * 255)) }
            let found = try await ColorTests.color(file)
            #expect(
                ColorTests.isNear(found, expected, 1),
                "matrix \(matrix.code), full range \(isFull): \(found), not \(expected)")
        }
    }

    @Test(arguments: [8, 12]) func `YCgCo of an AVIF is followed, in 8 bits and more (H.273 §8.3)`(bits: Int)
        async throws
    {
        for pixel in [[128, 128, 128], [200, 60, 60], [60, 200, 60], [60, 60, 200]] {
            let image = try ColorTests.patch(
                pixel.map { bits == 8 ? $0 : $0 * 257 }, wide: bits > 8, interpretation: bits > 8 ? "rgb16" : "srgb")
            var file = try Self.heif(image, 1, 13, bits: bits)
            let at = try #require((0..<file.count - 15).first { file[$0...].starts(with: "colrnclx".utf8) })
            file.replaceSubrange(at + 12..<at + 15, with: Self.number(8, 2) + [0x80])
            // The saver stores Y, Cb and Cr by BT.601, whatever the box says now.
            let (red, green, blue) = (Double(pixel[0]), Double(pixel[1]), Double(pixel[2]))
            let luma = 0.299 * red + 0.587 * green + 0.114 * blue
            let (cg, co) = ((blue - luma) / 1.772, (red - luma) / 1.402)
            let expected = [luma - cg + co, luma + cg, luma - cg - co].map { Int(min(255, max(0, $0)).rounded()) }
            let found = try await ColorTests.color(file)
            #expect(ColorTests.isNear(found, expected, 3), "\(pixel), \(bits) bits: \(found), not \(expected)")
        }
    }

    @Test(arguments: [8, 10], [true, false])
    func `the limited range of a grey AVIF is expanded (H.273 §8.3)`(bits: Int, isFull: Bool) async throws {
        var file = GrayAVIF.file(bits: bits)
        let at = try #require((0..<file.count - 15).first { file[$0...].starts(with: "colrnclx".utf8) })
        if isFull { file[at + 14] = 0x80 }
        let pixels = try await RenderFixture.renderer.pixels(RenderSamples.job(file, ""))
        for (index, value) in [0.0, 64, 128, 255].enumerated() {
            let expected = Int((isFull ? 16 + value * 219 / 255 : value).rounded())
            let start = (8 * pixels.width + index * 4 + 1) * 4
            let found = pixels.pixels[start..<start + 4].map(Int.init)
            #expect(ColorTests.isNear(found, [expected, expected, expected, 255], 1), "\(found), not \(expected)")
        }
    }

    @Test func `primaries of old television and film keep white`() async throws {
        for primaries in [4, 7, 8] {
            let white = try await ColorTests.color(Self.heif(ColorTests.patch([255, 255, 255]), primaries, 13))
            #expect(ColorTests.isNear(white, [255, 255, 255, 255], 2), "\(primaries): \(white)")
            let red = try await ColorTests.color(Self.heif(ColorTests.patch([200, 50, 50]), primaries, 13))
            #expect(!ColorTests.isNear(red, [200, 50, 50], 1), "\(primaries): \(red)")
        }
    }

    @Test func `a kept profile is written for colours that had only a name`() async throws {
        let pixel = [200, 50, 50]
        let file = try Self.heif(ColorTests.patch(pixel), 12, 13)
        for output in ["png", "avif:100"] {
            let job = try RenderSamples.job(file, "profile:keep,\(output)")
            let variant = try await RenderFixture.renderer.render(job)
            let profile = try variant.bytes.withUnsafeBytes { bytes in
                try #require(Decoding.open(bytes, variant.format).blob("icc-profile-data"))
            }
            #expect(
                profile.withUnsafeBytes { ProfileName.read(ByteReader($0)) }
                    == "Display P3 primaries, sRGB curve (nclx)")
            #expect(ColorTests.isNear(try await ColorTests.color(variant.bytes, "profile:keep"), pixel, 4))
            let expected = Self.converted(pixel, Self.fromP3, SRGBCurve.linear)
            #expect(ColorTests.isNear(try await ColorTests.color(variant.bytes), expected, 4))
        }
    }

    // MARK: HDR

    @Test func `PQ becomes SDR by ST 2094-50, from 10, 12 and 16 bits`() async throws {
        for (nits, light) in Self.toned {
            let value = Self.pq(nits)
            let code = Int((value * 65535).rounded())
            let image = try ColorTests.patch([code, code, code], wide: true, interpretation: "rgb16")
            let expected = Self.encoded([light, light, light])
            let png = Self.png(try ColorTests.saved(image, "png"), [Self.codes(9, 16, 0, 1)])
            let heic = try Self.heif(image, 9, 16, compression: "hevc", bits: 10)
            for (file, tolerance) in [(png, 1), (try Self.heif(image, 9, 16, bits: 12), 2), (heic, 2)] {
                for recipe in ["", "thumbnail:8x8", "profile:keep"] {
                    let found = try await ColorTests.color(file, recipe)
                    #expect(ColorTests.isNear(found, expected, tolerance), "\(nits) nits: \(found), not \(expected)")
                }
            }
        }
        // A brighter peak dims what lies above reference white more: points of Chromium 156.
        let light: (String, [UInt8]) = ("cLLI", Self.number(40_000_000) + Self.number(1_000_000))
        for (nits, expected) in [(100.0, 136), (203, 187), (500, 212), (1000, 226), (4000, 255)] {
            let code = Int((Self.pq(nits) * 65535).rounded())
            let image = try ColorTests.patch([code, code, code], wide: true, interpretation: "rgb16")
            let file = Self.png(try ColorTests.saved(image, "png"), [Self.codes(9, 16, 0, 1), light])
            let found = try await ColorTests.color(file)
            #expect(ColorTests.isNear(found, [expected, expected, expected], 2), "\(nits) nits: \(found)")
        }
    }

    @Test func `HLG passes through the reference display of 1000 nits (BT.2100)`() async throws {
        for value in [0.1, 0.25, 0.5, 0.75, 1.0] {
            let scene = value <= 0.5 ? value * value / 3 : (exp((value - 0.55991073) / 0.17883277) + 0.28466892) / 12
            let shown = pow(scene, 1.2) * 1000 / 203
            let code = Int((value * 65535).rounded())
            let image = try ColorTests.patch([code, code, code], wide: true, interpretation: "rgb16")
            let file = Self.png(try ColorTests.saved(image, "png"), [Self.codes(9, 18, 0, 1)])
            let found = try await ColorTests.color(file)
            let expected = value == 1 ? [255, 255, 255] : Self.encoded([shown / 2, shown / 2, shown / 2])
            #expect(ColorTests.isNear(found, expected, 1), "\(value): \(found), not \(expected)")
        }
    }

    @Test func `colours of HDR keep their hue, since all three are dimmed alike`() async throws {
        // Red at reference white beside half of it: one factor of ½, then out of BT.709 unchanged.
        let codes = [203.0, 101.5, 101.5].map { Int((Self.pq($0) * 65535).rounded()) }
        let image = try ColorTests.patch(codes, wide: true, interpretation: "rgb16")
        let file = Self.png(try ColorTests.saved(image, "png"), [Self.codes(1, 16, 0, 1)])
        let found = try await ColorTests.color(file)
        #expect(ColorTests.isNear(found, Self.encoded([0.5, 0.25, 0.25]), 1), "\(found)")
    }

    @Test func `plain sRGB pays nothing, whatever says that it is sRGB`() throws {
        let patch = try ColorTests.patch([1, 2, 3])
        let png = try ColorTests.saved(patch, "png")
        for chunks in [[], [Self.srgb], [Self.gamma(45_455)], [Self.codes(1, 13, 0, 1)]] {
            let file = Self.png(png, chunks)
            try file.withUnsafeBytes { bytes in
                let image = try Decoding.open(bytes, ImageHeader.probe(bytes))
                #expect(!image.has("icc-profile-data") && image.format == 0)
            }
        }
    }

    @Test(arguments: 0..<4)
    func `damaged boxes and chunks never trap`(seed: Int) throws {
        let image = try ColorTests.patch([200, 50, 50, 100])
        let p3 = try ColorTests.profile(of: "wide-gamut-p3.jpg")
        let chunks = [
            Self.codes(9, 16, 0, 1), Self.gamma(100_000), Self.primaries(Self.adobe), ("cLLI", Self.number(7)),
        ]
        let files = [
            Self.png(try ColorTests.saved(image, "png"), Array(chunks[(seed % 2)...])), p3,
            try HEIFAlphaTests.rewritten(Self.heif(image, 9, 16), color: [("irot", [1])], isPremultiplied: true),
        ]
        var random = SystemRandomNumberGenerator()
        func read(_ bytes: [UInt8]) {
            bytes.withUnsafeBytes { buffer in
                let file = ByteReader(buffer)
                let colors = [PNGDecoder.color(file, hasProfile: false), HEIFHeader.color(file)]
                for case let color? in colors {
                    _ = (
                        color.title, color.isFarFromSRGB, color.profile(isGray: false), color.profile(isGray: true)
                    )
                    _ = CodedColorSpace.conversion(from: color.primaries, to: CodedColorSpace.bt2020)
                    for light in [0.0, 0.5, 1, 60] {
                        _ = ToneMap(peak: color.peak / 203).gain(color.curve.light(light))
                    }
                }
                _ = (
                    HEIFHeader.file(file), HEIFHeader.file(file, with: .alpha), HEIFHeader.Alpha(file)?.canBeEnlarged,
                    PNGDecoder.details(file)
                )
                _ = (HEIFHeader.details(file), ICCProfile.intent(file, for: "RGB "))
            }
        }
        for file in files {
            for count in stride(from: 0, to: min(file.count, 1500), by: 3) { read(Array(file.prefix(count))) }
            for _ in 0..<400 {
                var changed = file
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    let at = Int.random(in: 0..<min(file.count, 900), using: &random)
                    changed[at] = [0, 1, 0x7F, 0x80, 0xFF, .random(in: 0...255)].randomElement() ?? 0
                }
                read(changed)
            }
        }
    }
}
