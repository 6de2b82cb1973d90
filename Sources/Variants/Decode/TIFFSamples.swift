import CVips

/// Decodes TIFF samples that libvips 8.14 misreads. libvips copies the stored samples, and this type interprets them.
///
/// libvips treats YCbCr and ICC L*a*b* as RGB. It misreads CIE L*a*b* with alpha or in planes, gray in planes, and all
/// tiled planes. It divides by associated alpha only for RGB and gray with 8 or 16 bits, and inverts WhiteIsZero only
/// for unsigned integers.
/// 1. TIFF 6.0: ExtraSamples (§18), ReferenceBlackWhite (§20), YCbCr (§21), CIE L*a*b* (§23).
/// 2. Adobe Photoshop TIFF Technical Notes (2002): ICC L*a*b*.
struct TIFFSamples {
    private let picture: TIFFHeader
    private let photometric: Int
    private let samples: Int
    private let colors: Int
    private let isFloat: Bool
    private let isAssociated: Bool
    /// The index of the alpha sample.
    private let alpha: Int?
    /// Whether the decompressor converts YCbCr to RGB.
    private let isConverted: Bool
    /// Whether each sample is a tiled plane.
    private let isStacked: Bool

    /// Returns the number of color samples for a PhotometricInterpretation.
    static func colors(_ photometric: Int) -> Int {
        switch photometric {
        case 2, 6, 8, 9: 3
        case 5: 4
        default: 1
        }
    }

    /// Whether the decompressor converts YCbCr to RGB. This is the case for JPEG (two compression numbers) and JPEG
    /// 2000 (three numbers).
    static func isConverted(_ picture: TIFFHeader) -> Bool {
        picture.value(262) == 6 && [6, 7, 33003, 33005, 34712].contains(picture.value(259))
    }

    /// Returns nil if libvips reads the samples correctly.
    init?(_ picture: TIFFHeader) {
        self.picture = picture
        photometric = picture.value(262) ?? 1
        samples = picture.value(277) ?? 1
        colors = Self.colors(photometric)
        guard samples >= colors, [0, 1, 2, 5, 6, 8, 9].contains(photometric) else { return nil }
        let kind = picture.value(339) ?? 1
        isFloat = kind == 3
        let extra = Array(picture.numbers(338, limit: 8).prefix(samples - colors))
        let index = extra.firstIndex { $0 == 1 || $0 == 2 } ?? 0
        alpha = samples > colors ? colors + index : nil
        isAssociated = extra.indices.contains(index) && extra[index] == 1
        isConverted = Self.isConverted(picture)
        let isApart = picture.value(284) == 2 && samples > 1
        isStacked = isApart && samples <= 5 && picture.value(322) != nil && !isConverted
        guard
            isStacked || isAssociated || photometric == 6 && !isConverted || photometric > 6
                || photometric < 2 && isApart || photometric == 0 && (kind == 2 || kind == 3)
        else { return nil }
    }

    /// Returns the picture with samples of 8 or 16 bits or with floats. Returns nil if the directory is damaged.
    ///
    /// - Parameter options: the arguments of the loader.
    func image(_ options: [(String, VipsArgument)]) throws(RenderError) -> Image? {
        guard let (file, rows) = picture.plain(keepsColors: isConverted, planes: isStacked ? samples : nil) else {
            return nil
        }
        var image = try TIFFDecoder.load(.stored(file), options)
        if isStacked, let width = picture.value(256), let height = picture.value(257) {
            var planes: [Image] = []
            for plane in 0..<samples {
                if plane > 0 { image = try TIFFDecoder.load(.stored(file), options) }
                planes.append(try image.area(PixelRectangle(x: 0, y: plane * rows, width: width, height: height)))
            }
            image = try VipsCall("bandjoin", ["in": .images(planes)]).image()
        }
        let isDeep = (picture.value(258) ?? 1) > 8
        let space =
            switch colors {
            case 1: isDeep ? "grey16" : "b-w"
            case 4: "cmyk"
            default: isFloat ? "scrgb" : isDeep ? "rgb16" : "srgb"
            }
        let all = image
        image = try all.band(0, colors)
        if let alpha { image = try image.joined(alpha: all.band(alpha)) }
        image = try image.labeled(space)
        if !isFloat { image = try image.withUnsignedSamples() }
        let most = isFloat ? 1 : image.isWide ? 65535.0 : 255
        switch photometric {
        case 0:
            let inverted = try image.linear(alpha == nil ? [-1] : [-1, 1], alpha == nil ? [most] : [most, 0])
            image = isFloat ? inverted : try inverted.cast(to: image.isWide ? "ushort" : "uchar")
        case 6 where !isConverted: image = try rgb(ofYCbCr: image, most)
        case 8, 9: image = try rgb(ofLab: image)
        default: break
        }
        return isAssociated ? try image.dividedByAlpha() : image
    }

    /// Converts YCbCr using YCbCrCoefficients and ReferenceBlackWhite, or their defaults.
    private func rgb(ofYCbCr image: Image, _ most: Double) throws(RenderError) -> Image {
        let given = picture.rationals(529, limit: 3)
        let luma = given.count == 3 && given.allSatisfy { $0 > 0 } ? given : [0.299, 0.587, 0.114]
        let half = (most + 1) / 2
        let ends = picture.rationals(532, limit: 6)
        let hasEnds = ends.count == 6 && (0..<3).allSatisfy { ends[2 * $0 + 1] > ends[2 * $0] }
        let range = hasEnds ? ends : [0, most, half, most, half, most]
        let (red, blue) = (2 - 2 * luma[0], 2 - 2 * luma[2])
        let matrix = [
            [1, 0, red], [(1 - luma[0] - luma[2]) / luma[1], -luma[2] * blue / luma[1], -luma[0] * red / luma[1]],
            [1, blue, 0],
        ]
        let scales = [most, half - 1, half - 1].enumerated().map { $1 / (range[2 * $0 + 1] - range[2 * $0]) }
        let rows = matrix.map { zip($0, scales).map(*) }
        return try image.mixed(rows, rows.map { row in (0..<3).reduce(0) { $0 - row[$1] * range[2 * $1] } })
    }

    /// Converts L*a*b* to 16-bit RGB and removes the profile, because it describes L*a*b*.
    private func rgb(ofLab image: Image) throws(RenderError) -> Image {
        let (count, unit) = image.isWide ? (65536, 256.0) : (256, 1)
        // a* and b* are signed in CIE L*a*b*, but have an offset in ICC L*a*b*. The 16-bit range of ICC L*a*b* ends at
        // 0xFF00.
        let lightest = image.isWide ? photometric == 9 ? 65280.0 : 65535 : 255
        let table = try Image.table(count) { value in
            let isNegative = photometric == 8 && value >= count / 2
            return Double(isNegative ? value - count : photometric == 8 ? value : value - count / 2) / unit
        }
        let parts = [try image.band(0).linear([100 / lightest], [0]), try image.band(1, 2).mapped(by: table)]
        let lab = try VipsCall("bandjoin", ["in": .images(parts)]).image().labeled("lab")
        var result = try VipsCall("colourspace", ["in": .image(lab), "space": "rgb16", "source-space": "lab"]).image()
        if image.hasAlpha {
            let alpha = try image.band(3).linear([image.isWide ? 1 : 257], [0]).cast(to: "ushort")
            result = try result.joined(alpha: alpha).labeled("rgb16")
        }
        result.set("icc-profile-data", nil)
        return result
    }
}
