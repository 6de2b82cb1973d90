import CVips

/// Scales to an exact size with libvips, in gamma space as stored or in linear light, if an edge grows and `Reduction`
/// cannot.
///
/// Linear light goes through 16-bit look-up tables of the sRGB curve (IEC 61966-2-1) around libvips' own resampler.
/// Alpha is premultiplied while resizing, so that transparent pixels contribute no colour.
enum Resize {
    /// Accepts grey or RGB in 8 or 16 bits, each with or without alpha; everything else has to be converted first.
    static func accepts(_ image: Image) -> Bool {
        let space = image.interpretation
        return [CVIPS_FORMAT_UCHAR, CVIPS_FORMAT_USHORT].contains { Int($0) == image.format }
            && image.bands <= 4
            && [
                CVIPS_INTERPRETATION_BW, CVIPS_INTERPRETATION_SRGB, CVIPS_INTERPRETATION_RGB16,
                CVIPS_INTERPRETATION_GREY16,
            ].contains { Int($0) == space }
    }

    static func resize(_ image: Image, to target: PixelSize, linear: Bool) throws(RenderError) -> Image {
        let hasAlpha = image.hasAlpha
        let is16Bit = image.format == Int(CVIPS_FORMAT_USHORT)
        var work = linear ? try linearised(image, is16Bit: is16Bit, hasAlpha: hasAlpha) : image
        let wide = linear || is16Bit
        if hasAlpha {
            work = try VipsCall("premultiply", ["in": .image(work), "max-alpha": wide ? 65535 : 255]).image()
        }
        work = try scaled(work, to: target)
        if hasAlpha {
            work = try VipsCall("unpremultiply", ["in": .image(work), "max-alpha": wide ? 65535 : 255]).image()
            work = try work.cast(to: wide ? "ushort" : "uchar")
        }
        return linear ? try encoded(work, isGrey: image.bands < 3, hasAlpha: hasAlpha) : work
    }

    /// Shrinks edges with libvips' resampler and enlarges them with its bicubic interpolation, as libvips' `resize`
    /// does; but that enlarges half a pixel off in libvips 8.14.
    static func scaled(
        _ image: Image, to target: PixelSize, kernel: String = "lanczos3"
    ) throws(RenderError) -> Image {
        let shrunk = try shrunk(
            image, to: PixelSize(width: min(target.width, image.width), height: min(target.height, image.height)),
            kernel: kernel)
        let across = Double(target.width) / Double(shrunk.width)
        let down = Double(target.height) / Double(shrunk.height)
        if across == 1 && down == 1 { return shrunk }
        // Sizes count from pixels' edges but libvips' positions from their centres, so the first pixel's centre moves.
        return try VipsCall(
            "affine",
            [
                "in": .image(shrunk), "matrix": .doubles([across, 0, 0, down]),
                "interpolate": kernel == "linear" ? "bilinear" : "bicubic",
                "oarea": .string("0 0 \(target.width) \(target.height)"), "odx": .double((across - 1) / 2),
                "ody": .double((down - 1) / 2), "extend": "copy", "premultiplied": true,
            ]
        ).image()
    }

    /// Shrinks with libvips' `resize`, and corrects the size if libvips rounds it differently.
    private static func shrunk(_ image: Image, to target: PixelSize, kernel: String) throws(RenderError) -> Image {
        if target.width == image.width && target.height == image.height { return image }
        let result = try VipsCall(
            "resize",
            [
                "in": .image(image), "scale": .double(Double(target.width) / Double(image.width)),
                "vscale": .double(Double(target.height) / Double(image.height)), "kernel": .string(kernel),
            ]
        ).image()
        if result.width == target.width && result.height == target.height { return result }
        return try result.placed(on: target, x: 0, y: 0, extend: "copy")
    }

    private static func linearised(_ image: Image, is16Bit: Bool, hasAlpha: Bool) throws(RenderError) -> Image {
        let table = try is16Bit ? Tables.shared.get().wideToLinear : Tables.shared.get().byteToLinear
        return try mapped(image, table, hasAlpha: hasAlpha) { alpha throws(RenderError) in
            try is16Bit ? alpha : alpha.mapped(by: Tables.shared.get().widen)
        }
    }

    private static func encoded(_ image: Image, isGrey: Bool, hasAlpha: Bool) throws(RenderError) -> Image {
        let tables = try Tables.shared.get()
        return try mapped(image, tables.linearToByte, hasAlpha: hasAlpha) { alpha throws(RenderError) in
            try alpha.mapped(by: tables.narrow)
        }.labelled(isGrey ? "b-w" : "srgb")
    }

    /// Maps colour bands through `table`, and the last band through `alpha` if it is an alpha band.
    private static func mapped(
        _ image: Image, _ table: Image, hasAlpha: Bool, alpha: (Image) throws(RenderError) -> Image
    ) throws(RenderError) -> Image {
        guard hasAlpha else { return try image.mapped(by: table) }
        let count = image.bands - 1
        return try image.band(0, count).mapped(by: table).joined(alpha: alpha(image.band(count)))
    }

    /// The look-up tables, made once.
    private struct Tables: Sendable {
        /// sRGB 0…255 or 0…65535 → linear 0…65535.
        let byteToLinear: Image
        let wideToLinear: Image
        /// Linear 0…65535 → sRGB 0…255. At the curve's steepest, 19.9 linear steps make one step of the result.
        let linearToByte: Image
        /// Alpha 0…255 ↔ 0…65535.
        let widen: Image
        let narrow: Image

        static let shared = Result { () throws(RenderError) in try Tables() }

        init() throws(RenderError) {
            func wide(_ count: Int, _ value: (Double) -> Double) throws(RenderError) -> Image {
                let entries = (0..<count).map { UInt16((65535 * value(Double($0) / Double(count - 1))).rounded()) }
                let storage = PixelStorage(entries.withUnsafeBytes { [UInt8]($0) })
                return try Image(storage, width: count, height: 1, bands: 1, format: Int(CVIPS_FORMAT_USHORT))
            }
            func narrow(_ value: (Double) -> Double) throws(RenderError) -> Image {
                let entries = (0..<65536).map { UInt8((255 * value(Double($0) / 65535)).rounded()) }
                return try Image(PixelStorage(entries), width: 65536, height: 1, bands: 1)
            }
            byteToLinear = try wide(256, SRGBCurve.linear)
            wideToLinear = try wide(65536, SRGBCurve.linear)
            linearToByte = try narrow(SRGBCurve.encoded)
            widen = try wide(256) { $0 }
            self.narrow = try narrow { $0 }
        }
    }
}
