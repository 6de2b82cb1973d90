import CVips
import PipelineSupport

struct Tint: VariantOperation {
    static let token = "tint"
    static let grammar = "tint:RRGGBB"
    static let ranges = "hex digits"
    static let summary = "Turns colors into shades of one color: from black through that color to white."
    static let example = "tint:704214"

    var color: Color

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        color = try Color(try arguments.next("a color such as `704214`"), arguments)
    }

    var canonicalArguments: [String] { [color.text] }
    var explanation: String { "Turns colors into shades of #\(color.text)." }
    var nanosecondsPerPixel: Double { 10 }
    var heldPictures: Double { 0 }

    /// Maps each pixel's luminance, as in `grayscale`, to a shade. Black stays black, white stays white, and the
    /// luminance of `color` becomes `color` itself. Luminances in between are interpolated.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let normalized = try picture.normalized(context)
        let image = normalized.image
        // Compute in 16 bits, because with 8 bits only a few luminances are darker than a dark color.
        let wide = try image.recombined([Luminance.weights.map { $0 * 257 }], keepsAlpha: false)
        var result = try wide.linear([1], [0.5]).cast(to: "ushort").mapped(by: table())
        if image.hasAlpha { result = try result.joined(alpha: image.band(3)) }
        return try normalized.replacing(result.labeled("srgb"))
    }

    /// Returns the table that maps luminances 0…65535 to colors.
    private func table() throws(RenderError) -> Image {
        let ends = color.bands
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
