import Testing

@testable import Variants

@Suite struct RenderTests {
    @Test func `a JPEG becomes a thumbnail JPEG of the exact size`() async throws {
        let bytes = try RenderFixture.jpeg(RenderFixture.gradientImage(1201, 801))
        for quality in RenderQuality.allCases {
            let job = RenderFixture.job(
                bytes, .jpeg, 1201, 801, try Recipe("thumbnail:300"), ResolvedOutput(format: .jpeg),
                quality: quality)
            let variant = try await RenderFixture.renderer.render(job)
            #expect(variant.width == 300 && variant.height == 200 && !variant.hasAlpha)
            #expect(variant.bytes.starts(with: [0xFF, 0xD8, 0xFF]))
            let pixels = try await RenderFixture.renderer.pixels(job)
            #expect(pixels.width == 300 && pixels.height == 200)
        }
    }

    static let sizes = [(1, 1), (1, 97), (89, 1), (61, 101), (7, 3)]

    @Test(arguments: sizes, Thumbnail.Mode.allCases)
    func `output sizes follow the rules of each mode`(size: (Int, Int), mode: Thumbnail.Mode) async throws {
        let bytes = try RenderFixture.png(RenderFixture.gradientImage(size.0, size.1))
        for (width, height) in [(1, 1), (5, 17), (40, 40), (200, 150)] {
            for enlarges in [false, true] {
                let job = RenderFixture.job(
                    bytes, .png, size.0, size.1,
                    try Recipe("thumbnail:\(width)x\(height):\(mode.rawValue)\(enlarges ? ":up" : "")"),
                    quality: .balanced)
                let variant = try await RenderFixture.renderer.render(job)
                let expected = Self.expected(size, (width, height), mode, enlarges)
                #expect(variant.width == expected.0 && variant.height == expected.1)
            }
        }
    }

    /// The rules of the recipe grammar, in floating point.
    static func expected(
        _ source: (Int, Int), _ box: (Int, Int), _ mode: Thumbnail.Mode, _ enlarges: Bool
    ) -> (Int, Int) {
        let (w, h) = (Double(source.0), Double(source.1))
        let (boxW, boxH) = (Double(box.0), Double(box.1))
        func edge(_ value: Double) -> Int { max(1, Int((value + 0.5 + 1e-9).rounded(.down))) }
        switch mode {
        case .fit:
            let s = enlarges ? min(boxW / w, boxH / h) : min(boxW / w, boxH / h, 1)
            return (edge(w * s), edge(h * s))
        case .fill:
            let s = enlarges ? 1 : min(w / boxW, h / boxH, 1)
            return (edge(boxW * s), edge(boxH * s))
        case .pad: return box
        case .stretch: return enlarges ? box : (min(box.0, source.0), min(box.1, source.1))
        }
    }

    @Test(arguments: 1...8) func `all eight orientations give the same picture`(orientation: Int) async throws {
        let (width, height) = (64, 40)
        // Stored pixel (x, y) for each orientation of the same upright picture (Exif 2.32, 4.6.4 A).
        let stored = try RenderFixture.image(orientation >= 5 ? height : width, orientation >= 5 ? width : height) {
            x, y in
            let (a, b) = OrientationTests.upright(x, y, orientation, width, height)
            return RenderFixture.gradient(a, b, width, height)
        }
        var job = RenderFixture.job(
            try RenderFixture.png(stored), .png, stored.width, stored.height, RenderFixture.recipe())
        job.header.orientation = orientation
        let pixels = try await RenderFixture.renderer.pixels(job)
        let upright = (0..<(width * height)).flatMap { index -> [UInt8] in
            RenderFixture.gradient(index % width, index / width, width, height) + [255]
        }
        #expect(pixels == PixelBuffer(width: width, height: height, pixels: upright))
        job.recipe = try Recipe("thumbnail:32x")
        let thumbnail = try await RenderFixture.renderer.pixels(job)
        #expect(thumbnail.width == 32 && thumbnail.height == 20)
    }

    @Test(arguments: [(20, 20, [10.0]), (31, 17, [0, 4.5, 12, 3]), (40, 25, [100, 5, 0, 30]), (9, 9, [2.25])])
    func `rounded corners cover what supersampling finds`(width: Int, height: Int, radii: [Double]) {
        let four = radii.count == 1 ? [Double](repeating: radii[0], count: 4) : radii
        let shape = RoundedRectangle(width: width, height: height, radii: four.map { .pixels($0) })
        check(shape, width, height)
        check(RoundedRectangle(ellipse: width, height: height), width, height)
    }

