import Glibc

/// A color space that a file specifies by primaries and a transfer curve instead of an ICC profile. The file uses
/// either code points of ITU-T H.273 (cICP in PNG, `nclx` in AVIF and HEIF) or numbers (gAMA and cHRM in PNG).
struct CodedColorSpace: Sendable, Hashable {
    /// The transfer curve from values to light, both 0…1.
    enum Curve: Sendable, Hashable {
        /// (a·x + b)^g for values of at least `d`, and c·x for smaller values.
        case parametric(g: Double, a: Double, b: Double, c: Double, d: Double)
        /// The HDR curves of BT.2100. PQ describes the light of a display, and HLG the light of the scene.
        case pq, hlg

        static func power(_ exponent: Double) -> Curve { .parametric(g: exponent, a: 1, b: 0, c: 0, d: 0) }
        static let sRGB = Curve.parametric(g: 2.4, a: 1 / 1.055, b: 0.055 / 1.055, c: 1 / 12.92, d: 0.04045)

        /// Returns the light of a value. For PQ, 1 is reference white.
        func light(_ value: Double) -> Double {
            switch self {
            case .parametric(let g, let a, let b, let c, let d):
                return value >= d ? pow(max(0, a * value + b), g) : c * value
            case .pq:
                let root = pow(value, 32.0 / 2523)
                return pow(max(0, root - 0.8359375) / (18.8515625 - 18.6875 * root), 16384.0 / 2610) * ToneMap.brightest
            case .hlg:
                return value <= 0.5 ? value * value / 3 : (exp((value - 0.55991073) / 0.17883277) + 0.28466892) / 12
            }
        }
    }

    /// The x and y coordinates (CIE 1931) of red, green, blue and white.
    let primaries: [Double]
    let curve: Curve
    /// The name of the color space, and of the part of the file that declares it.
    let title: String
    /// The peak brightness of an HDR picture in nits.
    var peak = 1000.0

    /// Creates a color space from code points of H.273 (tables 2 and 3). Returns nil for reserved, unspecified and rare
    /// code points.
    init?(primaries: Int, transfer: Int, _ origin: String) {
        guard let (points, name) = Self.primaries[primaries], let (curve, kind) = Self.curves[transfer] else {
            return nil
        }
        (self.primaries, self.curve) = (points, curve)
        let isSRGB = points == Self.sRGB && curve == .sRGB
        title = (isSRGB ? "sRGB" : "\(name) primaries, \(kind)") + origin
    }

    /// Creates a color space from gAMA in a PNG (100,000 / exponent) and, if present, cHRM (white, red, green and blue,
    /// each multiplied by 100,000).
    ///
    /// A gAMA of 0.45455 with the primaries of sRGB is treated as sRGB, because that is what encoders mean. Returns nil
    /// for values that do not describe a color space.
    init?(gamma: Int, chromaticities: [Int]?) {
        let numbers = chromaticities?.map { Double($0) / 100_000 } ?? []
        let given = Array(numbers.dropFirst(2) + numbers.prefix(2))
        let isOwn = zip(given, Self.sRGB).contains { abs($0 - $1) > 0.001 }
        primaries = isOwn ? given : Self.sRGB
        guard gamma > 0, Self.toD50(primaries) != nil else { return nil }
        let isUsual = abs(gamma - 45455) <= 100
        curve = isUsual ? isOwn ? .power(2.2) : .sRGB : .power(100_000 / Double(gamma))
        let name = "gamma \(Double(gamma) / 100_000)"
        title = isOwn ? "own primaries, \(name) (gAMA, cHRM)" : isUsual ? "sRGB (gAMA)" : "\(name) (gAMA)"
    }

    var isSRGB: Bool { primaries == Self.sRGB && curve == .sRGB }
    var isHDR: Bool { curve == .pq || curve == .hlg }

    /// Whether the curve differs so much from sRGB's curve that pixels cannot be resized as if they were sRGB.
    var isFarFromSRGB: Bool { isHDR || !(0.12...0.35).contains(curve.light(0.5)) }

    static let sRGB = [0.64, 0.33, 0.30, 0.60, 0.15, 0.06, 0.3127, 0.3290]
    static let bt601 = [0.630, 0.340, 0.310, 0.595, 0.155, 0.070, 0.3127, 0.3290]
    static let bt2020 = [0.708, 0.292, 0.170, 0.797, 0.131, 0.046, 0.3127, 0.3290]

