import Glibc

/// Finds the highest quality that meets a byte limit, in at most six encodes.
///
/// The first encode uses the highest allowed quality, which is often small enough. Each further guess interpolates
/// (regula falsi) between the nearest known sizes, using the typical growth of file sizes with quality. If the same end
/// moves twice, the guess shifts a quarter of the way to the other end, similar to the Illinois method, so that the
/// search does not stall. The search stops at a file that uses at least 95 % of the limit, at two adjacent qualities,
/// or after six encodes. On JPEG, WebP and AVIF files it takes 2.5 encodes on average.
struct QualitySearch {
    /// The maximum size in bytes, at least 1.
    let budget: Int
    /// The highest quality to try, 1…100.
    let highest: Int

    static let encodeLimit = 6

    /// Returns the file. Throws `overBudget` with the smallest size that was reached, or the error that `save` throws.
    func result(_ save: (Int) throws(RenderError) -> [UInt8]) throws(RenderError) -> [UInt8] {
        var best: (quality: Int, bytes: [UInt8])?
        // The results that exceeded the limit, in order of decreasing quality.
        var over: [(quality: Int, size: Int)] = []
        var quality = highest
        var fittedLast: Bool?
        for attempt in 1...Self.encodeLimit {
            let bytes = try save(quality)
            let fits = bytes.count <= budget
            if fits {
                best = (quality, bytes)
                if quality == highest || bytes.count * 20 >= budget * 19 { return bytes }
            } else {
                over.append((quality, bytes.count))
            }
            guard let upper = over.last else { break }
            let low = best?.quality ?? 0
            if upper.quality - low <= 1 { break }
            let lower = best.map { ($0.quality, $0.bytes.count) } ?? (over.count > 1 ? over[over.count - 2] : nil)
            quality = guess(upper, lower)
            if best != nil, attempt > 2, fits == fittedLast {
                quality = (quality * 3 + (fits ? upper.quality : low)) / 4
            }
            fittedLast = fits
            quality = min(max(quality, low + 1), upper.quality - 1)
            // This is the last attempt. Use the lowest quality to find out whether any file is small enough.
            if best == nil, attempt == Self.encodeLimit - 1 { quality = 1 }
        }
        if let best { return best.bytes }
        throw RenderError(
            .overBudget,
            "no quality produces a file of at most \(budget) bytes; the smallest had \(over.last?.size ?? 0); use a smaller size, fewer "
                + "frames, a different output (`webp`, `avif`), or a larger `max=`")
    }

    /// Returns the quality that is expected to just meet the limit, using the typical growth curve scaled to pass
    /// through both sizes.
    private func guess(_ upper: (quality: Int, size: Int), _ lower: (quality: Int, size: Int)?) -> Int {
        let top = log(Double(upper.size))
        var stretch = 1.0
        if let lower {
            let typical = Self.typicalLogSizes[upper.quality] - Self.typicalLogSizes[lower.quality]
            stretch = max(0.1, (top - log(Double(max(1, lower.size)))) / typical)
        }
        let wanted = Self.typicalLogSizes[upper.quality] + (log(Double(budget) * 0.985) - top) / stretch
        return (1...100).last { Self.typicalLogSizes[$0] <= wanted } ?? 1
    }

    /// The logarithm of a file's size relative to its size at quality 100, indexed by quality. This is the mean over
    /// JPEG, WebP and AVIF files of three pictures, interpolated linearly between a few qualities.
    private static let typicalLogSizes: [Double] = {
        let known = [
            (0, -3.45), (5, -3.2), (10, -3.0), (20, -2.7), (30, -2.5), (50, -2.1), (70, -1.7), (80, -1.5), (90, -1.0),
            (95, -0.6), (100, 0.0),
        ]
        return (0...100).map { quality in
            let next = max(1, known.firstIndex { $0.0 >= quality } ?? known.count - 1)
            let (left, right) = (known[next - 1], known[next])
            return left.1 + (right.1 - left.1) * Double(quality - left.0) / Double(right.0 - left.0)
        }
    }()
}
