import Glibc

extension Rotate {
    init(degrees: Double) { self.degrees = degrees }

    /// Quarter turns move pixels and change none. Other angles interpolate sRGB values times alpha (bicubic) about the
    /// centre, on a canvas just large enough; a pixel on the picture's edge is mixed with what is uncovered by as much
    /// as the picture covers of it.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let angles: [Double: String] = [90: "d90", 180: "d180", 270: "d270"]
        if degrees == 0 { return try picture.settled(context) }
        if let angle = angles[degrees] {
            let memory = try picture.inMemory(context)
            return memory.replacing(
                try VipsCall("rot", ["in": .image(memory.image), "angle": .string(angle)]).image())
        }
        let turn = Turn(picture.size, degrees: degrees)
        try context.checkEdge(turn.canvas)
        var memory = try picture.inMemory(context)
        let colour = memory.uncovered
        if colour.alpha < 255 { memory.image = try memory.image.withAlpha() }
        let turned = try turn.turned(memory.image, colour)
        return try memory.replacing(turned).inMemory(context, tile: PixelSize(width: 128, height: 128))
    }
}

/// A turn about the centre: a point p of the picture, counted from its centre, goes to p × the matrix.
struct Turn {
    /// The smallest canvas that holds the turned picture.
    let canvas: PixelSize
    private let size: PixelSize
    private let matrix: [Double]
    /// Pixels repeated around the picture, for what interpolation reads beyond its edge.
    private static let margin = 3

    init(_ size: PixelSize, degrees: Double) {
        let (sine, cosine) = (sin(degrees * .pi / 180), cos(degrees * .pi / 180))
        self.size = size
        matrix = [cosine, -sine, sine, cosine]
        let (width, height) = (Double(size.width), Double(size.height))
        // Less a millionth: what is whole but for rounding errors takes no further pixel.
        func edge(_ length: Double) -> Int { max(1, Int((length - 1e-6).rounded(.up))) }
        canvas = PixelSize(
            width: edge(width * abs(cosine) + height * abs(sine)),
            height: edge(width * abs(sine) + height * abs(cosine)))
    }

    /// `image` turned, with `colour` around it; opaque where both are.
    func turned(_ image: Image, _ colour: Colour) throws(RenderError) -> Image {
        let pixels = try moved(
            Self.embedded(image.premultiplied(), size, extend: "copy"), interpolate: "bicubic")
        // How much of each pixel the picture covers: a ramp one pixel wide across its edges.
        let one = try Image(PixelStorage([255]), width: 1, height: 1, bands: 1)
        let whole = try VipsCall(
            "embed",
            [
                "in": .image(one), "x": 0, "y": 0, "width": .int(size.width), "height": .int(size.height),
                "extend": "copy",
            ]
        ).image()
        let coverage = try moved(Self.embedded(whole, size, extend: "black"), interpolate: "bilinear")
        let share = Double(colour.alpha) / 255
        var around = [Double(colour.red) * share, Double(colour.green) * share, Double(colour.blue) * share]
        if image.hasAlpha { around.append(Double(colour.alpha)) }
        let inside = try VipsCall("multiply", ["left": .image(pixels), "right": .image(coverage)]).image()
        let part = try VipsCall(
            "linear", ["in": .image(inside), "a": .doubles([1 / 255]), "b": .doubles([0])]
        ).image()
        let outside = try VipsCall(
            "linear", ["in": .image(coverage), "a": .doubles(around.map { -$0 / 255 }), "b": .doubles(around)]
        ).image()
        let sum = try VipsCall("add", ["left": .image(part), "right": .image(outside)]).image()
        return try sum.labelled("srgb").unpremultiplied()
    }

    private static func embedded(_ image: Image, _ size: PixelSize, extend: String) throws(RenderError) -> Image {
        try VipsCall(
            "embed",
            [
                "in": .image(image), "x": .int(margin), "y": .int(margin), "width": .int(size.width + 2 * margin),
                "height": .int(size.height + 2 * margin), "extend": .string(extend),
            ]
        ).image()
    }

    /// Positions of libvips are those of pixels' centres: the first has 0.
    private func moved(_ image: Image, interpolate: String) throws(RenderError) -> Image {
        let centre = (x: Double(size.width - 1) / 2, y: Double(size.height - 1) / 2)
        let target = (x: Double(canvas.width - 1) / 2, y: Double(canvas.height - 1) / 2)
        return try VipsCall(
            "affine",
            [
                "in": .image(image), "matrix": .doubles(matrix), "interpolate": .string(interpolate),
                "oarea": .string("0 0 \(canvas.width) \(canvas.height)"), "premultiplied": true,
                "idx": .double(-Double(Self.margin)), "idy": .double(-Double(Self.margin)),
                "odx": .double(target.x - matrix[0] * centre.x - matrix[1] * centre.y),
                "ody": .double(target.y - matrix[2] * centre.x - matrix[3] * centre.y),
            ]
        ).image()
    }
}
