import Glibc
import Testing

@testable import Variants

/// Samples that libvips misreads, in every layout: strips or tiles, side by side or in planes.
@Suite struct TIFFLayoutTests {
    struct Layout: Sendable, CustomTestStringConvertible {
        var isTiled = false
        var isApart = false

        var testDescription: String { (isApart ? "planes" : "pixels") + (isTiled ? " in tiles" : " in strips") }

        static let all = [false, true].flatMap { tiled in
            [false, true].map { Layout(isTiled: tiled, isApart: $0) }
        }
    }

    static let width = 20
    static let height = 18

    /// A picture with the samples `pixel(x)` in column x, as numbers of `bits` bits.
    static func file(
        _ layout: Layout, photometric: Int, bits: Int = 8, kind: Int = 1, entries: [Int: [Int]] = [:],
        fractions: [Int: [Int]] = [:], _ pixel: (Int) -> [Int]
    ) -> [UInt8] {
        var tiff = HandmadeTIFF(fractions: fractions)
        let samples = pixel(0).count
        let edge = 16
        let across = layout.isTiled ? stride(from: 0, to: width, by: edge).map { $0..<$0 + edge } : [0..<width]
        // Strips have 7 rows, and the last one fewer.
        let down = stride(from: 0, to: height, by: layout.isTiled ? edge : 7).map {
            $0..<(layout.isTiled ? $0 + edge : min(height, $0 + 7))
        }
        var (data, offsets, counts): ([UInt8], [Int], [Int]) = ([], [], [])
        for plane in layout.isApart ? Array(0..<samples) : [-1] {
            for rows in down {
                for columns in across {
                    offsets.append(tiff.headBytes + data.count)
                    for _ in rows {
                        for x in columns {
                            let all = x < width ? pixel(x) : Array(repeating: 0, count: samples)
                            data += (plane < 0 ? all : [all[plane]]).flatMap { tiff.number($0, bits / 8) }
                        }
                    }
                    counts.append(tiff.headBytes + data.count - offsets[offsets.count - 1])
                }
            }
        }
        tiff.entries = [
            256: [width], 257: [height], 258: Array(repeating: bits, count: samples), 259: [1], 262: [photometric],
            277: [samples], 284: [layout.isApart ? 2 : 1], 339: Array(repeating: kind, count: samples),
        ]
        let places =
            layout.isTiled
            ? [322: [edge], 323: [edge], 324: offsets, 325: counts]
            : [
                273: offsets, 278: [7], 279: counts,
            ]
        tiff.entries.merge(places) { $1 }
        tiff.entries.merge(entries) { $1 }
        return tiff.file(data)
    }

    /// The pixels of one row, all rows being alike.
    static func row(_ file: [UInt8]) async throws -> [[Int]] {
        let picture = try await RenderSamples.decoded(file)
        #expect(picture.width == width && picture.height == height)
        let rows = (0..<height).map { Array(picture.pixels[$0 * width * 4..<($0 + 1) * width * 4]) }
        #expect(rows.allSatisfy { $0 == rows[0] })
        return (0..<width).map { x in rows[0][x * 4..<x * 4 + 4].map(Int.init) }
    }

    // MARK: Alpha

    struct Samples: Sendable {
        var bits: Int
        var kind: Int

        /// A sample for a value from 0 to 1.
        func sample(_ value: Double) -> Int {
            if kind == 3 { return Int(Float(value).bitPattern) }
            let steps = Double(1 << bits - 1)
            return Int((value * steps).rounded()) - (kind == 2 ? 1 << (bits - 1) : 0)
        }
    }

