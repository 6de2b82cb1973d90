import CVips

extension Tint {
    /// Maps each pixel's luminance (as in `grayscale`) to a shade: black stays black, white stays white, the luminance
    /// of `colour` becomes `colour` itself, and luminances in between are interpolated.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let settled = try picture.settled(context)
        let image = settled.image
        // Computed in 16 bits: of 8-bit luminances, only few are darker than a dark colour.
        let wide = try image.recombined([Luminance.weights.map { $0 * 257 }], keepsAlpha: false)
        let luminance = try VipsCall(
            "linear", ["in": .image(wide), "a": .doubles([1]), "b": .doubles([0.5])]
        ).image()
        let index = try VipsCall("cast", ["in": .image(luminance), "format": "ushort"]).image()
        var result = try VipsCall("maplut", ["in": .image(index), "lut": .image(table())]).image()
        if image.hasAlpha { result = try VipsCall("bandjoin", ["in": .images([result, image.band(3)])]).image() }
        return try settled.replacing(result.labelled("srgb"))
    }

    /// Luminance 0…65535 → colour.
    private func table() throws(RenderError) -> Image {
        let ends = [colour.red, colour.green, colour.blue].map(Double.init)
        let middle = zip(ends, Luminance.weights).reduce(0) { $0 + $1.0 * $1.1 }
        let storage = PixelStorage(byteCount: 3 << 16)
        let bytes = storage.mutableBytes
        for entry in 0..<(1 << 16) {
            let luminance = Double(entry) / 257
            for band in 0..<3 {
                let value =
                    luminance < middle
                    ? ends[band] * luminance / middle
                    : middle < 255
                        ? ends[band] + (255 - ends[band]) * (luminance - middle) / (255 - middle) : ends[band]
                bytes[entry * 3 + band] = UInt8(min(255, max(0, value.rounded())))
            }
        }
        return try Image(storage, width: 1 << 16, height: 1, bands: 3)
    }
}
