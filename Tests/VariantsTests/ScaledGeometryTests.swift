import Testing

@testable import Variants

@Suite struct ScaledGeometryTests {
    @Test(arguments: [
        (100, 1.005, 101), (1000, 1.0005, 1001), (3, 0.5, 2), (1, 0.5, 1), (1, 0.0001, 1), (5, 0.3, 2), (7, 1.5, 11),
        (333, 0.333333, 111), (8192, 100, 819_200),
    ])
    func `an edge is rounded half up, without binary fractions on the way`(edge: Int, factor: Double, expected: Int) {
        let size = PixelSize(width: edge, height: 1).scaled(by: factor)
        #expect(size.width == expected)
    }
}