    @Test(
        arguments: Layout.all,
        [(8, 1), (8, 2), (16, 1), (16, 2), (32, 1), (32, 2), (32, 3)].map { Samples(bits: $0.0, kind: $0.1) })
    func `colours are divided by alpha if they are multiplied by it (TIFF 6.0 §18)`(
        layout: Layout, samples: Samples
    ) async throws {
        let color = [230.0, 120, 40]
        for photometric in [0, 1, 2] {
            for kind in [1, 2] {
                let file = Self.file(
                    layout, photometric: photometric, bits: samples.bits, kind: samples.kind, entries: [338: [kind]]
                ) { x in
                    let alpha = Double(100 + 8 * x) / 255
                    let values = (photometric == 2 ? color : [color[1]]).map { value in
                        let light = samples.kind == 3 ? SRGBCurve.linear(value / 255) : value / 255
                        let stored = light * (kind == 1 ? alpha : 1)
                        return photometric == 0 ? 1 - stored : stored
                    }
                    return (values + [alpha]).map(samples.sample)
                }
                let expected = photometric == 2 ? [230, 120, 40] : [120, 120, 120]
                for (x, found) in try await Self.row(file).enumerated() {
                    let fits = ColorTests.isNear(found, expected + [min(255, 100 + 8 * x)], kind == 1 ? 2 : 1)
                    #expect(fits, "\(photometric), \(kind): \(found) at \(x)")
                }
            }
        }
    }

    @Test(arguments: Layout.all, [8, 16]) func `so are inks`(layout: Layout, bits: Int) async throws {
        let inks = [10.0, 60, 120, 20]
        let samples = Samples(bits: bits, kind: 1)
        func row(_ kind: Int) async throws -> [[Int]] {
            let file = Self.file(layout, photometric: 5, bits: bits, entries: [338: [kind]]) { x in
                let alpha = Double(100 + 8 * x) / 255
                return (inks.map { $0 / 255 * (kind == 1 ? alpha : 1) } + [alpha]).map(samples.sample)
            }
            return try await Self.row(file)
        }
        for (found, expected) in zip(try await row(1), try await row(2)) {
            #expect(ColorTests.isNear(found, expected, bits == 8 ? 4 : 2), "\(found), not \(expected)")
        }
    }

    @Test(arguments: Layout.all) func `alpha is the sample that says so`(layout: Layout) async throws {
        let file = Self.file(layout, photometric: 2, entries: [338: [0, 1]]) { _ in [115, 60, 20, 9, 128] }
        let found = try await Self.row(file)[3]
        #expect(ColorTests.isNear(found, [229, 120, 40, 128], 1), "\(found)")
    }

    // MARK: YCbCr

