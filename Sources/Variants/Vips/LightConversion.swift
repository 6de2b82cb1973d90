import CVips
import Glibc

/// Maps HDR light to SDR as browsers do, using the reference white tone mapping of SMPTE ST 2094-50, annex D.
///
/// The largest of red, green and blue in BT.2020 determines the factor by which all three are dimmed. Up to reference
/// white, the factor is constant: ½ for a peak of at least 1000 nits. Above reference white, a quadratic Bézier curve
/// leads to the peak.
struct ToneMap {
    /// Reference white in nits (ITU-R BT.2408). Light values are relative to it.
    static let white = 203.0
    /// The brightest light that PQ can represent.
    static let brightest = 10_000 / white

    /// The brightest light in the picture.
    let peak: Double

    /// Returns the factor for pixels whose largest component is `light`.
    func gain(_ light: Double) -> Double {
        if light >= max(1, peak) { return 1 / light }
        let knee = 1 - 0.5 * min(1, log2(max(1, peak)) / log2(1000 / Self.white))
        if light <= 1 { return knee }
        let middle = (x: 0.35 + 0.65 / knee, y: 0.35 * knee + 0.65)
        // Solve for the curve's parameter at this light: a·t² + 2·b·t + 1 = light.
        let (a, b) = (1 - 2 * middle.x + peak, middle.x - 1)
        let t = (light - 1) / (b + sqrt(max(0, b * b + a * (light - 1))))
        return (knee * (1 - t) * (1 - t) + 2 * middle.y * t * (1 - t) + t * t) / light
    }
}

extension Image {
    /// Converts pixels from this color space to 8-bit sRGB, using floats in linear light. Alpha is unchanged.
    func throughLight(from color: CodedColorSpace) throws(RenderError) -> Image {
        let top = largestSample
        let count = hasAlpha ? bands - 1 : bands
        let curve = try Image.table(isWide ? 65536 : 256) { color.curve.light(min(1, Double($0) / Double(top))) }
        var light = try band(0, count).mapped(by: curve)
        if count == 1 { light = try VipsCall("bandjoin", ["in": .images([light, light, light])]).image() }
        light = try light.labeled("scrgb")
        if color.isHDR {
            light = try light.converted(from: color.primaries, to: CodedColorSpace.bt2020)
            if color.curve == .hlg {
                // The reference display has a peak of 1000 nits and a gamma of 1.2 in luminance (BT.2100, table 5).
                let luminance = try light.recombined([[0.2627, 0.6780, 0.0593]], keepsAlpha: false)
                let power: KeyValuePairs<String, VipsArgument> = [
                    "in": .image(luminance), "math2": "pow", "c": .doubles([0.2]),
                ]
                light = try light.times(VipsCall("math2_const", power).image().linear([1000 / ToneMap.white], [0]))
            }
            let components = try [light.band(0), light.band(1), light.band(2)]
            let most = try VipsCall("bandrank", ["in": .images(components), "index": 2]).image()
            let map = ToneMap(peak: color.peak / ToneMap.white)
            let gains = try Image.table(65536) { map.gain(Double($0) / 65535 * ToneMap.brightest) }
            let index = try most.linear([65535 / ToneMap.brightest], [0.5]).cast(to: "ushort")
            light = try light.times(index.mapped(by: gains))
        }
        let last = color.isHDR ? CodedColorSpace.bt2020 : color.primaries
        light = try light.converted(from: last, to: CodedColorSpace.sRGB).labeled("scrgb")
        let colors = try VipsCall("colourspace", ["in": .image(light), "space": "srgb"]).image()
        guard hasAlpha else { return colors }
        return try colors.joined(alpha: band(count).linear([255 / Double(top)], [0.5], toBytes: true))
    }

    private func converted(from: [Double], to: [Double]) throws(RenderError) -> Image {
        guard from != to, let matrix = CodedColorSpace.conversion(from: from, to: to) else { return self }
        return try recombined(matrix, keepsAlpha: false)
    }

    private func times(_ factor: Image) throws(RenderError) -> Image {
        try VipsCall("multiply", ["left": .image(self), "right": .image(factor)]).image()
    }

    /// Returns a table of floats for `mapped(by:)`.
    static func table(_ count: Int, _ value: (Int) -> Double) throws(RenderError) -> Image {
        let floats = (0..<count).map { Float(value($0)) }
        let storage = PixelStorage(floats.withUnsafeBytes { [UInt8]($0) })
        return try Image(storage, width: count, height: 1, bands: 1, format: Int(CVIPS_FORMAT_FLOAT))
    }
}
