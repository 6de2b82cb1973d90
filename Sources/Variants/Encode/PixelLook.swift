/// What a pass over finished pixels says about how to encode them; 1 to 2 ns a pixel (docs/benchmarks.md has what the
/// thresholds were chosen from).
struct PixelLook: Sendable, Hashable {
    /// Whether the picture looks drawn: at least half of the pixels equal their left neighbour, and there is at most one
    /// colour to a hundred pixels, or 256 in all.
    var isDrawn = false
    /// Whether chroma differs by more than 60 of 255 within at least one in 250 squares of 2 × 2 pixels, as it does along
    /// coloured text and lines. At half the resolution only a square's mean is kept.
    var hasChromaDetail = false
}

extension PixelLook {
    /// Differences of B − Y and R − Y, times 256, that are 60 of Cb and of Cr (ITU-T T.871 §7).
    private static let (blueLimit, redLimit) = (27_238, 21_535)

    init(_ pixels: EncodablePixels, _ control: RenderControl) throws(RenderError) {
        let (bands, width) = (pixels.bands, pixels.width)
        guard bands >= 3, width > 0 else { return }
        let bytes = pixels.storage.bytes
        let rowBytes = width * bands
        let rows = bytes.count / rowBytes
        var colours = ColourCount(limit: max(256, width * rows / 100))
        var (equal, squares, detailed) = (0, 0, 0)
        for y in 0..<rows {
            if y % 64 == 0 { try control.check() }
            let row = y * rowBytes
            var last: UInt32 = 0
            for at in stride(from: row, to: row + rowBytes, by: bands) {
                let colour = UInt32(bytes[at]) << 16 | UInt32(bytes[at + 1]) << 8 | UInt32(bytes[at + 2])
                if colour == last { equal += 1 } else { colours.insert(colour) }
                last = colour
            }
            // Every second row of squares is enough.
            guard y % 4 == 1 else { continue }
            for at in stride(from: row, to: row + rowBytes - bands, by: 2 * bands) {
                squares += 1
                var (lowBlue, highBlue, lowRed, highRed) = (Int.max, Int.min, Int.max, Int.min)
                func add(_ at: Int) {
                    let (red, green, blue) = (Int(bytes[at]), Int(bytes[at + 1]), Int(bytes[at + 2]))
                    let luma = 77 * red + 150 * green + 29 * blue
                    lowBlue = min(lowBlue, blue << 8 - luma)
                    highBlue = max(highBlue, blue << 8 - luma)
                    lowRed = min(lowRed, red << 8 - luma)
                    highRed = max(highRed, red << 8 - luma)
                }
                add(at)
                add(at + bands)
                add(at - rowBytes)
                add(at - rowBytes + bands)
                if highBlue - lowBlue > Self.blueLimit || highRed - lowRed > Self.redLimit { detailed += 1 }
            }
        }
        isDrawn = equal * 2 >= width * rows && !colours.isOver
        hasChromaDetail = detailed > 0 && detailed * 250 >= squares
    }
}

/// Counts distinct colours up to a limit, in a hash table with open addressing.
private struct ColourCount {
    private var slots: [UInt32]
    private let shift: UInt32
    private var left: Int

    init(limit: Int) {
        // At most half full.
        let bits = Int.bitWidth - (2 * limit).leadingZeroBitCount
        slots = Array(repeating: .max, count: 1 << bits)
        shift = UInt32(32 - bits)
        left = limit
    }

    var isOver: Bool { left < 0 }

    mutating func insert(_ colour: UInt32) {
        guard left >= 0 else { return }
        // Fibonacci hashing.
        var slot = Int((colour &* 0x9E37_79B9) >> shift)
        while slots[slot] != .max {
            if slots[slot] == colour { return }
            slot = (slot + 1) & (slots.count - 1)
        }
        left -= 1
        if left >= 0 { slots[slot] = colour }
    }
}
