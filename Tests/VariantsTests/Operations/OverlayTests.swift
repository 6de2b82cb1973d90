import Testing

@testable import Variants

@Suite struct OverlayTests {
    /// Source over, in doubles.
    private func laid(
        _ overlay: PixelBuffer, over picture: PixelBuffer, x left: Int, y top: Int, opacity: Double
    ) -> [StepFixture.Values] {
        var result = picture.values
        for y in 0..<picture.height {
            for x in 0..<picture.width {
                let (ox, oy) = (x - left, y - top)
                guard ox >= 0, oy >= 0, ox < overlay.width, oy < overlay.height else { continue }
                let source = overlay[ox, oy]
                let below = picture[x, y]
                let share = source[3] / 255 * opacity
                let rest = below[3] / 255 * (1 - share)
                guard share + rest > 0 else { continue }
                var mixed = (source * share + below * rest) / (share + rest)
                mixed[3] = 255 * (share + rest)
                result[y * picture.width + x] = mixed
            }
        }
        return result
    }

    private static let places: [(String, Int, Int)] = [
        ("", 7, 6), (":gravity=north", 7, 0), (":gravity=north-east", 14, 0), (":gravity=east", 14, 6),
        (":gravity=south-east", 14, 12), (":gravity=south", 7, 12), (":gravity=south-west", 0, 12),
        (":gravity=west", 0, 6), (":gravity=north-west", 0, 0),
    ]

    @Test(arguments: [false, true], [1, 0.35])
    func `lies at its place over what is there`(alpha: Bool, opacity: Double) async throws {
        let picture = StepFixture.noise(20, 19, alpha: alpha, seed: 21)
        let logo = StepFixture.noise(6, 7, alpha: true, seed: 22)
        for (place, x, y) in Self.places {
            let result = try await StepFixture.render(
                picture, "overlay:logo\(place)" + (opacity == 1 ? "" : ":opacity=\(opacity)"),
                masks: ["overlay:logo": StepFixture.png(logo)])
            let worst = StepFixture.worst(result, laid(logo, over: picture, x: x, y: y, opacity: opacity))
            #expect(worst <= StepFixture.rounding, "\(place): \(worst)")
        }
    }

    @Test func `what reaches beyond the picture is cut off on the side away from its place`() async throws {
        let picture = StepFixture.noise(8, 30)
        let logo = StepFixture.noise(20, 10, alpha: true, seed: 4)
        for (gravity, x, y) in [("centre", -6, 10), ("north-west", 0, 0), ("south-east", -12, 20)] {
            let result = try await StepFixture.render(
                picture, "overlay:logo:gravity=\(gravity)", masks: ["overlay:logo": StepFixture.png(logo)])
            #expect(
                StepFixture.worst(result, laid(logo, over: picture, x: x, y: y, opacity: 1)) <= StepFixture.rounding)
        }
    }

    @Test func `scale is of the overlay's own size, and an opaque picture stays opaque`() async throws {
        let picture = StepFixture.picture(40, 40) { _, _ in [0, 0, 0] }
        let logo = StepFixture.picture(10, 4) { _, _ in [255, 255, 255] }
        let result = try await StepFixture.render(
            picture, "overlay:logo:gravity=north-west:scale=2.5", masks: ["overlay:logo": StepFixture.png(logo)])
        for y in 0..<40 {
            for x in 0..<40 {
                #expect(result[x, y] == (x < 25 && y < 10 ? .init(repeating: 255) : .init(0, 0, 0, 255)))
            }
        }
    }

    @Test func `what is wrong with an overlay says so by name`() async throws {
        let picture = StepFixture.noise(8, 8)
        for masks in [[:], ["overlay:logo": [UInt8]("no picture".utf8)], ["logo": try StepFixture.png(picture)]] {
            #expect(try await StepFixture.failure(picture, "overlay:logo") { $0.masks = masks } == .maskUnavailable)
        }
        let logo = try StepFixture.png(StepFixture.noise(30, 30))
        let tooMuch = try await StepFixture.failure(picture, "overlay:logo:scale=100") { job in
            job.masks = ["overlay:logo": logo]
            job.limits.pixels = 100_000
        }
        #expect(tooMuch == .maskUnavailable)
    }
}
