import Foundation
import Testing

@testable import Variants

@Suite struct RotateTests {
    /// Smooth, and different everywhere; x and y count from the middle of the first pixel.
    private func value(_ x: Double, _ y: Double) -> [Double] {
        [40 + 2 * x + y, 200 - x - 1.5 * y, 120 + 60 * sin(x / 9) * cos(y / 11)]
    }

    private func smooth(_ width: Int, _ height: Int) -> PixelBuffer {
        StepFixture.picture(width, height) { x, y in
            value(Double(x), Double(y)).map { UInt8(min(255, max(0, $0.rounded()))) }
        }
    }

    /// Where a point of the result lies in the source, both counted in pixels' middles.
    private func origin(
        _ x: Double, _ y: Double, _ result: PixelBuffer, _ source: PixelBuffer, _ degrees: Double
    ) -> (x: Double, y: Double) {
        let (s, c) = (sin(degrees * .pi / 180), cos(degrees * .pi / 180))
        let (dx, dy) = (x - Double(result.width - 1) / 2, y - Double(result.height - 1) / 2)
        // Clockwise on a screen with y growing downward: the inverse turns back.
        return (
            c * dx + s * dy + Double(source.width - 1) / 2, -s * dx + c * dy + Double(source.height - 1) / 2
        )
    }

    @Test(arguments: [7, 30, 45, 111.5, 180.25, 300, 359.5], ["", "background:0a14c8,", "background:0a14c880,"])
    func `other angles turn about the centre`(degrees: Double, background: String) async throws {
        let source = smooth(57, 41)
        let result = try await StepFixture.render(source, "\(background)rotate:\(degrees)")
        let (s, c) = (abs(sin(degrees * .pi / 180)), abs(cos(degrees * .pi / 180)))
        #expect(result.width == Int((57 * c + 41 * s - 1e-6).rounded(.up)))
        #expect(result.height == Int((57 * s + 41 * c - 1e-6).rounded(.up)))
        let around = background.isEmpty ? 0.0 : background.contains("80") ? 128 : 255
        var (inside, outside, edge) = (0.0, 0.0, 0.0)
        for y in 0..<result.height {
            for x in 0..<result.width {
                let pixel = result[x, y]
                let at = origin(Double(x), Double(y), result, source, degrees)
                // How far inside the picture, counted from its edge half a pixel beyond the last middles.
                let depth = min(at.x + 0.5, 56.5 - at.x, at.y + 0.5, 40.5 - at.y)
                if depth >= 1 {
                    let expected = value(at.x, at.y)
                    for band in 0..<3 { inside = max(inside, abs(pixel[band] - min(255, max(0, expected[band])))) }
                    inside = max(inside, 255 - pixel[3])
                } else if depth <= -1 {
                    outside = max(outside, abs(pixel[3] - around))
                    if around > 0 {
                        outside = max(outside, abs(pixel[0] - 10), abs(pixel[1] - 20), abs(pixel[2] - 200))
                    }
                } else {
                    var covered = 0.0
                    for part in 0..<256 {
                        let sub = origin(
                            Double(x) + (Double(part % 16) + 0.5) / 16 - 0.5,
                            Double(y) + (Double(part / 16) + 0.5) / 16 - 0.5, result, source, degrees)
                        let isIn = sub.x >= -0.5 && sub.x <= 56.5 && sub.y >= -0.5 && sub.y <= 40.5
                        covered += isIn ? 1.0 / 256 : 0
                    }
                    edge = max(edge, abs(pixel[3] - (covered * 255 + (1 - covered) * around)))
                }
            }
        }
        #expect(inside <= 2.5, "inside \(inside)")
        #expect(outside <= 1, "outside \(outside)")
        #expect(edge <= 26, "edges \(edge)")
    }

    @Test func `quarter turns move pixels and change none`() async throws {
        let source = StepFixture.noise(13, 7, alpha: true)
        #expect(try await StepFixture.render(source, "rotate:0") == source)
        #expect(try await StepFixture.render(source, "rotate:360") == source)
        let quarter = StepFixture.picture(7, 13) { x, y in source[y, 6 - x].bytes }
        #expect(try await StepFixture.render(source, "rotate:90") == quarter)
        #expect(try await StepFixture.render(source, "rotate:180,rotate:270") == quarter)
    }

    @Test(arguments: [0.01, 89.99, 45]) func `a single pixel and a single row turn too`(degrees: Double) async throws {
        let pixel = StepFixture.picture(1, 1) { _, _ in [9, 99, 199] }
        let turned = try await StepFixture.render(pixel, "rotate:\(degrees)")
        #expect(turned.width == 2 && turned.height == 2)
        for value in turned.values where value[3] >= 1 { #expect(abs(value[1] - 99) <= 1) }
        let row = try await StepFixture.render(
            StepFixture.picture(40, 1) { _, _ in [1, 2, 3] }, "background:ffffff,rotate:\(degrees)")
        #expect(row.values.allSatisfy { $0[3] == 255 })
    }

    @Test func `a canvas beyond the limit is refused before pixels are computed`() async throws {
        let picture = StepFixture.noise(90, 90)
        #expect(try await StepFixture.failure(picture, "rotate:45") { $0.limits.outputEdge = 127 } == .overLimit)
        #expect(try await StepFixture.failure(picture, "rotate:45") { $0.limits.outputEdge = 128 } == nil)
    }
}

extension StepFixture.Values {
    var bytes: [UInt8] { (0..<4).map { UInt8(self[$0]) } }
}
