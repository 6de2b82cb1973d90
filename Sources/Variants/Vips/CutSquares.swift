import CResample

/// How much of a picture lies beyond what a byte holds: squares of 4 × 4 pixels some of which are 255, and so have been cut
/// perhaps, while others are not.
///
/// A decoder that decodes in full cuts each pixel, one that averages four by four cuts what comes of them only. Where
/// many squares are partly cut, averages of decoded pixels are therefore darker than what such a decoder gives.
struct CutSquares {
    private(set) var seen = 0
    private(set) var cut = 0

    /// Whether so many are that averages show it. Of the 102 pictures of `Benchmarks/run-quality` half of the squares of one
    /// are, and a sixth of the next one's, whose averages do not.
    var isMuch: Bool { Double(cut) > 0.3 * Double(seen) }

    /// Looks at the first four rows of a strip; in strips of sixteen that is every fourth square.
    mutating func look(at strip: Image.Tile, bands: Int) {
        guard strip.size.height >= 4 else { return }
        seen += strip.size.width / 4
        cut += Int(
            cresample_cut_squares(
                strip.start.assumingMemoryBound(to: UInt8.self), strip.lineBytes, Int32(strip.size.width),
                Int32(bands)))
    }
}
