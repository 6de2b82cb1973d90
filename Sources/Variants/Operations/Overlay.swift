struct Overlay: VariantOperation {
    static let token = "overlay"
    static let grammar = "overlay:NAME[:gravity=G][:opacity=F][:scale=F]"
    static let ranges =
        "NAME as for masks; G `centre`, one of the nine places; opacity 0…1 (1); scale 0.01…100 (1), times its own size"
    static let words = ["gravity": Gravity.places.map(\.rawValue)]
    static let summary = "Lays a named picture from the overlay folder over this one."
    static let example = "overlay:logo:gravity=south-east:opacity=0.8"

    var name: String
    /// Where it is placed; never `attention` or `entropy`.
    var gravity: Gravity
    /// 0…1.
    var opacity: Double
    /// A factor for the overlay's own size.
    var scale: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        name = try arguments.name(try arguments.next("the name of an overlay"), "the name of an overlay")
        let values = try arguments.options(keys: ["gravity", "opacity", "scale"]).values
        gravity = .centre
        opacity = 1
        scale = 1
        if let text = values["gravity"] { gravity = try arguments.word(text, "the gravity", Gravity.places) }
        if let text = values["opacity"] { opacity = try arguments.factor(text, "the opacity", 0...1) }
        if let text = values["scale"] { scale = try arguments.factor(text, "the scale", 0.01...100) }
    }

    var canonicalArguments: [String] {
        [name] + (gravity == .centre ? [] : ["gravity=\(gravity.rawValue)"])
            + (opacity == 1 ? [] : ["opacity=\(PlainNumber.text(opacity))"])
            + (scale == 1 ? [] : ["scale=\(PlainNumber.text(scale))"])
    }

    var explanation: String { "Lays `\(name)` over the picture at \(gravity.spoken)." }

    /// Composites the overlay with “source over” (W3C Compositing 1, §5.1), on sRGB values as stored. Parts beyond the
    /// picture are cut off: the picture keeps its size, and opaque pixels stay opaque.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let form = "overlay:\(PlainNumber.text(scale))"
        let overlay = try NamedPicture.pixels(
            of: context.masks[Recipe.overlayKey(name)], "overlay `\(name)`", form: form, context
        ) { overlay throws(RenderError) in
            let size = overlay.size.scaled(by: scale)
            return try overlay.resized(to: size, light: .linear, context).image.withAlpha()
        }
        return try picture.changed(context) { pixels throws(RenderError) in
            let visible = PixelSize(
                width: min(overlay.size.width, pixels.size.width), height: min(overlay.size.height, pixels.size.height))
            let from = Anchor.gravity(gravity).rectangle(visible, in: overlay.size)
            let to = Anchor.gravity(gravity).rectangle(visible, in: pixels.size)
            for row in 0..<visible.height {
                try context.control.check()
                var source = ((from.y + row) * overlay.size.width + from.x) * 4
                var target = ((to.y + row) * pixels.size.width + to.x) * pixels.bands
                for _ in 0..<visible.width {
                    blend(overlay.storage.bytes, source, over: pixels, target)
                    source += 4
                    target += pixels.bands
                }
            }
        }
    }

    /// Blends the overlay's pixel (four bands) at `source` over the pixel at `target`.
    private func blend(
        _ overlay: UnsafeRawBufferPointer, _ source: Int, over pixels: EditablePixels, _ target: Int
    ) {
        let share = Double(overlay[source + 3]) / 255 * opacity
        guard share > 0 else { return }
        let below = pixels.bands == 4 ? Double(pixels.bytes[target + 3]) / 255 * (1 - share) : 1 - share
        let sum = share + below
        for band in 0..<3 {
            let mixed = Double(overlay[source + band]) * share + Double(pixels.bytes[target + band]) * below
            pixels.bytes[target + band] = UInt8((mixed / sum).rounded())
        }
        if pixels.bands == 4 { pixels.bytes[target + 3] = UInt8(min(255, (sum * 255).rounded())) }
    }
}
