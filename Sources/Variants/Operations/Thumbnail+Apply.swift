extension Thumbnail: ResizingOperation {
    init(
        box: PixelBox, mode: Mode = .fit, enlarges: Bool = false, anchor: Anchor = .gravity(.centre),
        resample: RenderQuality? = nil
    ) {
        self.box = box
        self.mode = mode
        self.enlarges = enlarges
        self.anchor = anchor
        self.resample = resample
    }

    /// The sizes that this step computes for a picture of size `source`.
    func geometry(of source: PixelSize) -> ThumbnailGeometry {
        ThumbnailGeometry(source: source, box: box, mode: mode, enlarges: enlarges)
    }

    func resultSize(of size: PixelSize) -> PixelSize? { geometry(of: size).output }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let geometry = geometry(of: picture.size)
        try context.checkEdge(geometry.output)
        let resized = try picture.resized(
            to: geometry.scaled, quality: resample ?? context.quality, context)
        if geometry.output == geometry.scaled { return resized }
        guard mode == .pad else { return try resized.cropped(to: geometry.output, anchor: anchor, context) }
        let place = anchor.rectangle(resized.size, in: geometry.output)
        return try resized.placed(on: geometry.output, x: place.x, y: place.y, colour: resized.uncovered)
    }
}

extension Picture {
    /// The window of size `target` that `anchor` selects; `target` must fit into the picture.
    func cropped(
        to target: PixelSize, anchor: Anchor, _ context: RenderContext
    ) throws(RenderError) -> Picture {
        if case .gravity(let gravity) = anchor, gravity == .attention || gravity == .entropy {
            let memory = try inMemory(context)
            // libvips looks at all pixels as soon as `smartcrop` is called, so a stop has to reach it from here on.
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

    /// A part of a settled picture.
    func cropped(to part: PixelRectangle) throws(RenderError) -> Picture {
        try replacing(image.area(part))
    }

    /// Places a settled picture on a canvas, with its top left pixel at `x`, `y`; the rest is `colour`.
    func placed(on canvas: PixelSize, x: Int, y: Int, colour: Colour) throws(RenderError) -> Picture {
        let inner = colour.alpha < 255 ? try image.withAlpha() : image
        var bands = [Double(colour.red), Double(colour.green), Double(colour.blue)]
        if inner.hasAlpha { bands.append(Double(colour.alpha)) }
        return try replacing(inner.placed(on: canvas, x: x, y: y, extend: "background", bands))
    }

    /// The colour of areas the picture does not cover: the last `background`, or transparent.
    var uncovered: Colour { background ?? Colour(red: 0, green: 0, blue: 0, alpha: 0) }
}

extension Image {
    /// Places the image on a canvas, its top left pixel at `x`, `y`; the rest is `background`, or what `extend` says.
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

    /// The image with an alpha band; if it has none, an opaque one is added.
    func withAlpha() throws(RenderError) -> Image {
        hasAlpha ? self : try VipsCall("bandjoin_const", ["in": .image(self), "c": .doubles([255])]).image()
    }
}
