/// What a pass over finished pixels says about how to encode them; 1 to 3 ns a pixel (docs/benchmarks.md has what the
/// thresholds were chosen from).
struct PixelLook: Sendable, Hashable {
    /// Whether the picture looks drawn, also after resizing has mixed its colours.
    ///
    /// A drawing has few colours: at most one to sixteen pixels, or 256 in all. At least a quarter of its pixels equal
    /// their left or upper neighbour, and at most 28 % differ from the nearer one by 1 to 4 of 255, as the noise of
    /// photographs does. Up to 64 colours suffice by themselves, as in a pattern of fine rules.
    var isDrawn = false
    /// Whether chroma differs by more than 60 of 255 within at least one in 250 squares of 2 × 2 pixels, as it does along
    /// coloured text and lines. At half the resolution only a square's mean is kept.
    var hasChromaDetail = false
}

extension PixelLook {
    /// Differences of B − Y and R − Y, times 256, that are 60 of Cb and of Cr (ITU-T T.871 §7).
    private static let (blueLimit, redLimit): (Int32, Int32) = (27_238, 21_535)

    init(_ pixels: EncodablePixels, _ control: RenderControl) throws(RenderError) {
        let (bands, width) = (pixels.bands, pixels.width)
        guard bands >= 3, width > 0 else { return }
        let bytes = pixels.storage.bytes
        let rowBytes = width * bands
        let rows = bytes.count / rowBytes
        // One row of four is enough, and the one above it for the squares.
        let seen = (rows + 2) / 4 * width
        var colours = ColourCount(limit: max(256, seen / 16))
        var (equal, noisy, squares, detailed) = (0, 0, 0, 0)
        for y in stride(from: 1, to: rows, by: 4) {
            if y % 64 == 1 { try control.check() }
            let row = y * rowBytes
            var last: UInt32 = 0
            for at in stride(from: row, to: row + rowBytes, by: bands) {
                let upper = at - rowBytes
                let colour = UInt32(bytes[at]) << 16 | UInt32(bytes[at + 1]) << 8 | UInt32(bytes[at + 2])
                let isRepeated = colour == last
                if !isRepeated { colours.insert(colour) }
                last = colour
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
            // Every second square, like the black ones of a chessboard.
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
        isDrawn = seen > 0 && colours.count <= (isCalm ? max(256, seen / 16) : 64)
    }

    /// B − Y and R − Y, times 256.
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

/// Counts distinct colours until there are more than a limit, in a hash table with open addressing.
private struct ColourCount {
    private var slots: [UInt32]
    private let shift: UInt32
    private let limit: Int
    private(set) var count = 0

    init(limit: Int) {
        // At most half full.
        let bits = Int.bitWidth - (2 * limit).leadingZeroBitCount
        slots = Array(repeating: .max, count: 1 << bits)
        shift = UInt32(32 - bits)
        self.limit = limit
    }

    mutating func insert(_ colour: UInt32) {
        guard count <= limit else { return }
        // Fibonacci hashing.
        var slot = Int((colour &* 0x9E37_79B9) >> shift)
        while slots[slot] != .max {
            if slots[slot] == colour { return }
            slot = (slot + 1) & (slots.count - 1)
        }
        count += 1
        slots[slot] = colour
    }
}
