import CVips

extension Picture {
    /// Crops to the window of size `target` that `anchor` selects. `target` must fit into the picture.
    func cropped(
        to target: PixelSize, anchor: Anchor, _ context: RenderContext
    ) throws(RenderError) -> Picture {
        if case .gravity(let gravity) = anchor, gravity == .attention || gravity == .entropy {
            let memory = try inMemory(context)
            // libvips examines all pixels as soon as `smartcrop` is called, so stop requests must reach it from here
            // on.
            context.control.watch(memory.image)
            let window = try context.windows.window { () throws(RenderError) in
                let found = try VipsCall(
                    "smartcrop",
                    [
                        "input": .image(memory.image), "width": .int(target.width), "height": .int(target.height),
                        "interesting": .string(gravity.rawValue),
                    ]
                ).image()
                let place = found.offset
                return PixelRectangle(x: -place.x, y: -place.y, width: target.width, height: target.height)
            }
            return try memory.cropped(to: window)
        }
        return try cropped(to: anchor.rectangle(target, in: size))
    }

    /// Returns a part of a normalized picture.
    func cropped(to part: PixelRectangle) throws(RenderError) -> Picture {
        try replacing(image.area(part))
    }

    /// Places a normalized picture on a canvas, with its top left pixel at `x`, `y`. The rest of the canvas is `color`.
    func placed(on canvas: PixelSize, x: Int, y: Int, color: Color) throws(RenderError) -> Picture {
        let inner = color.alpha < 255 ? try image.withAlpha() : image
        let bands = color.bands + (inner.hasAlpha ? [Double(color.alpha)] : [])
        return try replacing(inner.placed(on: canvas, x: x, y: y, extend: "background", bands))
    }

    /// The color of areas that the picture does not cover: the color of the last `background` step, or transparent.
    var uncovered: Color { background ?? Color(red: 0, green: 0, blue: 0, alpha: 0) }

    /// Composites the picture over `color`. The result keeps its alpha band if the color is not opaque.
    func flattened(onto color: Color) throws(RenderError) -> Picture {
        if color.alpha == 255 {
            return replacing(
                try VipsCall("flatten", ["in": .image(image), "background": .doubles(color.bands)]).image())
        }
        // Use “source over”: add the premultiplied color, multiplied by 1 − the picture's alpha, to the premultiplied
        // picture.
        let share = Double(color.alpha) / 255
        let below = color.bands.map { $0 * share } + [Double(color.alpha)]
        let rest = try image.band(3).linear(below.map { -$0 / 255 }, below)
        let sum = try VipsCall("add", ["left": .image(image.premultiplied()), "right": .image(rest)]).image()
        return try replacing(sum.labeled("srgb").unpremultiplied())
    }
}

extension Image {
    /// Places the image on a canvas, with its top left pixel at `x`, `y`. The rest is filled with `background`, or as
    /// `extend` specifies.
    func placed(
        on canvas: PixelSize, x: Int, y: Int, extend: String, _ background: [Double] = [0]
    ) throws(RenderError) -> Image {
        try VipsCall(
            "embed",
            [
                "in": .image(self), "x": .int(x), "y": .int(y), "width": .int(canvas.width),
                "height": .int(canvas.height), "extend": .string(extend), "background": .doubles(background),
            ]
        ).image()
    }

    func area(_ part: PixelRectangle) throws(RenderError) -> Image {
        try VipsCall(
            "extract_area",
            [
                "input": .image(self), "left": .int(part.x), "top": .int(part.y), "width": .int(part.width),
                "height": .int(part.height),
            ]
        ).image()
    }

    /// Returns the image with an alpha band. Adds an opaque band if necessary.
    func withAlpha() throws(RenderError) -> Image {
        if hasAlpha { return self }
        let opaque = format == Int(CVIPS_FORMAT_USHORT) ? 65_535.0 : 255
        return try VipsCall("bandjoin_const", ["in": .image(self), "c": .doubles([opaque])]).image()
    }

    /// Returns the image with `alpha` as an additional band after the colors.
    func joined(alpha: Image) throws(RenderError) -> Image {
        try VipsCall("bandjoin", ["in": .images([self, alpha])]).image()
    }

    /// Returns the image mirrored in the given direction, `horizontal` or `vertical`.
    func flipped(_ direction: String) throws(RenderError) -> Image {
        try VipsCall("flip", ["in": .image(self), "direction": .string(direction)]).image()
    }

    /// Returns the image after one to three clockwise quarter turns: `d90`, `d180` or `d270`.
    func turned(_ angle: String) throws(RenderError) -> Image {
        try VipsCall("rot", ["in": .image(self), "angle": .string(angle)]).image()
    }
}
