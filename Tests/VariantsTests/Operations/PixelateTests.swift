import Testing

@testable import Variants

@Suite struct PixelateTests {
    @Test(arguments: [1, 2, 5, 16, 23, 100, 8192], [false, true])
    func `each block is its mean, smaller at the far edges`(edge: Int, alpha: Bool) async throws {
        let picture = StepFixture.noise(47, 23, alpha: alpha, seed: 11)
        var expected = picture.values
        for top in stride(from: 0, to: picture.height, by: edge) {
            for left in stride(from: 0, to: picture.width, by: edge) {
                let places = (top..<min(top + edge, picture.height)).flatMap { y in
                    (left..<min(left + edge, picture.width)).map { (x: $0, y: y) }
                }
                var sum = StepFixture.Values()
                for place in places {
                    let value = picture[place.x, place.y]
                    sum += StepFixture.Values(
                        value[0] * value[3], value[1] * value[3], value[2] * value[3], value[3])
                }
                var mean = sum[3] == 0 ? StepFixture.Values() : sum / sum[3]
                mean[3] = sum[3] / Double(places.count)
                for place in places { expected[place.y * picture.width + place.x] = mean }
            }
        }
        let worst = StepFixture.worst(try await StepFixture.render(picture, "pixelate:\(edge)"), expected)
        #expect(worst <= StepFixture.rounding, "\(worst)")
    }
}
