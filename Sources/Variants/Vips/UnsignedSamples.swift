import CVips

extension Image {
    /// Whether the samples are unsigned 16-bit integers.
    var isWide: Bool { format == Int(CVIPS_FORMAT_USHORT) }

    /// The largest sample of 8 or 16 bits. libheif's values with 10 and 12 bits are shifted to the left.
    var largestSample: Int {
        isWide ? 65536 - (1 << max(0, min(8, 16 - (integer("bits-per-sample") ?? 16)))) : 255
    }

    /// Returns the picture with unsigned samples of 8 or 16 bits, as all steps expect. Other samples are converted to
    /// 16 bits.
    ///
    /// Integers are scaled over the full range of their type, which is the default of SMinSampleValue and
    /// SMaxSampleValue (TIFF 6.0 §19). Floats are scaled over 0…1. If there is a profile, it determines what the values
    /// mean. Otherwise, the values are linear light. NaN becomes 0.
    func withUnsignedSamples() throws(RenderError) -> Image {
        let range: (lowest: Double, steps: Double)
        switch format {
        case Int(CVIPS_FORMAT_UCHAR), Int(CVIPS_FORMAT_USHORT): return self
        case Int(CVIPS_FORMAT_CHAR): range = (-0x80, 0xFF)
        case Int(CVIPS_FORMAT_SHORT): range = (-0x8000, 0xFFFF)
        case Int(CVIPS_FORMAT_UINT): range = (0, 0xFFFF_FFFF)
        case Int(CVIPS_FORMAT_INT): range = (-0x8000_0000, 0xFFFF_FFFF)
        default: range = (0, 1)
        }
        let known = [
            CVIPS_INTERPRETATION_MULTIBAND, CVIPS_INTERPRETATION_BW, CVIPS_INTERPRETATION_RGB,
            CVIPS_INTERPRETATION_SRGB, CVIPS_INTERPRETATION_RGB16, CVIPS_INTERPRETATION_GREY16,
            CVIPS_INTERPRETATION_SCRGB,
        ]
        guard known.contains(where: { Int($0) == interpretation }) else { return self }
        let scale = 65_535 / range.steps
        func scaled(_ image: Image) throws(RenderError) -> Image {
            try image.linear([scale], [0.5 - range.lowest * scale]).cast(to: "ushort")
        }
        let colors = bands < 3 ? 1 : 3
        guard range.steps == 1, !has("icc-profile-data") else {
            return try scaled(self).labeled(colors == 1 ? "grey16" : "rgb16")
        }
        let light = try band(0, colors)
        let rgb = colors == 3 ? light : try VipsCall("bandjoin", ["in": .images([light, light, light])]).image()
        let encoded = try VipsCall(
            "colourspace", ["in": .image(rgb.labeled("scrgb")), "space": "rgb16", "source-space": "scrgb"]
        ).image()
        return bands == colors ? encoded : try encoded.joined(alpha: scaled(band(colors))).labeled("rgb16")
    }
}
