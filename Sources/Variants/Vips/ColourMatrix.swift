import CVips

/// Steps that give each pixel a new colour from its own alone.
///
/// Colours are sRGB values as stored, 0…255, not multiplied with alpha, which stays: as the CSS filter functions have
/// it (Filter Effects 1, §6 and §12). Results are rounded half up and clipped.
extension Picture {
    /// Red, green and blue each become the sum of the three times a row of `matrix`, plus `offset`.
    func recoloured(
        _ context: RenderContext, _ matrix: [[Double]], offset: Double = 0
    ) throws(RenderError) -> Picture {
        let settled = try settled(context)
        let image = settled.image
        let offsets = [offset + 0.5, offset + 0.5, offset + 0.5] + (image.hasAlpha ? [0.5] : [])
        let mixed = try image.recombined(matrix, keepsAlpha: true)
        return try settled.replacing(mixed.bytes(plus: offsets).labelled("srgb"))
    }
}

extension Image {
    /// Each pixel's colours times the rows of `matrix`, as floats; alpha kept as the last band, or left out.
    func recombined(_ matrix: [[Double]], keepsAlpha: Bool) throws(RenderError) -> Image {
        var rows = matrix
        if hasAlpha {
            rows = rows.map { $0 + [0] }
            if keepsAlpha { rows.append([0, 0, 0, 1]) }
        }
        let storage = PixelStorage(rows.flatMap { $0 }.withUnsafeBytes { [UInt8]($0) })
        let table = try Image(
            storage, width: rows[0].count, height: rows.count, bands: 1, format: Int(CVIPS_FORMAT_DOUBLE))
        return try VipsCall("recomb", ["in": .image(self), "m": .image(table)]).image()
    }

    /// Each band plus its offset, cut down to bytes; ½ in an offset makes that rounding.
    func bytes(plus offsets: [Double]) throws(RenderError) -> Image {
        let factors = [Double](repeating: 1, count: offsets.count)
        return try VipsCall(
            "linear", ["in": .image(self), "a": .doubles(factors), "b": .doubles(offsets), "uchar": true]
        ).image()
    }
}

/// What a pixel's red, green and blue weigh in its luminance.
enum Luminance {
    /// The weights of Filter Effects 1 for `grayscale()`; those of Rec. 709.
    static let weights = [0.2126, 0.7152, 0.0722]
}
