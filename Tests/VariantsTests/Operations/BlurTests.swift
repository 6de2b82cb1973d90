import Foundation
import Testing

@testable import Variants

@Suite struct BlurTests {
    /// A direct convolution in doubles, colours times alpha, edges repeated.
    static func reference(_ picture: PixelBuffer, sigma: Double) -> [StepFixture.Values] {
        let radius = Int((sigma * 5).rounded(.up))
        var weights = (-radius...radius).map { exp(-Double($0 * $0) / (2 * sigma * sigma)) }
        let sum = weights.reduce(0, +)
        weights = weights.map { $0 / sum }
        let (width, height) = (picture.width, picture.height)
        var work = picture.values.map { value -> StepFixture.Values in
            let share = value[3] / 255
            return StepFixture.Values(value[0] * share, value[1] * share, value[2] * share, value[3])
        }
        func along(_ count: Int, _ at: (Int) -> Int) {
            let line = (0..<count).map { work[at($0)] }
            for index in 0..<count {
                var total = StepFixture.Values()
                for (offset, weight) in weights.enumerated() {
                    total += weight * line[min(count - 1, max(0, index + offset - radius))]
                }
                work[at(index)] = total
            }
        }
        for y in 0..<height { along(width) { y * width + $0 } }
        for x in 0..<width { along(height) { $0 * width + x } }
        return work.map { value in
            let share = value[3] / 255
            return share == 0
                ? value : StepFixture.Values(value[0] / share, value[1] / share, value[2] / share, value[3])
        }
    }

    @Test(arguments: [0.3, 0.5, 1, 2.5, 3.9, 4, 5.9, 8.3, 13, 30], [false, true])
    func `blurs as a direct convolution does`(sigma: Double, alpha: Bool) async throws {
        let (width, height) = sigma < 4 ? (37, 23) : (53, 31)
        var picture = StepFixture.noise(width, height, alpha: alpha)
        // A hard edge in it, since noise alone blurs to grey.
        for y in 0..<height { for x in (width / 3)..<(width / 2) { picture.pixels[(y * width + x) * 4] = 255 } }
        let blurred = try await StepFixture.render(picture, "blur:\(sigma)")
        #expect(blurred.width == width && blurred.height == height)
        let worst = StepFixture.worst(blurred, Self.reference(picture, sigma: sigma), seen: 8)
        // Large sigmas go through a reduced picture.
        #expect(worst <= (sigma < 4 ? 0.65 : 1.4), "\(worst)")
    }

    @Test func `a hard edge keeps its place at every sigma`() async throws {
        let picture = StepFixture.picture(200, 6) { x, _ in x < 90 ? [0, 0, 0] : [255, 255, 255] }
        for sigma in [3.0, 4, 5, 6, 7, 9, 12, 15.5] {
            let blurred = try await StepFixture.render(picture, "blur:\(sigma)")
            let worst = StepFixture.worst(blurred, Self.reference(picture, sigma: sigma))
            #expect(worst <= 1.4, "sigma \(sigma): \(worst)")
        }
    }

    @Test(arguments: ["blur:1.5", "blur:12", "sharpen:1.5", "pixelate:7", "rotate:33"])
    func `transparent pixels lend no colour`(step: String) async throws {
        let picture = StepFixture.picture(40, 30) { x, y in
            (x / 6 + y / 5) % 2 == 0 ? [200, 40, 0, 255] : [0, 0, 255, 0]
        }
        let result = try await StepFixture.render(picture, step)
        #expect(result.values.contains { $0[3] > 0 && $0[3] < 255 } || step.hasPrefix("sharpen"))
        for value in result.values where value[3] >= 1 {
            #expect(abs(value[0] - 200) <= 1 && abs(value[1] - 40) <= 1 && value[2] <= 1, "\(value)")
        }
    }

    @Test func `a stopped render goes no further in a step that computes pixels`() throws {
        try VipsLibrary.load()
        let source = try RenderFixture.gradientImage(64, 48)
        let mask = try StepFixture.png(StepFixture.noise(8, 8, alpha: true, seed: 99))
        let picture = Picture(image: source, size: PixelSize(width: 64, height: 48), isRaw: false)
        for text in [
            "trim", "blur:3", "blur:50", "sharpen", "pixelate:4", "rotate:20", "overlay:logo", "mask:logo", "circle",
        ] {
            let control = RenderControl()
            let context = RenderContext(
                light: .auto, isDrawn: false, limits: RenderLimits(), masks: ["logo": mask, "overlay:logo": mask],
                control: control)
            let step = try #require(try Recipe(text).steps.first)
            _ = try step.apply(to: picture, in: context)
            control.stop(.cancelled)
            let error = #expect(throws: RenderError.self) { _ = try step.apply(to: picture, in: context) }
            #expect(error?.code == .cancelled, "\(text)")
        }
    }
}
