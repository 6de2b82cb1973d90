import CVips

/// Converts whatever a decoder produces to 8-bit sRGB.
enum ColourConversion {
    /// Returns three bands, four with alpha, and the profile that describes the pixels: the original's own if it is
    /// kept, libvips' sRGB profile if the pixels were converted from one, nil if they never had one.
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
                // Ignore a damaged profile, as every viewer does.
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
            result = try result.band(0, 4)
        }
        if result.format != Int(CVIPS_FORMAT_UCHAR) {
            result = try result.cast(to: "uchar")
        }
        return (result, profile)
    }

    /// Whether the profile's header names the pixels' colour space (ICC.1, 7.2.6). libvips would apply a profile of
    /// fewer channels to the first bands, and take the rest for alpha.
    private static func describes(_ profile: [UInt8], _ image: Image) -> Bool {
        let space =
            image.interpretation == Int(CVIPS_INTERPRETATION_CMYK) ? "CMYK" : image.bands < 3 ? "GRAY" : "RGB "
        return profile.count >= 20 && profile[16..<20].elementsEqual(space.utf8)
    }
}
