import Testing

@testable import Variants

/// Small pictures for the tests of steps, and references computed in doubles.
enum StepFixture {
    /// Red, green, blue and alpha, 0…255 and not rounded; colours not multiplied with alpha.
    typealias Values = SIMD4<Double>

    static func picture(_ width: Int, _ height: Int, _ pixel: (Int, Int) -> [UInt8]) -> PixelBuffer {
        var pixels: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let values = pixel(x, y)
                pixels += values.count == 4 ? values : values + [255]
            }
        }
        return PixelBuffer(width: width, height: height, pixels: pixels)
    }

    /// Equal noise for equal seeds; with alpha, a third of the pixels are transparent but colored.
    static func noise(_ width: Int, _ height: Int, alpha: Bool = false, seed: UInt64 = 1) -> PixelBuffer {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        func next() -> UInt8 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 24)
        }
        return picture(width, height) { _, _ in
            let color = [next(), next(), next()]
            let chance = next()
            return color + [alpha ? (chance < 85 ? 0 : chance) : 255]
        }
    }

    /// The PNG, without alpha if all of it is opaque.
    static func png(_ picture: PixelBuffer) throws -> [UInt8] {
        try VipsLibrary.load()
        let isOpaque = stride(from: 3, to: picture.pixels.count, by: 4).allSatisfy { picture.pixels[$0] == 255 }
        return try RenderFixture.png(
            RenderFixture.image(picture.width, picture.height, bands: isOpaque ? 3 : 4) { x, y in
                let at = (y * picture.width + x) * 4
                return Array(picture.pixels[at..<(at + (isOpaque ? 3 : 4))])
            })
    }

    static func job(_ picture: PixelBuffer, _ recipe: String, masks: [String: [UInt8]] = [:]) throws -> RenderJob {
        var job = try RenderSamples.job(png(picture), recipe)
        job.masks = masks
        return job
    }

    static func render(
        _ picture: PixelBuffer, _ recipe: String, masks: [String: [UInt8]] = [:]
    ) async throws -> PixelBuffer {
        try await RenderFixture.renderer.pixels(job(picture, recipe, masks: masks))
    }

    /// The code of a failed render, nil for a successful one.
    static func failure(
        _ picture: PixelBuffer, _ recipe: String, change: (inout RenderJob) -> Void = { _ in }
    ) async throws -> RenderError.Code? {
        var job = try job(picture, recipe)
        change(&job)
        do throws(RenderError) {
            _ = try await RenderFixture.renderer.pixels(job)
            return nil
        } catch {
            return error.code
        }
    }

    /// The largest difference from `expected`; of colours only where alpha is at least `seen`.
    static func worst(_ actual: PixelBuffer, _ expected: [Values], seen: Double = 0.5) -> Double {
        guard actual.width * actual.height == expected.count else { return .infinity }
        var worst = 0.0
        for (index, values) in expected.enumerated() {
            worst = max(worst, abs(Double(actual.pixels[index * 4 + 3]) - values[3]))
            guard values[3] >= seen else { continue }
            for band in 0..<3 { worst = max(worst, abs(Double(actual.pixels[index * 4 + band]) - values[band])) }
        }
        return worst
    }

    /// A half for rounding, and a little for what is exactly between two values.
    static let rounding = 0.501
}

extension PixelBuffer {
    subscript(_ x: Int, _ y: Int) -> StepFixture.Values {
        let at = (y * width + x) * 4
        return StepFixture.Values(
            Double(pixels[at]), Double(pixels[at + 1]), Double(pixels[at + 2]), Double(pixels[at + 3]))
    }

    var values: [StepFixture.Values] {
        (0..<height).flatMap { y in (0..<width).map { self[$0, y] } }
    }
}
