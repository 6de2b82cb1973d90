import CResample
import CVips

/// Shrinking 8-bit pictures in linear light, strip after strip as they are decoded: several times faster than libvips'
/// resampler between look-up tables, and in floats throughout.
enum Reduction {
    /// Whether `resize` takes the image: grey or sRGB in 8 bits with or without alpha, no edge growing.
    static func accepts(_ image: Image, _ target: PixelSize) -> Bool {
        image.format == Int(CVIPS_FORMAT_UCHAR)
            && (image.interpretation == Int(CVIPS_INTERPRETATION_SRGB)
                ? image.bands == (image.hasAlpha ? 4 : 3)
                : image.interpretation == Int(CVIPS_INTERPRETATION_BW) && image.bands == (image.hasAlpha ? 2 : 1))
            && target.width <= image.width && target.height <= image.height
    }

    /// Computes the image and shrinks it to exactly `target`; a colour profile stays attached.
    static func resize(
        _ image: Image, to target: PixelSize, _ control: RenderControl
    ) throws(RenderError) -> Image {
        let (width, bands) = (image.width, image.bands)
        let pixels = PixelStorage(byteCount: target.width * target.height * bands)
        guard let out = pixels.mutableBytes.baseAddress,
            let state = cresample_new(
                Int32(width), Int32(image.height), Int32(bands), Int32(target.width), Int32(target.height),
                out)
        else { throw RenderError(.overLimit, "no memory to resize \(width) × \(image.height) pixels") }
        defer { cresample_free(state) }
        let rowBytes = width * bands
        try image.forEachTile(nil, control) { strip, _, _, _ in
            guard let start = strip.baseAddress else { return }
            cresample_push(
                state, start.assumingMemoryBound(to: UInt8.self), rowBytes, Int32(strip.count / rowBytes))
        }
        let result = try Image(pixels, width: target.width, height: target.height, bands: bands)
            .labelled(bands < 3 ? "b-w" : "srgb")
        result.copyProfile(from: image)
        return result
    }
}
