import CResample

/// Estimates how much of a picture was clipped to the range of a byte: squares of 4 × 4 pixels in which some values are
/// 255, and so may have been clipped, while others are not.
///
/// A decoder that decodes in full clips each pixel; one that averages four by four clips only the averages. If many
/// squares are partly clipped, averages of decoded pixels are therefore darker than what such a decoder gives.
struct CutSquares {
    private(set) var seen = 0
    private(set) var cut = 0

    /// Whether enough squares are partly clipped for averages to show it. Of the 102 pictures of
    /// `Benchmarks/run-quality`, one has half of its squares clipped; the next has a sixth, and does not show it.
    var isMuch: Bool { Double(cut) > 0.3 * Double(seen) }

    /// Looks at the first four rows of a strip; in strips of sixteen rows that is every fourth square.
    mutating func look(at strip: Image.Tile, bands: Int) {
        guard strip.size.height >= 4 else { return }
        seen += strip.size.width / 4
        cut += Int(
            cresample_cut_squares(
                strip.start.assumingMemoryBound(to: UInt8.self), strip.lineBytes, Int32(strip.size.width),
                Int32(bands)))
    }
}
