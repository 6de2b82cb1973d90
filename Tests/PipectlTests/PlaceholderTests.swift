import Testing
import Variants

@testable import pipectl

/// Hashes and colors of a picture in `info`.
struct PlaceholderTests {
    private func picture(_ width: Int, _ height: Int, _ color: (Int, Int) -> [UInt8]) -> PixelBuffer {
        var pixels: [UInt8] = []
        for y in 0..<height { for x in 0..<width { pixels += color(x, y) } }
        return PixelBuffer(width: width, height: height, pixels: pixels)
    }

    @Test func `a ThumbHash holds mean colour, shape and transparency where a reader looks for them`() {
        let red = ThumbHash.hash(of: picture(32, 16) { _, _ in [255, 0, 0, 255] })
        func first(_ hash: [UInt8]) -> Int { Int(hash[0]) | Int(hash[1]) << 8 | Int(hash[2]) << 16 }
        func second(_ hash: [UInt8]) -> Int { Int(hash[3]) | Int(hash[4]) << 8 }
        // Brightness 1/3, yellow 1/2, red 1; no waves; 4 components down of 7 across, landscape, opaque.
        #expect(first(red) & 63 == 21 && first(red) >> 6 & 63 == 47 && first(red) >> 12 & 63 == 63)
        #expect(first(red) >> 18 & 31 == 0 && first(red) >> 23 == 0)
        #expect(second(red) & 7 == 4 && second(red) >> 15 == 1)
        let half = ThumbHash.hash(of: picture(16, 32) { x, _ in [0, 255, 0, x < 8 ? 255 : 0] })
        #expect(first(half) >> 23 == 1 && second(half) >> 15 == 0 && half[5] & 15 == 8)
        #expect(red.count <= 25 && half.count <= 25)
    }

    @Test func `a ThumbHash of a wave has that wave`() {
        // Dark at the left, bright at the right: the first horizontal wave, downwards.
        let hash = ThumbHash.hash(of: picture(32, 32) { x, _ in [UInt8](repeating: UInt8(x * 8), count: 3) + [255] })
        #expect(hash[5] & 15 == 0)
        // The other 26 coefficients of brightness are small in comparison.
        #expect(hash[6..<18].allSatisfy { (6...9).contains($0 & 15) && (6...9).contains($0 >> 4) }, "\(hash)")
    }

    @Test func `a palette has the colours by how much of the picture they fill`() {
        let flag = picture(30, 10) { x, _ in
            x < 20 ? [250, 10, 10, 255] : x < 28 ? [10, 10, 250, 255] : [9, 240, 9, 255]
        }
        let colors = Palette.colors(of: flag)
        #expect(colors.first == "fa0a0a" && colors.contains("0a0afa") && colors.count <= 5, "\(colors)")
        #expect(Palette.colors(of: picture(4, 4) { _, _ in [1, 2, 3, 255] }) == ["010203"])
        #expect(Palette.colors(of: picture(4, 4) { _, _ in [1, 2, 3, 0] }) == [])
        #expect(Palette.colors(of: picture(1, 1) { _, _ in [1, 2, 3, 255] }) == ["010203"])
    }

    @Test func `the BlurHash of a single color decodes to that color`() {
        let hash = BlurHash.hash(of: picture(8, 8) { _, _ in [255, 255, 255, 255] })
        #expect(hash.hasPrefix("L") && hash.count == 28)
        #expect(BlurHash.averageColor(of: picture(8, 8) { _, _ in [16, 32, 64, 255] }) == "102040")
        #expect(BlurHash.averageColor(of: picture(8, 8) { _, _ in [16, 32, 64, 0] }) == nil)
    }
}
