extension Thumbnail {
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

    /// The sizes this step leads to for a picture of `source`.
    func geometry(of source: PixelSize) -> ThumbnailGeometry {
        ThumbnailGeometry(source: source, box: box, mode: mode, enlarges: enlarges)
    }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let geometry = geometry(of: picture.size)
        try context.checkEdge(geometry.output)
        let resized = try picture.resized(
            to: geometry.scaled, quality: resample ?? context.quality, context)
        if geometry.output == geometry.scaled { return resized }
        return mode == .pad
            ? try resized.padded(to: geometry.output, anchor: anchor)
            : try resized.cropped(to: geometry.output, anchor: anchor, context)
    }
}

extension Picture {
    /// The window of `target` that `anchor` names; `target` must fit into the picture.
    func cropped(
        to target: PixelSize, anchor: Anchor, _ context: RenderContext
    ) throws(RenderError) -> Picture {
        if case .gravity(let gravity) = anchor, gravity == .attention || gravity == .entropy {
            let memory = try inMemory(context)
            return memory.replacing(
                try VipsCall(
                    "smartcrop",
                    [
                        "input": .image(memory.image), "width": .int(target.width), "height": .int(target.height),
                        "interesting": .string(gravity.rawValue),
                    ]
                ).image())
        }
        return try cropped(to: anchor.rectangle(target, in: size))
    }

    /// A part of a settled picture.
    func cropped(to part: PixelRectangle) throws(RenderError) -> Picture {
        replacing(
            try VipsCall(
                "extract_area",
                [
                    "input": .image(image), "left": .int(part.x), "top": .int(part.y), "width": .int(part.width),
                    "height": .int(part.height),
                ]
            ).image())
    }

    /// A settled picture on a canvas of `canvas`, the rest in the background colour, else transparent.
    func padded(to canvas: PixelSize, anchor: Anchor) throws(RenderError) -> Picture {
        let place = anchor.rectangle(size, in: canvas)
        let colour = background ?? Colour(red: 0, green: 0, blue: 0, alpha: 0)
        var inner = image
        if colour.alpha < 255 || inner.hasAlpha { inner = try inner.withAlpha() }
        var bands = [Double(colour.red), Double(colour.green), Double(colour.blue)]
        if inner.hasAlpha { bands.append(Double(colour.alpha)) }
        return replacing(
            try VipsCall(
                "embed",
                [
                    "in": .image(inner), "x": .int(place.x), "y": .int(place.y), "width": .int(canvas.width),
                    "height": .int(canvas.height), "extend": "background", "background": .doubles(bands),
                ]
            ).image())
    }
}

extension Image {
    /// With an alpha band, opaque where there was none.
    func withAlpha() throws(RenderError) -> Image {
        hasAlpha ? self : try VipsCall("bandjoin_const", ["in": .image(self), "c": .doubles([255])]).image()
    }
}
