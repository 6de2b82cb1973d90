/// A clockwise rotation by quarter turns, followed by mirroring.
struct ImgproxyTurn: Sendable {
    /// 0…3.
    let quarters: Int
    let flipsHorizontally: Bool
    let flipsVertically: Bool

    static let none = ImgproxyTurn(quarters: 0, flipsHorizontally: false, flipsVertically: false)

    /// Whether the rotation exchanges width and height.
    var swaps: Bool { quarters % 2 == 1 }

    func backSize(_ size: PixelPair) -> PixelPair { swaps ? PixelPair(size.y, size.x) : size }

    /// Returns the direction before turning of a direction in the turned picture.
    func back<Scalar: SignedNumeric & SIMDScalar>(_ direction: SIMD2<Scalar>) -> SIMD2<Scalar> {
        var result = direction
        if flipsHorizontally { result.x = -result.x }
        if flipsVertically { result.y = -result.y }
        for _ in 0..<quarters { result = SIMD2(result.y, -result.x) }
        return result
    }

    /// Returns the position before turning of a rectangle in a turned picture.
    func back(position: PixelPair, of size: PixelPair, in picture: PixelPair) -> PixelPair {
        // Twice the distance between the centers is a whole number.
        let center = back(2 &* position &+ size &- picture)
        let rest = center &+ backSize(picture) &- backSize(size)
        return PixelPair(rest.x / 2, rest.y / 2)
    }
}
