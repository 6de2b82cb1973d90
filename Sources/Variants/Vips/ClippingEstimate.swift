import CResample

/// Estimates how much of a picture was clipped to the range of a byte. Counts squares of 4 × 4 pixels in which some
/// values are 255, and thus may have been clipped, and others are not.
///
/// A full decode clips each pixel, whereas a decoder that averages 4 × 4 pixels clips only the averages. If many
/// squares are partly clipped, averages of decoded pixels are therefore darker than the output of an averaging decoder.
struct ClippingEstimate {
    private(set) var seen = 0
    private(set) var cut = 0

    /// Whether so many squares are partly clipped that averages are visibly affected. In one of the 102 pictures in
    /// `Benchmarks/run-quality`, half of the squares are partly clipped. In the picture with the second largest number,
    /// a sixth of the squares are, and there is no visible effect.
    var isMuch: Bool { Double(cut) > 0.3 * Double(seen) }

    /// Examines the first four rows of a strip. In strips of sixteen rows, this is every fourth square.
    mutating func examine(at strip: Image.Tile, bands: Int) {
        guard strip.size.height >= 4 else { return }
        seen += strip.size.width / 4
        cut += Int(
            cresample_cut_squares(
                strip.start.assumingMemoryBound(to: UInt8.self), strip.lineBytes, Int32(strip.size.width),
                Int32(bands)))
    }
}
