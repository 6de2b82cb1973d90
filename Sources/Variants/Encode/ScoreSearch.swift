/// An encoded file, the quality that it was encoded with, 1…100, and its measured score (`PictureScore`).
struct ScoredFile: Sendable {
    var bytes: [UInt8]
    var quality: Int
    var score: Double
}

/// Finds the smallest file that reaches a score, in at most four encodes.
///
/// The first quality is the one that typically reaches the score. Each measured score shows how far this picture
/// deviates from the typical curve, relative to the deviations of other pictures. The deviation is interpolated between
/// the measured qualities, and the lowest quality that is expected to reach the score is next. The search stops at a
/// file that exceeds the score by less than 1, at two adjacent qualities, or after four encodes. It takes 2.7 encodes
/// on average (docs/benchmarks.md).
struct ScoreSearch {
    /// The score to reach, 10…95.
    let target: Double
    let curve: ScoreCurve
    /// Whether a file must not fall short of the score by less than `tolerance` either, if another one reaches it.
    var isStrict = false

    static let encodeLimit = 4
    /// The expected distance above the target. It makes up for small errors of the expectation.
    private static let margin = 0.4
    /// A file that falls short by at most this much is preferred to a file that exceeds the score by more. The scores of
    /// adjacent qualities can differ by several points.
    static let tolerance = 1.5
    /// If the best lossy file falls short by more than this, a lossless file replaces it if the format has any.
    static let shortfall = 3.0

    /// Returns the smallest file that reaches the score. If no file does, returns the file with the highest score.
    /// Throws the error that `scored` throws.
    func result(_ scored: (Int) throws(RenderError) -> ScoredFile) throws(RenderError) -> ScoredFile {
        // In order of increasing quality.
        var tried: [ScoredFile] = []
        while tried.count < Self.encodeLimit {
            let below = tried.last { $0.score < target }?.quality ?? 0
            let above = tried.first { $0.score >= target }?.quality ?? 101
            if above - below <= 1 { break }
            let expected = (below + 1..<above).first { curve.expected($0, tried) >= target + Self.margin }
            let file = try scored(expected ?? above - 1)
            tried.insert(file, at: tried.firstIndex { $0.quality > file.quality } ?? tried.endIndex)
            if file.score >= target, file.score < target + 1 { return file }
        }
        let reaching = tried.filter { $0.score >= target }.min { $0.bytes.count < $1.bytes.count }
        let missing = tried.filter { $0.score < target }.max { $0.score < $1.score }
        guard let missing else { return reaching ?? tried[0] }
        let isNear = !isStrict && missing.score >= target - Self.tolerance
        if let reaching, !isNear || reaching.score <= target + Self.tolerance { return reaching }
        return missing
    }
}

/// The typical scores of an output format at each quality.
struct ScoreCurve: Sendable {
    private static let knots = [1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100]
    private let typical: [Double]
    private let spread: [Double]

    /// - Parameters:
    ///   - typical: the median scores at qualities 1, 10, 20, …, 90, 95 and 100.
    ///   - spread: the range that contains the scores of 60 % of all pictures at these qualities, at least 1.
    init(typical: [Double], spread: [Double]) {
        (self.typical, self.spread) = (typical, spread)
    }

    /// Returns the expected score of a picture at `quality`, 1…100. `measured` contains its known scores, in order of
    /// increasing quality.
    func expected(_ quality: Int, _ measured: [ScoredFile]) -> Double {
        let (typical, spread) = (value(typical, quality), value(spread, quality))
        guard let first = measured.first else { return typical }
        let next = measured.first { $0.quality >= quality } ?? measured[measured.count - 1]
        let last = measured.last { $0.quality <= quality } ?? first
        let (left, right) = (deviation(last), deviation(next))
        let share =
            next.quality > last.quality
            ? Double(quality - last.quality) / Double(next.quality - last.quality) : 0
        return typical + (left + (right - left) * share) * spread
    }

    private func deviation(_ file: ScoredFile) -> Double {
        (file.score - value(typical, file.quality)) / value(spread, file.quality)
    }

    /// Interpolates linearly between the values at `knots`.
    private func value(_ values: [Double], _ quality: Int) -> Double {
        let next = max(1, Self.knots.firstIndex { $0 >= quality } ?? values.count - 1)
        let (left, right) = (Self.knots[next - 1], Self.knots[next])
        return values[next - 1] + (values[next] - values[next - 1]) * Double(quality - left) / Double(right - left)
    }
}