    @Test(arguments: Layout.all, [8, 16])
    func `YCbCr becomes RGB by its coefficients and range (TIFF 6.0 §20, §21)`(layout: Layout, bits: Int) async throws {
        let colors = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [0, 0, 0], [200, 100, 50]]
        let most = Double(1 << bits - 1)
        let half = Double(1 << (bits - 1))
        let lumas: [[Double]?] = [nil, [0.2126, 0.7152, 0.0722]]
        for (luma, isNarrow) in [(lumas[0], false), (lumas[1], false), (lumas[1], true)] {
            let weights = luma ?? [0.299, 0.587, 0.114]
            func stored(_ color: [Int]) -> [Int] {
                let rgb = color.map { Double($0) / 255 }
                let y = zip(weights, rgb).reduce(0) { $0 + $1.0 * $1.1 }
                let (cb, cr) = ((rgb[2] - y) / (2 - 2 * weights[2]), (rgb[0] - y) / (2 - 2 * weights[0]))
                // H.273's narrow range: 219 and 224 steps of 255, from 16.
                let unit = Double(1 << (bits - 8))
                let values =
                    isNarrow
                    ? [16 * unit + y * 219 * unit, half + cb * 224 * unit, half + cr * 224 * unit]
                    : [y * most, half + cb * most, half + cr * most]
                return values.map { Int(min(most, max(0, $0)).rounded()) }
            }
            var fractions: [Int: [Int]] = [:]
            if let luma { fractions[529] = luma.map { Int($0 * 10_000) } }
            if isNarrow {
                let unit = 10_000 << (bits - 8)
                fractions[532] = [16, 235, 128, 240, 128, 240].map { $0 * unit }
            }
            for alpha in [[], [100]] {
                let file = Self.file(
                    layout, photometric: 6, bits: bits,
                    entries: [530: [1, 1], 338: alpha.isEmpty ? [0] : [2]].filter { $0.key == 530 || !alpha.isEmpty },
                    fractions: fractions
                ) { x in stored(colors[x % 6]) + alpha.map { $0 << (bits - 8) | (bits > 8 ? $0 : 0) } }
                #expect(try ImageHeader.probe(file).hasAlpha == !alpha.isEmpty)
                for (x, found) in try await Self.row(file).enumerated() {
                    let expected = colors[x % 6] + (alpha.isEmpty ? [255] : [100])
                    #expect(ColorTests.isNear(found, expected, bits == 8 ? 3 : 2), "\(found), not \(expected)")
                }
            }
        }
    }

    @Test(arguments: [[2, 2], [2, 1], []]) func `subsampled YCbCr is refused by name`(steps: [Int]) async throws {
        let file = Self.file(Layout(), photometric: 6, entries: steps.isEmpty ? [:] : [530: steps]) { _ in [9, 9, 9] }
        let error = await #expect(throws: RenderError.self) { try await RenderSamples.decoded(file) }
        #expect(error?.code == .undecodable && error?.message.contains("subsampled YCbCr") == true)
    }

    // MARK: L*a*b*

    @Test(arguments: Layout.all, [8, 16])
    func `L*a*b* becomes RGB, with the signs of CIE and the offsets of ICC (TIFF 6.0 §23)`(
        layout: Layout, bits: Int
    ) async throws {
        let colors = [[53.0, 40, 30], [80, -30, 20], [40, 10, -40], [0, 0, 0], [100, 0, 0], [54, 0, 0]]
        let unit = Double(1 << (bits - 8))
        for photometric in [8, 9] {
            let lightest = bits == 8 ? 255.0 : photometric == 8 ? 65535 : 65280
            for alpha in [[], [100]] {
                let file = Self.file(
                    layout, photometric: photometric, bits: bits, entries: alpha.isEmpty ? [:] : [338: [2]]
                ) { x in
                    let lab = colors[x % 6]
                    let differences = lab[1...].map { value in
                        let number = Int((value * unit).rounded())
                        return photometric == 8 ? number & (1 << bits - 1) : number + 1 << (bits - 1)
                    }
                    return [Int((lab[0] / 100 * lightest).rounded())] + differences
                        + alpha.map { $0 << (bits - 8) | (bits > 8 ? $0 : 0) }
                }
                for (x, found) in try await Self.row(file).enumerated() {
                    let expected = Self.sRGB(colors[x % 6]) + (alpha.isEmpty ? [255] : [100])
                    #expect(ColorTests.isNear(found, expected, 2), "\(photometric): \(found), not \(expected)")
                }
            }
        }
    }

    /// The definition of CIE 1976, with D65 for white.
    private static func sRGB(_ lab: [Double]) -> [Int] {
        let y = (lab[0] + 16) / 116
        let roots: [Double] = [y + lab[1] / 500, y, y - lab[2] / 200]
        let white: [Double] = [0.9505, 1, 1.0888]
        let xyz = (0..<3).map { (at: Int) -> Double in
            let root = roots[at]
            let share = root > 6.0 / 29 ? root * root * root : (root - 4.0 / 29) * 108 / 841
            return white[at] * share
        }
        let matrix = [
            [3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560],
            [0.0556434, -0.2040259, 1.0572252],
        ]
        return CodedColorSpaceTests.encoded(matrix.map { zip($0, xyz).map(*).reduce(0, +) })
    }

    @Test func `the colours of a fax are refused by name`() async throws {
        let file = Self.file(Layout(), photometric: 10) { _ in [9, 9, 9] }
        let error = await #expect(throws: RenderError.self) { try await RenderSamples.decoded(file) }
        #expect(error?.code == .undecodable && error?.message.contains("ITU L*a*b*") == true)
    }

    @Test(arguments: Layout.all) func `damaged directories never trap`(layout: Layout) async throws {
        let file = Self.file(layout, photometric: 6, entries: [338: [1], 530: [1, 1]], fractions: [529: [1, 2, 3]]) {
            [$0, 9, 9, 200]
        }
        let start = Int(file[4]) | Int(file[5]) << 8
        for at in stride(from: start, to: file.count, by: 3) {
            for value: UInt8 in [0, 0xFF] {
                var changed = file
                changed[at] = value
                // Whatever the file is now, it is decoded or refused.
                guard let job = try? RenderSamples.job(changed, "thumbnail:4,png") else { continue }
                _ = try? await RenderFixture.renderer.render(job)
            }
        }
    }
}
