import CVips

/// Converts decoded pixels to 8-bit sRGB.
enum ColorConversion {
    /// Returns three bands, or four with alpha, and the profile that describes the pixels. This is the original's own
    /// profile if it is kept, libvips' sRGB profile if the pixels were converted, or nil if the original has no
    /// profile.
    static func sRGB(_ image: Image, keepsProfile: Bool) throws(RenderError) -> (image: Image, profile: [UInt8]?) {
        var result = image
        var profile: [UInt8]?
        let isCMYK = image.interpretation == Int(CVIPS_INTERPRETATION_CMYK)
        let own = ownProfile(image)
        if keepsProfile && !isCMYK && image.bands >= 3 {
            profile = own?.bytes
        } else if isCMYK || own != nil {
            // "cmyk" is libvips' built-in profile for CMYK pictures without a profile.
            let fallback = isCMYK ? "cmyk" : "srgb"
            do throws(RenderError) {
                // libvips would clip 16-bit alpha to 8 bits.
                let isWide = image.hasAlpha && image.format == Int(CVIPS_FORMAT_USHORT)
                result = try VipsCall(
                    "icc_transform",
                    [
                        "in": .image(isWide ? image.band(0, image.bands - 1) : image), "output-profile": "srgb",
                        "embedded": .bool(own != nil), "input-profile": .string(fallback),
                        "intent": .string(own?.intent ?? "relative"),
                    ]
                ).image()
                if isWide {
                    let alpha = try image.band(image.bands - 1)
                    result = try result.joined(alpha: alpha.linear([1.0 / 257], [0.5], toBytes: true))
                }
                profile = result.blob("icc-profile-data")
            } catch  where !isCMYK {
                // Ignore a damaged profile, as all viewers do.
                result = image
            }
        }
        if result.interpretation != Int(CVIPS_INTERPRETATION_SRGB) || result.bands < 3 {
            if result.interpretation == Int(CVIPS_INTERPRETATION_MULTIBAND) {
                result = try result.labeled(result.bands < 3 ? "b-w" : "srgb")
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

    /// Returns the picture with the color space that its file names: as an ICC profile, or converted to sRGB if its
    /// values are not suitable for resizing.
    static func described(
        _ image: Image, _ named: (_ hasProfile: Bool) -> CodedColorSpace?
    ) throws(RenderError) -> Image {
        let hasProfile = ownProfile(image) != nil
        guard let color = named(hasProfile), !color.isSRGB || hasProfile else { return image }
        let isFar = color.isFarFromSRGB
        let result = try isFar ? image.throughLight(from: color) : VipsCall("copy", ["in": .image(image)]).image()
        result.set("icc-profile-data", isFar || color.isSRGB ? nil : color.profile(isGray: image.bands < 3))
        return result
    }

    /// Returns the image's profile and the rendering intent for the conversion, if the profile is usable and matches
    /// the color space of the pixels. libvips would apply a profile with fewer channels to the first bands and treat
    /// the other bands as alpha.
    private static func ownProfile(_ image: Image) -> (bytes: [UInt8], intent: String)? {
        let space: StaticString =
            image.interpretation == Int(CVIPS_INTERPRETATION_CMYK) ? "CMYK" : image.bands < 3 ? "GRAY" : "RGB "
        guard let profile = image.blob("icc-profile-data"),
            let intent = profile.withUnsafeBytes({ ICCProfile.intent(ByteReader($0), for: space) })
        else { return nil }
        return (profile, intent)
    }
}