    private static let primaries: [Int: ([Double], String)] = [
        1: (sRGB, "BT.709"), 4: ([0.67, 0.33, 0.21, 0.71, 0.14, 0.08, 0.310, 0.316], "BT.470 M"),
        5: ([0.64, 0.33, 0.29, 0.60, 0.15, 0.06, 0.3127, 0.3290], "BT.470 BG"),
        6: (bt601, "BT.601"), 7: (bt601, "SMPTE 240M"),
        8: ([0.681, 0.319, 0.243, 0.692, 0.145, 0.049, 0.310, 0.316], "generic film"),
        9: (bt2020, "BT.2020"), 11: ([0.680, 0.320, 0.265, 0.690, 0.150, 0.060, 0.314, 0.351], "DCI-P3"),
        12: ([0.680, 0.320, 0.265, 0.690, 0.150, 0.060, 0.3127, 0.3290], "Display P3"),
        22: ([0.630, 0.340, 0.295, 0.605, 0.155, 0.077, 0.3127, 0.3290], "EBU 3213"),
    ]

    private static let curves: [Int: (Curve, String)] = {
        // These are camera curves. Displays use the curve of BT.1886 for such pictures.
        let video = (Curve.power(2.4), "gamma 2.4")
        return [
            1: video, 4: (.power(2.2), "gamma 2.2"), 5: (.power(2.8), "gamma 2.8"), 6: video,
            7: (.parametric(g: 1 / 0.45, a: 1 / 1.1115, b: 0.1115 / 1.1115, c: 0.25, d: 0.0912), "SMPTE 240M curve"),
            8: (.power(1), "linear light"), 11: video, 12: video, 13: (.sRGB, "sRGB curve"), 14: video, 15: video,
            16: (.pq, "PQ"),
            17: (.parametric(g: 2.6, a: pow(52.37 / 48, 1 / 2.6), b: 0, c: 0, d: 0), "SMPTE 428 curve"),
            18: (.hlg, "HLG"),
        ]
    }()

    /// Returns the matrix that converts light between two color spaces.
    static func conversion(from: [Double], to: [Double]) -> [[Double]]? {
        guard let from = toD50(from), let back = toD50(to).flatMap(Matrix.inverse) else { return nil }
        return Matrix.product(back, from)
    }

    /// Returns the matrix from light to XYZ (SMPTE RP 177), adapted to D50 with Bradford's method. Returns nil if the
    /// points are on a line or outside the valid range.
    static func toD50(_ points: [Double]) -> [[Double]]? {
        guard points.count == 8, points.allSatisfy({ (0...1).contains($0) }), points[7] > 0 else { return nil }
        func xyz(_ at: Int) -> [Double] { [points[at], points[at + 1], 1 - points[at] - points[at + 1]] }
        let columns = (0..<3).map { row in [xyz(0)[row], xyz(2)[row], xyz(4)[row]] }
        let white = xyz(6).map { [$0 / points[7]] }
        let bradford = [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]]
        guard let unmixed = Matrix.inverse(columns), let back = Matrix.inverse(bradford) else { return nil }
        let amounts = Matrix.product(unmixed, white).joined()
        let from = Matrix.product(bradford, white).joined()
        let to = Matrix.product(bradford, ICCProfile.white.map { [$0] }).joined()
        guard from.allSatisfy({ $0 > 0.01 }) else { return nil }
        let adapted = zip(bradford, zip(to, from)).map { row, ends in row.map { $0 * ends.0 / ends.1 } }
        let scaled = columns.map { row in zip(row, amounts).map { $0 * $1 } }
        let result = Matrix.product(back, Matrix.product(adapted, scaled))
        return result.joined().allSatisfy({ abs($0) < 100 }) && Matrix.inverse(result) != nil ? result : nil
    }
}

/// Functions for matrices that are stored as rows.
enum Matrix {
    static func product(_ left: [[Double]], _ right: [[Double]]) -> [[Double]] {
        left.map { row in
            right[0].indices.map { column in zip(row, right).reduce(0) { $0 + $1.0 * $1.1[column] } }
        }
    }

    /// Returns the inverse of a 3 × 3 matrix, using cofactors. Returns nil if the matrix has no inverse.
    static func inverse(_ rows: [[Double]]) -> [[Double]]? {
        func minor(_ row: Int, _ column: Int) -> Double {
            let (r, s, c, d) = ((row + 1) % 3, (row + 2) % 3, (column + 1) % 3, (column + 2) % 3)
            return rows[r][c] * rows[s][d] - rows[r][d] * rows[s][c]
        }
        let determinant = rows[0][0] * minor(0, 0) + rows[0][1] * minor(0, 1) + rows[0][2] * minor(0, 2)
        guard abs(determinant) > 1e-6 else { return nil }
        return (0..<3).map { column in (0..<3).map { minor($0, column) / determinant } }
    }
}
