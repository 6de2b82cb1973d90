import Testing

@testable import Variants

@Suite struct TrimTests {
    /// 20 × 16 of `border`, with `content` in the rectangle 5…12 × 3…8.
    private func framed(_ border: [UInt8], _ content: [UInt8]) -> PixelBuffer {
        StepFixture.picture(20, 16) { x, y in (5...12).contains(x) && (3...8).contains(y) ? content : border }
    }

    @Test(arguments: [
        ("trim", [UInt8(100), 100, 100], [UInt8(111), 100, 100], true),
        ("trim", [100, 100, 100], [110, 90, 110], false),
        ("trim:0", [100, 100, 100], [100, 100, 101], true), ("trim:255", [0, 0, 0], [255, 255, 255], false),
        ("trim:30", [255, 255, 255], [224, 255, 255], true),
        // Transparent pixels are alike, whatever their colour; alpha counts as colours do.
        ("trim", [0, 0, 0, 0], [255, 255, 255, 10], false), ("trim", [0, 0, 0, 0], [0, 0, 0, 11], true),
        ("trim", [255, 0, 0, 0], [0, 255, 0, 0], false), ("trim", [255, 0, 0, 255], [255, 0, 0, 128], true),
    ])
    func `cuts what is within the threshold of the corner`(
        recipe: String, border: [UInt8], content: [UInt8], isCut: Bool
    ) async throws {
        let picture = framed(border, content)
        let result = try await StepFixture.render(picture, recipe)
        guard isCut else {
            // Only border: the picture does not change.
            #expect(result.width == 20 && result.height == 16)
            return
        }
        #expect(result.width == 8 && result.height == 6)
        #expect(result == StepFixture.picture(8, 6) { _, _ in content })
    }

    @Test func `keeps everything around scattered content and cuts each side by itself`() async throws {
        let picture = StepFixture.picture(30, 20) { x, y in
            x == 2 && y == 11 || x == 29 && y == 4 ? [0, 0, 0] : [255, 255, 255]
        }
        let result = try await StepFixture.render(picture, "trim")
        #expect(result.width == 28 && result.height == 8)
        #expect(result[0, 7][0] == 0 && result[27, 0][0] == 0)
        // No border at all: the corner itself is alone.
        let noise = StepFixture.noise(9, 7)
        #expect(try await StepFixture.render(noise, "trim:1") == noise)
        // An original too wide for an output may be trimmed to one that is not.
        let wide = StepFixture.picture(60, 3) { x, _ in x == 30 ? [0, 0, 0] : [255, 255, 255] }
        #expect(try await StepFixture.failure(wide, "trim") { $0.limits.outputEdge = 50 } == nil)
        #expect(try await StepFixture.failure(wide, "flip:h") { $0.limits.outputEdge = 50 } == .overLimit)
    }
}
