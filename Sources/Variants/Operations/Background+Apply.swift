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
    /// The picture over `colour`; a colour that is itself transparent leaves alpha.
    func flattened(onto colour: Colour) throws(RenderError) -> Picture {
        let bands = [Double(colour.red), Double(colour.green), Double(colour.blue)]
        if colour.alpha == 255 {
            return replacing(
                try VipsCall("flatten", ["in": .image(image), "background": .doubles(bands)]).image())
        }
        let canvas = try VipsCall(
            "linear",
            [
                "in": .image(image), "a": .doubles([0, 0, 0, 0]), "b": .doubles(bands + [Double(colour.alpha)]),
                "uchar": true,
            ]
        ).image().labelled("srgb")
        let over = try VipsCall(
            "composite2", ["base": .image(canvas), "overlay": .image(image), "mode": "over"]
        ).image()
        return replacing(try VipsCall("cast", ["in": .image(over), "format": "uchar"]).image())
    }
}
