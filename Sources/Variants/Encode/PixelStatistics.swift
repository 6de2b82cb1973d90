/// Properties of finished pixels that determine their encoding. They are measured in a single pass that takes 1 to 3 ns
/// per pixel (docs/benchmarks.md explains the thresholds).
struct PixelStatistics: Sendable, Hashable {
    /// Whether the picture looks like a drawing, even if resizing has mixed its colors.
    ///
    /// A drawing has few colors: at most one per sixteen pixels, or at most 256 in total. At least a quarter of its
    /// pixels equal their left or upper neighbor. At most 28 % of its pixels differ from the nearer neighbor by 1 to 4
    /// of 255, as is typical for the noise of photographs. A picture with at most 64 colors, such as a pattern of fine
    /// lines, always counts as a drawing.
    var isDrawn = false
    /// Whether chroma differs by more than 60 of 255 within at least one in 250 squares of 2 × 2 pixels, for example
    /// along colored text and lines. At half the resolution, only the mean of each square is stored.
    var hasChromaDetail = false
}

extension PixelStatistics {
    /// The differences of B − Y and R − Y, multiplied by 256, that correspond to differences of 60 in Cb and Cr (ITU-T
    /// T.871 §7).
    private static let (blueLimit, redLimit): (Int32, Int32) = (27_238, 21_535)

    init(_ pixels: EncodablePixels, _ control: RenderControl) throws(RenderError) {
        let (bands, width) = (pixels.bands, pixels.width)
        guard bands >= 3, width > 0 else { return }
        let bytes = pixels.storage.bytes
        let rowBytes = width * bands
        let rows = bytes.count / rowBytes
        // It is sufficient to examine one row in four, and the row above it for the squares.
        let seen = (rows + 2) / 4 * width
        let most = max(256, seen / 16)
        var colors = ColorTable(limit: most + 1)
        var (equal, noisy, squares, detailed) = (0, 0, 0, 0)
        for y in stride(from: 1, to: rows, by: 4) {
            if y % 64 == 1 { try control.check() }
            let row = y * rowBytes
            var last: UInt32 = 0
            for at in stride(from: row, to: row + rowBytes, by: bands) {
                let upper = at - rowBytes
                let color = UInt32(bytes[at]) << 16 | UInt32(bytes[at + 1]) << 8 | UInt32(bytes[at + 2])
                let isRepeated = color == last
                if !isRepeated, colors.colors.count <= most { colors.insert(color) }
                last = color
                if isRepeated
                    || bytes[at] == bytes[upper] && bytes[at + 1] == bytes[upper + 1]
                        && bytes[at + 2] == bytes[upper + 2]
                {
                    equal += 1
                } else {
                    let green = Int32(bytes[at + 1])
                    let left = at > row ? Int32(bytes[at + 1 - bands]) : green
                    let step = min(abs(green &- left), abs(green &- Int32(bytes[upper + 1])))
                    if step > 0, step <= 4 { noisy += 1 }
                }
            }
            // Examine every second square, in a checkerboard pattern.
            for at in stride(from: row + y / 4 % 2 * 2 * bands, to: row + rowBytes - bands, by: 4 * bands) {
                squares += 1
                let (one, two) = (Chroma(bytes, at), Chroma(bytes, at + bands))
                let (three, four) = (Chroma(bytes, at - rowBytes), Chroma(bytes, at - rowBytes + bands))
                let blue =
                    max(one.blue, two.blue, three.blue, four.blue) - min(one.blue, two.blue, three.blue, four.blue)
                let red = max(one.red, two.red, three.red, four.red) - min(one.red, two.red, three.red, four.red)
                if blue > Self.blueLimit || red > Self.redLimit { detailed += 1 }
            }
        }
        hasChromaDetail = detailed > 0 && detailed * 250 >= squares
        let isCalm = equal * 4 >= seen && noisy * 100 <= seen * 28
        isDrawn = seen > 0 && colors.colors.count <= (isCalm ? most : 64)
    }

    /// B − Y and R − Y, multiplied by 256.
    private struct Chroma {
        let (blue, red): (Int32, Int32)

        @inline(__always) init(_ bytes: UnsafeRawBufferPointer, _ at: Int) {
            let (red, green, blue) = (Int32(bytes[at]), Int32(bytes[at + 1]), Int32(bytes[at + 2]))
            let luma = 77 &* red &+ 150 &* green &+ 29 &* blue
            self.blue = blue &* 256 &- luma
            self.red = red &* 256 &- luma
        }
    }
}
