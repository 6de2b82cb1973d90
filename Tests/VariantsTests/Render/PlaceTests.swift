import Testing

@testable import Variants

/// What lies somewhere in an original lies there in a variant.
@Suite struct PlaceTests {
    /// A blob in the middle of an original whose edges are no multiple of what decoders average.
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

    @Test(arguments: [ImageFormat.jpeg, .png, .webp], RenderQuality.allCases)
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
}
