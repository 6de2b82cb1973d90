/// Distinguishes drawings from photographs by their decoded rows. The noise of photographs causes small differences
/// between adjacent pixels, whereas a drawing has edges and areas of a single color.
struct DrawingDetector {
    private var seen = 0
    private var noisy = 0

    /// Whether at most a tenth of the pixels differ from the nearer of their left and upper neighbors by 1 to 4 of 255.
    /// In a photograph, more pixels do, even in a file with few bits per pixel.
    var isCalm: Bool { seen > 0 && noisy * 10 <= seen }

    /// Returns the index of the light to shrink the picture in.
    func index(of lights: [Double]) -> Int { lights.count > 1 && isCalm ? 1 : 0 }

    /// Examines the second row of a strip. Uses the high bytes of green or gray.
    mutating func examine(at strip: Image.Tile, bands: Int) {
        guard strip.size.height > 1 else { return }
        let (step, sampleBytes) = (strip.pixelBytes, strip.pixelBytes / bands)
        let sample = (bands >= 3 ? sampleBytes : 0) + sampleBytes - 1
        let upper = strip.start.assumingMemoryBound(to: UInt8.self) + sample
        let row = upper + strip.lineBytes
        for at in stride(from: step, to: strip.size.width * step, by: step) {
            let here = Int32(row[at])
            let least = min(abs(here - Int32(row[at - step])), abs(here - Int32(upper[at])))
            if least > 0, least <= 4 { noisy += 1 }
        }
        seen += strip.size.width - 1
    }
}
