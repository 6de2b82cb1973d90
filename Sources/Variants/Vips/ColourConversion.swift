import CVips

/// From whatever a decoder gives to sRGB in 8 bits.
enum ColourConversion {
    /// Three bands, four with alpha. The profile returned describes the pixels: the original's own where it is kept,
    /// libvips' sRGB profile where one was converted from, nil for pixels that never had one.
    static func sRGB(_ image: Image, keepsProfile: Bool) throws(RenderError) -> (image: Image, profile: [UInt8]?) {
        var result = image
        var profile: [UInt8]?
        let isCMYK = image.interpretation == Int(CVIPS_INTERPRETATION_CMYK)
        let own = image.blob("icc-profile-data").flatMap { describes($0, image) ? $0 : nil }
        if keepsProfile && !isCMYK && image.bands >= 3 {
            profile = own
        } else if isCMYK || own != nil {
            // "cmyk" is libvips' own press profile, for pictures without one.
            let fallback = isCMYK ? "cmyk" : "srgb"
            do throws(RenderError) {
                result = try VipsCall(
                    "icc_transform",
                    [
                        "in": .image(image), "output-profile": "srgb", "embedded": .bool(own != nil),
                        "input-profile": .string(fallback),
                    ]
                ).image()
                profile = result.blob("icc-profile-data")
            } catch  where !isCMYK {
                // A damaged profile: what every viewer does is ignore it.
                result = image
            }
        }
        if result.interpretation != Int(CVIPS_INTERPRETATION_SRGB) || result.bands < 3 {
            if result.interpretation == Int(CVIPS_INTERPRETATION_MULTIBAND) {
                result = try result.labelled(result.bands < 3 ? "b-w" : "srgb")
            }
            result = try VipsCall("colourspace", ["in": .image(result), "space": "srgb"]).image()
        }
        if result.bands > 4 {
            result = try VipsCall("extract_band", ["in": .image(result), "band": 0, "n": 4]).image()
        }
        if result.format != Int(CVIPS_FORMAT_UCHAR) {
            result = try VipsCall("cast", ["in": .image(result), "format": "uchar"]).image()
        }
        return (result, profile)
    }

    /// Whether a profile is of the pixels' colour space (ICC.1, 7.2.6), as its header says. libvips takes one of fewer
    /// channels for a profile of the first bands, and the rest for alpha.
    private static func describes(_ profile: [UInt8], _ image: Image) -> Bool {
        let space =
            image.interpretation == Int(CVIPS_INTERPRETATION_CMYK) ? "CMYK" : image.bands < 3 ? "GRAY" : "RGB "
        return profile.count >= 20 && profile[16..<20].elementsEqual(space.utf8)
    }
}