    private func check(_ shape: RoundedRectangle, _ width: Int, _ height: Int) {
        var worst = 0.0
        for y in 0..<height {
            let row = shape.coverage(row: y)
            for x in 0..<width {
                // Convex: a pixel with its four vertices inside is covered whole.
                let isWhole = [(0, 0), (1, 0), (0, 1), (1, 1)].allSatisfy {
                    isInside(shape.corners, Double(x + $0.0), Double(y + $0.1), Double(width), Double(height))
                }
                if isWhole {
                    #expect(row[x] >= 254)
                    continue
                }
                var inside = 0
                for sy in 0..<64 {
                    for sx in 0..<64 {
                        let px = Double(x) + (Double(sx) + 0.5) / 64
                        let py = Double(y) + (Double(sy) + 0.5) / 64
                        inside += isInside(shape.corners, px, py, Double(width), Double(height)) ? 1 : 0
                    }
                }
                worst = max(worst, abs(Double(row[x]) - Double(inside) / 4096 * 255))
            }
        }
        #expect(worst <= 2)
    }

    private func isInside(
        _ corners: [RoundedRectangle.Corner], _ x: Double, _ y: Double, _ width: Double, _ height: Double
    ) -> Bool {
        for (index, corner) in corners.enumerated() {
            let u = corner.rx - (index == 1 || index == 2 ? width - x : x)
            let v = corner.ry - (index >= 2 ? height - y : y)
            if u > 0, v > 0, (u / corner.rx) * (u / corner.rx) + (v / corner.ry) * (v / corner.ry) > 1 { return false }
        }
        return true
    }

    @Test func `a circle of a WebP output keeps its alpha and a JPEG is flattened onto white`() async throws {
        let bytes = try RenderFixture.png(RenderFixture.image(50, 50) { _, _ in [10, 20, 30] })
        var job = RenderFixture.job(bytes, .png, 50, 50, try Recipe("circle"), ResolvedOutput(format: .webp))
        let webp = try await RenderFixture.renderer.render(job)
        #expect(webp.hasAlpha && webp.bytes.starts(with: "RIFF".utf8))
        job.output = ResolvedOutput(format: .jpeg, quality: 100)
        let jpeg = try await RenderFixture.renderer.render(job)
        #expect(!jpeg.hasAlpha)
        let back = try await RenderFixture.renderer.pixels(
            RenderFixture.job(jpeg.bytes, .jpeg, 50, 50, RenderFixture.recipe()))
        #expect(back.pixels[0] > 245)
    }

    @Test func `transparent pixels lend no colour when resizing`() async throws {
        let bytes = try RenderFixture.png(
            RenderFixture.image(40, 40, bands: 4) { x, _ in x % 20 < 10 ? [255, 0, 0, 255] : [0, 0, 0, 0] })
        for quality in [RenderQuality.fast, .balanced] {
            let pixels = try await RenderFixture.renderer.pixels(
                RenderFixture.job(
                    bytes, .png, 40, 40, try Recipe("thumbnail:7"),
                    quality: quality))
            for at in stride(from: 0, to: pixels.pixels.count, by: 4) where pixels.pixels[at + 3] > 8 {
                #expect(pixels.pixels[at] >= 250 && pixels.pixels[at + 1] <= 4)
            }
        }
    }

    @Test func `a named mask multiplies alpha by its luminance`() async throws {
        let bytes = try RenderFixture.png(RenderFixture.image(8, 8) { _, _ in [1, 2, 3] })
        let mask = try RenderFixture.png(RenderFixture.image(8, 8, bands: 1) { x, _ in [x < 4 ? 0 : 255] })
        var job = RenderFixture.job(bytes, .png, 8, 8, try Recipe("mask:half"))
        job.masks = ["half": mask]
        let pixels = try await RenderFixture.renderer.pixels(job)
        #expect(pixels.pixels[3] == 0 && pixels.pixels[7 * 4 + 3] == 255)
        job.masks = [:]
        await #expect(throws: RenderError.self) { try await RenderFixture.renderer.pixels(job) }
    }
}
