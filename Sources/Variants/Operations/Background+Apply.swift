extension Background {
    init(colour: Colour) { self.colour = colour }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        var result = try picture.settled(context)
        if result.image.hasAlpha { result = try result.flattened(onto: colour) }
        result.background = colour
        return result
    }
}

extension Picture {
    /// Composites the picture over `colour`; the result keeps an alpha band if the colour is not opaque.
    func flattened(onto colour: Colour) throws(RenderError) -> Picture {
        let bands = [Double(colour.red), Double(colour.green), Double(colour.blue)]
        if colour.alpha == 255 {
            return replacing(
                try VipsCall("flatten", ["in": .image(image), "background": .doubles(bands)]).image())
        }
        // “Over”: the premultiplied colour, times 1 − the picture's alpha, is added to the premultiplied picture.
        let share = Double(colour.alpha) / 255
        let below = bands.map { $0 * share } + [Double(colour.alpha)]
        let rest = try VipsCall(
            "linear", ["in": .image(image.band(3)), "a": .doubles(below.map { -$0 / 255 }), "b": .doubles(below)]
        ).image()
        let sum = try VipsCall("add", ["left": .image(image.premultiplied()), "right": .image(rest)]).image()
        return try replacing(sum.labelled("srgb").unpremultiplied())
    }
}
