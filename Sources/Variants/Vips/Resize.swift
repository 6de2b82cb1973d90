import CVips

/// Scales to an exact size with libvips, in gamma space or in linear light. It is used if an edge grows, and for
/// pictures that `Reduction` does not support.
///
/// For linear light, look-up tables of the sRGB curve (IEC 61966-2-1) are applied before and after libvips' resampler,
/// which works in floats. Alpha is premultiplied while resizing, so that transparent pixels contribute no color.
enum Resize {
    /// Whether the image is 8-bit gray or sRGB, with or without alpha. Other pictures must be converted first.
    static func accepts(_ image: Image) -> Bool {
        image.format == Int(CVIPS_FORMAT_UCHAR) && image.bands <= 4
            && [CVIPS_INTERPRETATION_BW, CVIPS_INTERPRETATION_SRGB].contains { Int($0) == image.interpretation }
    }

    static func resize(_ image: Image, to target: PixelSize, linear: Bool) throws(RenderError) -> Image {
        let colors = image.hasAlpha ? image.bands - 1 : image.bands
        var work = linear ? try image.band(0, colors).mapped(by: Tables.shared.get().toLinear) : image
        if image.hasAlpha {
            if linear { work = try work.joined(alpha: image.band(colors)) }
            work = try scaled(work.premultiplied(), to: target)
            work = try VipsCall("unpremultiply", ["in": .image(work), "max-alpha": 255]).image()
            if !linear { return try work.cast(to: "uchar") }
        } else {
            work = try scaled(work, to: target)
            if !linear { return work }
        }
        let result = try work.band(0, colors).linear([257], [0.5]).cast(to: "ushort")
            .mapped(by: Tables.shared.get().toBytes)
        let whole = try image.hasAlpha ? result.joined(alpha: work.band(colors).bytes(plus: [0.5])) : result
        return try whole.labeled(colors == 1 ? "b-w" : "srgb")
    }

    /// Shrinks edges with libvips' resampler and enlarges them with its bicubic interpolation. The `resize` operation
    /// of libvips does the same, but in libvips 8.14 it enlarges half a pixel off.
    static func scaled(
        _ image: Image, to target: PixelSize, kernel: String = "lanczos3"
    ) throws(RenderError) -> Image {
        let shrunk = try shrunk(
            image, to: PixelSize(width: min(target.width, image.width), height: min(target.height, image.height)),
            kernel: kernel)
        let across = Double(target.width) / Double(shrunk.width)
        let down = Double(target.height) / Double(shrunk.height)
        if across == 1 && down == 1 { return shrunk }
        // Sizes are measured between the edges of pixels, but libvips measures positions from their centers, so the
        // center of the first pixel moves.
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

    /// The look-up tables, which are created once.
    private struct Tables: Sendable {
        /// Maps sRGB 0…255 to linear 0…255, in floats.
        let toLinear: Image
        /// Maps linear 0…65535 to sRGB 0…255. Where the curve is steepest, 19.9 linear steps correspond to one step of
        /// the result.
        let toBytes: Image

        static let shared = Result { () throws(RenderError) in try Tables() }

        init() throws(RenderError) {
            toLinear = try Image.table(256) { 255 * SRGBCurve.linear(Double($0) / 255) }
            let encoded = (0..<65536).map { UInt8((255 * SRGBCurve.encoded(Double($0) / 65535)).rounded()) }
            toBytes = try Image(PixelStorage(encoded), width: 65536, height: 1, bands: 1)
        }
    }
}
