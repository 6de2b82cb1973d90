import CVips

/// Operations that compute the new color of each pixel only from its old color.
///
/// Colors are stored sRGB values, 0…255, not premultiplied, and alpha is unchanged, as in the CSS filter functions
/// (Filter Effects 1, §6 and §12). Results are rounded half up and clipped.
extension Picture {
    /// Multiplies the red, green and blue of each pixel by `matrix` and adds `offset` to each component.
    func recolored(
        _ context: RenderContext, _ matrix: [[Double]], offset: Double = 0
    ) throws(RenderError) -> Picture {
        let normalized = try normalized(context)
        let image = normalized.image
        let offsets = [offset + 0.5, offset + 0.5, offset + 0.5] + (image.hasAlpha ? [0.5] : [])
        let mixed = try image.recombined(matrix, keepsAlpha: true)
        return try normalized.replacing(mixed.bytes(plus: offsets).labeled("srgb"))
    }
}

extension Image {
    /// Multiplies the colors of each pixel by the rows of `matrix` and returns floats. Alpha is kept as the last band
    /// or dropped.
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

    /// Multiplies the colors of each pixel by the rows of `matrix`, adds `offsets`, and rounds to RGB with the original
    /// number of bits, 8 or 16. Alpha is kept.
    func mixed(_ matrix: [[Double]], _ offsets: [Double]) throws(RenderError) -> Image {
        let sums = try recombined(matrix, keepsAlpha: true)
        let halves = offsets.map { $0 + 0.5 } + (hasAlpha ? [0.5] : [])
        return try sums.linear(halves.map { _ in 1 }, halves).cast(to: isWide ? "ushort" : "uchar")
            .labeled(isWide ? "rgb16" : "srgb")
    }

    /// Adds an offset to each band and truncates the sums to bytes. Include ½ in the offsets to round the sums.
    func bytes(plus offsets: [Double]) throws(RenderError) -> Image {
        try linear(offsets.map { _ in 1 }, offsets, toBytes: true)
    }

    /// Multiplies each band by its factor and adds its offset. Returns floats, or bytes after truncation.
    func linear(_ factors: [Double], _ offsets: [Double], toBytes: Bool = false) throws(RenderError) -> Image {
        try VipsCall(
            "linear",
            ["in": .image(self), "a": .doubles(factors), "b": .doubles(offsets), "uchar": .bool(toBytes)]
        ).image()
    }

    /// Maps each value with `table`, an image one pixel high.
    func mapped(by table: Image) throws(RenderError) -> Image {
        try VipsCall("maplut", ["in": .image(self), "lut": .image(table)]).image()
    }

    /// Converts to `uchar`, `ushort` or `float`. Fractions are truncated.
    func cast(to format: String) throws(RenderError) -> Image {
        try VipsCall("cast", ["in": .image(self), "format": .string(format)]).image()
    }
}

/// The weights of red, green and blue in a pixel's luminance.
enum Luminance {
    /// The Rec. 709 weights, which Filter Effects 1 uses for `grayscale()`.
    static let weights = [0.2126, 0.7152, 0.0722]
}
