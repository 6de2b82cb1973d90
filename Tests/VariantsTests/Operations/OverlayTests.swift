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

    /// The offset as written, the place, and where the left and top edges of 6 × 7 pixels on 20 × 19 then are.
    private static let offsets: [(String, String, Int, Int)] = [
        ("2x3", "", 9, 9), ("-2x-3", "", 5, 3), ("2x3", ":gravity=north", 9, 3), ("2x3", ":gravity=north-east", 12, 3),
        ("2x3", ":gravity=east", 12, 9), ("2x3", ":gravity=south-east", 12, 9), ("2x3", ":gravity=south", 9, 9),
        ("2x3", ":gravity=south-west", 2, 9), ("2x3", ":gravity=west", 2, 9), ("2x3", ":gravity=north-west", 2, 3),
        ("-2x-3", ":gravity=south-east", 16, 15), ("-8x0", ":gravity=north-west", -8, 0),
        ("-4x9", ":gravity=south-west", -4, 3), ("2", ":gravity=south-east", 12, 10), ("2", ":gravity=south", 7, 10),
        // Shares are of the smaller edge, 19.
        ("10pctx25pct", ":gravity=north-west", 2, 5), ("10%", ":gravity=east", 12, 6),
    ]

    @Test(arguments: offsets)
    func `an offset moves it inwards, and what reaches beyond is cut off`(
        offset: String, place: String, x: Int, y: Int
    ) async throws {
        let picture = StepFixture.noise(20, 19, seed: 21)
        let logo = StepFixture.noise(6, 7, alpha: true, seed: 22)
        let result = try await StepFixture.render(
            picture, "overlay:logo\(place):offset=\(offset)", masks: ["overlay:logo": StepFixture.png(logo)])
        #expect(StepFixture.worst(result, laid(logo, over: picture, x: x, y: y, opacity: 1)) <= StepFixture.rounding)
    }

    /// Columns and rows of a white overlay on a black picture; nil without white.
    private func white(
        _ recipe: String, on size: (Int, Int), logo: (Int, Int) = (40, 10)
    ) async throws -> [ClosedRange<Int>]? {
        let result = try await StepFixture.render(
            StepFixture.picture(size.0, size.1) { _, _ in [0, 0, 0] }, recipe,
            masks: ["overlay:logo": StepFixture.png(StepFixture.picture(logo.0, logo.1) { _, _ in [255, 255, 255] })])
        let columns = (0..<size.0).filter { x in (0..<size.1).contains { result[x, $0][0] > 127 } }
        let rows = (0..<size.1).filter { y in (0..<size.0).contains { result[$0, y][0] > 127 } }
        guard let left = columns.first, let right = columns.last, let top = rows.first, let bottom = rows.last else {
            return nil
        }
        return [left...right, top...bottom]
    }

    @Test func `an overlay and its margin look the same at every size`() async throws {
        let recipe = "overlay:logo:gravity=south-east:scale=20pct:offset=3pct"
        // A logo of 4:1 in a fifth of 3:2: its width decides.
        #expect(try await white(recipe, on: (96, 64)) == [75...93, 57...61])
        #expect(try await white(recipe, on: (320, 213)) == [250...313, 191...206])
        #expect(try await white(recipe, on: (1280, 853)) == [998...1253, 763...826])
        // A fifth of the height decides for a panorama.
        #expect(try await white("overlay:logo:gravity=north-west:scale=20%", on: (600, 50)) == [0...39, 0...9])
    }

    @Test func `a box enlarges what is smaller, by its edges that are given`() async throws {
        #expect(try await white("overlay:logo:gravity=north-west:fit=80x80", on: (100, 100)) == [0...79, 0...19])
        #expect(try await white("overlay:logo:gravity=north-west:fit=x5", on: (100, 100)) == [0...19, 0...4])
        #expect(try await white("dpr:2,overlay:logo:gravity=north-west:fit=40x", on: (100, 100)) == [0...79, 0...19])
    }

    @Test(arguments: [
        ("from=100x50", true), ("from=100", false), ("from=101x", false), ("from=x50", true), ("from=x51", false),
    ]) func `a picture below the least size is left as it is`(from: String, isDrawn: Bool) async throws {
        #expect(try await (white("overlay:logo:\(from)", on: (100, 50)) != nil) == isDrawn)
        // No picture is missed that is not drawn for lack of a size alone.
        #expect(try await StepFixture.failure(StepFixture.noise(8, 8), "overlay:none:\(from)") == nil)
    }

    @Test(arguments: [("", 0, 0), (":gap=3x2", 3, 2), (":gap=10pct", 2, 2), (":gap=40", 40, 40)])
    func `tiles cover the picture, one of them in the middle`(gap: String, across: Int, down: Int) async throws {
        let picture = StepFixture.noise(23, 20, seed: 5)
        let logo = StepFixture.noise(6, 5, alpha: true, seed: 6)
        let result = try await StepFixture.render(
            picture, "overlay:logo:tile\(gap)", masks: ["overlay:logo": StepFixture.png(logo)])
        var expected = picture
        for column in -4...4 {
            for row in -4...4 {
                let (x, y) = (8 + column * (6 + across), 7 + row * (5 + down))
                let values = laid(logo, over: expected, x: x, y: y, opacity: 1)
                expected = StepFixture.picture(23, 20) { x, y in
                    (0..<4).map { UInt8(values[y * 23 + x][$0].rounded()) }
                }
            }
        }
        #expect(StepFixture.worst(result, expected.values) <= StepFixture.rounding)
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
