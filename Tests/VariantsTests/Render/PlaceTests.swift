import Testing

@testable import Variants

/// Positions in an original and in its variant agree.
@Suite struct PlaceTests {
    /// A blob in the middle of an original with edges that are not multiples of a decoder's squares.
    static let size = PixelSize(width: 1003, height: 807)

    static func original(_ format: ImageFormat) async throws -> [UInt8] {
        let png = try RenderFixture.png(
            RenderFixture.image(size.width, size.height) { x, y in
                let (dx, dy) = (Double(x) - 501, Double(y) - 403)
                let value = UInt8(max(0, 255 - (dx * dx + dy * dy) / 40))
                return [value, value, value]
            })
        if format == .png { return png }
        let job = RenderFixture.job(
            png, .png, size.width, size.height, try Recipe(""),
            ResolvedOutput(format: format, quality: 100))
        return try await RenderFixture.renderer.render(job).bytes
    }

    @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif, .tiff, .gif], RenderQuality.allCases)
    func `a blob stays where it is, at every size`(format: ImageFormat, quality: RenderQuality) async throws {
        let bytes = try await Self.original(format)
        for edge in [24, 37, 64, 100, 150, 233, 300, 480, 666, 1000] {
            let job = RenderFixture.job(
                bytes, format, Self.size.width, Self.size.height, try Recipe("thumbnail:\(edge):stretch"),
                quality: quality)
            let pixels = try await RenderFixture.renderer.pixels(job)
            var (sum, sumX, sumY) = (0.0, 0.0, 0.0)
            for y in 0..<pixels.height {
                for x in 0..<pixels.width {
                    let value = Double(pixels.pixels[(y * pixels.width + x) * 4])
                    guard value > 8 else { continue }
                    sum += value
                    sumX += value * (Double(x) + 0.5)
                    sumY += value * (Double(y) + 0.5)
                }
            }
            let place = (
                x: 501.5 * Double(pixels.width) / Double(Self.size.width),
                y: 403.5 * Double(pixels.height) / Double(Self.size.height)
            )
            #expect(abs(sumX / sum - place.x) <= 0.02, "\(edge) px, across")
            #expect(abs(sumY / sum - place.y) <= 0.02, "\(edge) px, down")
        }
    }

    /// 1,003 and 807 leave 3 and 7 beyond squares of 8, 3 beyond squares of 4, and 1 beyond squares of 2.
    @Test(arguments: RenderQuality.allCases, [100, 200, 480])
    func `the last rows and columns of a JPEG are there`(quality: RenderQuality, edge: Int) async throws {
        let (width, height) = (Self.size.width, Self.size.height)
        let png = try RenderFixture.png(
            RenderFixture.image(width, height) { x, y in
                x < width - 3 && y < height - 3 ? [255, 255, 255] : [0, 0, 0]
            })
        let whole = RenderFixture.job(
            png, .png, width, height, try Recipe(""), ResolvedOutput(format: .jpeg, quality: 100))
        let bytes = try await RenderFixture.renderer.render(whole).bytes
        let recipe = try Recipe("thumbnail:\(edge):stretch:light=gamma")
        let pixels = try await RenderFixture.renderer.pixels(
            RenderFixture.job(bytes, .jpeg, width, height, recipe, quality: quality))
        // The mean of what one output pixel covers; Lanczos and JPEG move it by some levels.
        for (at, length) in [
            ((pixels.height / 2) * pixels.width + pixels.width - 1, width),
            ((pixels.height - 1) * pixels.width + pixels.width / 2, height),
        ] {
            let covered = Double(length) / Double(length == width ? pixels.width : pixels.height)
            let mean = 255 * max(0, 1 - 3 / covered)
            let found = Double(pixels.pixels[at * 4])
            #expect(abs(found - mean) <= 40, "\(length) pixels long: \(found), not \(mean)")
        }
    }
}
