import Testing

@testable import Variants

/// `extend` and `border`: a larger canvas.
@Suite struct ExtendBorderTests {
    private func placed(
        _ picture: PixelBuffer, _ top: Int, _ right: Int, _ bottom: Int, _ left: Int, _ around: [UInt8]
    ) -> PixelBuffer {
        StepFixture.picture(picture.width + left + right, picture.height + top + bottom) { x, y in
            let (px, py) = (x - left, y - top)
            return px >= 0 && px < picture.width && py >= 0 && py < picture.height ? picture[px, py].bytes : around
        }
    }

    @Test(arguments: [false, true]) func `extend shows the last background, else nothing`(alpha: Bool) async throws {
        let picture = StepFixture.noise(9, 6, alpha: alpha)
        #expect(try await StepFixture.render(picture, "extend:3") == placed(picture, 3, 3, 3, 3, [0, 0, 0, 0]))
        #expect(
            try await StepFixture.render(picture, "extend:1:2:0:4") == placed(picture, 1, 2, 0, 4, [0, 0, 0, 0]))
        #expect(try await StepFixture.render(picture, "extend:0") == picture)
        guard !alpha else { return }
        #expect(
            try await StepFixture.render(picture, "background:01020380,extend:2")
                == placed(picture, 2, 2, 2, 2, [1, 2, 3, 0x80]))
        #expect(
            try await StepFixture.render(picture, "background:ffffff,background:010203,extend:2")
                == placed(picture, 2, 2, 2, 2, [1, 2, 3, 255]))
    }

    @Test(arguments: [false, true]) func `a border lies around the picture and is opaque`(alpha: Bool) async throws {
        let picture = StepFixture.noise(9, 6, alpha: alpha)
        #expect(
            try await StepFixture.render(picture, "border:4:0a0b0c")
                == placed(picture, 4, 4, 4, 4, [10, 11, 12, 255]))
    }

    @Test func `edges beyond the limit are refused before pixels are computed`() async throws {
        let picture = StepFixture.noise(20, 10)
        for (recipe, code) in [
            ("extend:8192", RenderError.Code.overLimit), ("border:8192:000000", .overLimit),
            ("extend:0:21:0:0", .overLimit),
            ("border:11:000000", .overLimit),
        ] {
            #expect(try await StepFixture.failure(picture, recipe) { $0.limits.outputEdge = 40 } == code)
        }
        #expect(try await StepFixture.failure(picture, "border:10:000000") { $0.limits.outputEdge = 40 } == nil)
    }
}
