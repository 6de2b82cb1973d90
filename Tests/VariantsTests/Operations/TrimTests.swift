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

    @Test func `a named color is the border, together with fully transparent pixels`() async throws {
        // The corner is transparent, and the rest of the border is green.
        let picture = StepFixture.picture(20, 16) { x, y in
            if (5...12).contains(x), (3...8).contains(y) { return [0, 0, 255, 255] }
            return x == 0 ? [9, 9, 9, 0] : [0, 255, 0, 255]
        }
        let result = try await StepFixture.render(picture, "trim:colour=00ff00")
        #expect(result == StepFixture.picture(8, 6) { _, _ in [0, 0, 255, 255] })
        // Without the color, the transparent column alone is border.
        #expect(try await StepFixture.render(picture, "trim").width == 19)
        // A color that the border does not have.
        #expect(try await StepFixture.render(framed([9, 9, 9], [200, 0, 0]), "trim:colour=ffffff").width == 20)
    }

    @Test(arguments: [("h", 10, 6), ("v", 8, 10), ("hv", 10, 10)])
    func `equal sides lose the smaller amount`(directions: String, width: Int, height: Int) async throws {
        // 5 and 7 columns, 3 and 7 rows are border: equal sides lose 5 columns and 3 rows.
        let result = try await StepFixture.render(framed([9, 9, 9], [200, 0, 0]), "trim:equal=\(directions)")
        #expect(result.width == width && result.height == height)
        #expect(result[0, 0][0] == 200)
    }

    @Test func `arguments have one spelling, and wrong ones are named`() throws {
        #expect(try Recipe("trim:10:equal=hv:colour=FFF").description == "trim:colour=ffffff:equal=hv")
        for text in ["trim:equal=x", "trim:colour=ffffff00", "trim:color=fff", "trim:equal=h:equal=v", "trim:colour="] {
            #expect(throws: RecipeError.self) { try Recipe(text) }
        }
    }
}
