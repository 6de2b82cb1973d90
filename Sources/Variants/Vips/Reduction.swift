import CResample
import CVips

/// Shrinks pictures to 8 bits, strip by strip during decoding. This uses floats throughout, and is several times faster
/// than libvips' resampler with look-up tables.
enum Reduction {
    /// Whether `resize` supports the image: it must be gray or sRGB with 8 or 16 bits, with or without alpha, and no
    /// edge may grow.
    static func accepts(_ image: Image, _ target: PixelSize) -> Bool {
        let (colors, grays) =
            image.format == Int(CVIPS_FORMAT_UCHAR)
            ? (CVIPS_INTERPRETATION_SRGB, CVIPS_INTERPRETATION_BW)
            : (CVIPS_INTERPRETATION_RGB16, CVIPS_INTERPRETATION_GREY16)
        let bands = [Int(colors): 3, Int(grays): 1][image.interpretation]
        return [CVIPS_FORMAT_UCHAR, CVIPS_FORMAT_USHORT].contains { Int($0) == image.format }
            && image.bands == bands.map { image.hasAlpha ? $0 + 1 : $0 }
            && target.width <= image.width && target.height <= image.height
    }

    /// The area that a picture covers in an image, measured from the top left in pixels.
    struct Extent {
        var width, height: Double
    }

    /// Computes the image and shrinks the picture in it to exactly `target`. The picture fills the image if `extent` is
    /// nil. A color profile stays attached. For `lights`, see `RenderLight.linearShares`.
    static func resize(
        _ image: Image, _ extent: Extent? = nil, to target: PixelSize, lights: [Double], _ control: RenderControl
    ) throws(RenderError) -> Image {
        let parts = lights.map { Part(image, extent, to: target, linear: $0) }
        var rows = DrawingDetector()
        let made = try pixels(of: image, parts, control) {
            if parts.count > 1 { rows.examine(at: $0, bands: image.bands) }
        }
        return try picture(made[rows.index(of: lights)], target, like: image)
    }

    /// A part of a picture, and the size to which it is shrunk.
    struct Part {
        /// The edge of the squares that are averaged first, without conversion to linear light.
        var box = 1
        /// The size of the part, measured from the top left of the averaged picture in its pixels.
        var width, height: Double
        var target: PixelSize
        /// The fraction of linear light, 0…1 (`RenderLight.linearShares`).
        var linear: Double

        /// Creates a part that covers the complete picture. The picture fills the image if `extent` is nil.
        init(_ image: Image, _ extent: Extent? = nil, box: Int = 1, to target: PixelSize, linear: Double) {
            (self.box, self.target, self.linear) = (box, target, linear)
            width = (extent?.width ?? Double(image.width)) / Double(box)
            height = (extent?.height ?? Double(image.height)) / Double(box)
        }
    }

    /// Returns the size of a picture after averaging squares of `box` × `box` pixels.
    static func boxed(_ size: PixelSize, _ box: Int) -> PixelSize {
        PixelSize(width: (size.width + box - 1) / box, height: (size.height + box - 1) / box)
    }

    /// Computes the image once, shrinks parts of it, and returns their pixels in order. Calls `look` with each strip.
    static func pixels(
        of image: Image, _ parts: [Part], _ control: RenderControl, _ look: (Image.Tile) -> Void = { _ in }
    ) throws(RenderError) -> [PixelStorage] {
        let decoded = ReductionLevel(image)
        var levels = [decoded]
        for box in Set(parts.map(\.box)).sorted() where box > 1 {
            let larger = levels.last { box.isMultiple(of: $0.box) } ?? decoded
            let level = try ReductionLevel(of: larger, box: box)
            larger.smaller.append(level)
            levels.append(level)
        }
        var results: [PixelStorage] = []
        for part in parts {
            let level = levels.last { $0.box == part.box } ?? decoded
            results.append(try level.reduce(part))
        }
        try image.forEachTile(nil, control) { strip in
            look(strip)
            decoded.push(strip)
        }
        return results
    }

    /// Creates a picture from shrunk pixels, with the color profile of the source image.
    static func picture(
        _ pixels: PixelStorage, _ target: PixelSize, like image: Image
    ) throws(RenderError) -> Image {
        let bands = image.bands
        let result = try Image(pixels, width: target.width, height: target.height, bands: bands)
            .labeled(bands < 3 ? "b-w" : "srgb")
        result.copy("icc-profile-data", from: image)
        return result
    }
}
