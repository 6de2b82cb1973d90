struct NamedMask: VariantOperation {
    static let token = "mask"
    static let grammar = "mask:NAME[:fit=stretch|cover]"
    static let ranges = "NAME letters, digits, `_`, `-`, at most 64; fit `stretch`"
    static let summary = "Multiplies alpha by a named mask, scaled to the picture."
    static let example = "mask:star:fit=cover"

    enum Fit: String, CaseIterable { case stretch, cover }

    var name: String
    var fit: Fit

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        name = try arguments.name(try arguments.next("the name of a mask"), "the name of a mask")
        let options = try arguments.options(keys: ["fit"])
        fit = .stretch
        if let text = options.values["fit"] { fit = try arguments.word(text, "`fit=`") }
    }

    var canonicalArguments: [String] { [name] + (fit == .stretch ? [] : ["fit=\(fit.rawValue)"]) }
    var nanosecondsPerPixel: Double { 15 }

    var explanation: String {
        fit == .cover
            ? "Masks the picture with `\(name)`, scaled to cover it."
            : "Masks the picture with `\(name)`, stretched to its size."
    }

    var alphaEffect: AlphaEffect { .adds }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let size = picture.size
        let form = "mask:\(fit.rawValue):\(size.width)x\(size.height)"
        let coverage = try NamedPicture.pixels(of: context.masks[name], "mask `\(name)`", form: form, context) {
            mask throws(RenderError) in
            try scaled(mask, to: size)
        }
        return try picture.changed(context, addingAlpha: true) { pixels throws(RenderError) in
            let shares = coverage.storage.bytes
            for row in 0..<size.height {
                try context.control.check()
                for index in row * size.width..<(row + 1) * size.width {
                    pixels.bytes[index * 4 + 3] = alphaProduct(pixels.bytes[index * 4 + 3], shares[index])
                }
            }
        }
    }

    /// Returns the mask's alpha, or the luminance of a mask without alpha, scaled to `size`. The result has one band.
    private func scaled(_ mask: Picture, to size: PixelSize) throws(RenderError) -> Image {
        let image = mask.image
        var values =
            image.hasAlpha
            ? try image.band(3)
            : try VipsCall("colourspace", ["in": .image(image), "space": "b-w"]).image()
        var geometry = ThumbnailGeometry(
            source: mask.size, box: PixelBox(width: size.width, height: size.height), mode: .fill, enlarges: true)
        if fit == .stretch { geometry.scaled = size }
        // Use the linear kernel, because Lanczos causes ringing at hard edges.
        if geometry.scaled != mask.size { values = try Resize.scaled(values, to: geometry.scaled, kernel: "linear") }
        let window = Anchor.gravity(.center).rectangle(size, in: geometry.scaled)
        return try values.area(window)
    }
}
