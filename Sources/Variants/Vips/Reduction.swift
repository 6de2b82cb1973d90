import CResample
import CVips

/// Shrinks pictures to 8 bits, strip by strip as they are decoded: several times faster than libvips' resampler between
/// look-up tables, and in floats throughout.
enum Reduction {
    /// Whether `resize` accepts the image: grey or sRGB in 8 or 16 bits with or without alpha, and no edge grows.
    static func accepts(_ image: Image, _ target: PixelSize) -> Bool {
        let (colours, greys) =
            image.format == Int(CVIPS_FORMAT_UCHAR)
            ? (CVIPS_INTERPRETATION_SRGB, CVIPS_INTERPRETATION_BW)
            : (CVIPS_INTERPRETATION_RGB16, CVIPS_INTERPRETATION_GREY16)
        let bands = [Int(colours): 3, Int(greys): 1][image.interpretation]
        return [CVIPS_FORMAT_UCHAR, CVIPS_FORMAT_USHORT].contains { Int($0) == image.format }
            && image.bands == bands.map { image.hasAlpha ? $0 + 1 : $0 }
            && target.width <= image.width && target.height <= image.height
    }

    /// How far a picture reaches from the top left, in pixels of the image that holds it.
    struct Extent {
        var width, height: Double
    }

    /// Computes the image and shrinks the picture in it, which is all of it without an `extent`, to exactly `target`; a
    /// colour profile stays attached. `lights`: see `RenderLight.linearShares`.
    static func resize(
        _ image: Image, _ extent: Extent? = nil, to target: PixelSize, lights: [Double], _ control: RenderControl
    ) throws(RenderError) -> Image {
        let parts = lights.map { Part(image, extent, to: target, linear: $0) }
        var rows = CalmRows()
        let made = try pixels(of: image, parts, control) {
            if parts.count > 1 { rows.look(at: $0, bands: image.bands) }
        }
        return try picture(made[rows.index(of: lights)], target, like: image)
    }

    /// A part of a picture, and the size it is shrunk to.
    struct Part {
        /// Edge of the squares of pixels that are averaged first, without linearising them.
        var box = 1
        /// How far the part reaches from the top left of the averaged picture, in pixels of that.
        var width, height: Double
        var target: PixelSize
        /// How much of what is added up is linear light, 0…1 (`RenderLight.linearShares`).
        var linear: Double

        /// The whole of the picture in an image, which is all of it without an `extent`.
        init(_ image: Image, _ extent: Extent? = nil, box: Int = 1, to target: PixelSize, linear: Double) {
            (self.box, self.target, self.linear) = (box, target, linear)
            width = (extent?.width ?? Double(image.width)) / Double(box)
            height = (extent?.height ?? Double(image.height)) / Double(box)
        }
    }

    /// The size of a picture whose squares of `box` × `box` pixels have been averaged.
    static func boxed(_ size: PixelSize, _ box: Int) -> PixelSize {
        PixelSize(width: (size.width + box - 1) / box, height: (size.height + box - 1) / box)
    }

    /// Computes the image once, shrinks parts of it, and returns their pixels in order. `look` sees each strip too.
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

    /// Makes a picture of shrunk pixels, with the colour profile of the image they are from.
    static func picture(
        _ pixels: PixelStorage, _ target: PixelSize, like image: Image
    ) throws(RenderError) -> Image {
        let bands = image.bands
        let result = try Image(pixels, width: target.width, height: target.height, bands: bands)
            .labelled(bands < 3 ? "b-w" : "srgb")
        result.copyProfile(from: image)
        return result
    }
}
