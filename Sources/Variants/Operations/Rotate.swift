import Glibc

struct Rotate: ResizingOperation {
    static let token = "rotate"
    static let grammar = "rotate:90|180|270|DEG"
    static let ranges = "DEG 0…360, clockwise (360 is 0)"
    static let summary = "Rotates clockwise. Angles other than quarter turns leave corners in the background color."
    static let example = "rotate:90"

    /// The clockwise angle in degrees.
    var degrees: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let value = try arguments.decimal(try arguments.next("an angle in degrees"), "the angle", 0...360)
        degrees = value == 360 ? 0 : value
    }

    var canonicalArguments: [String] { [PlainNumber.text(degrees)] }
    var explanation: String { "Turns \(PlainNumber.text(degrees))° clockwise." }
    var nanosecondsPerPixel: Double { degrees.truncatingRemainder(dividingBy: 90) == 0 ? 5 : 35 }

    var alphaEffect: AlphaEffect {
        degrees.truncatingRemainder(dividingBy: 90) == 0 ? .keeps : .uncovers(antialiased: true)
    }

    func resultSize(of size: PixelSize) -> PixelSize? {
        switch degrees {
        case 0, 180: size
        case 90, 270: size.swapped
        default: Turn(size, degrees: degrees).canvas
        }
    }

    /// Quarter turns move pixels without changing their values. Other angles interpolate premultiplied sRGB values
    /// (bicubic) around the center, on the smallest canvas that fits. A pixel on the picture's edge is blended with the
    /// background in proportion to the area that the picture covers.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let angles: [Double: String] = [90: "d90", 180: "d180", 270: "d270"]
        if degrees == 0 { return try picture.normalized(context) }
        if let angle = angles[degrees] {
            let memory = try picture.inMemory(context)
            return try memory.replacing(memory.image.turned(angle))
        }
        let turn = Turn(picture.size, degrees: degrees)
        try context.checkEdge(turn.canvas)
        let memory = try picture.inMemory(context)
        let turned = try turn.turned(memory.image, memory.uncovered)
        return try memory.replacing(turned).inMemory(context, tile: PixelSize(width: 128, height: 128))
    }
}

/// A rotation around the center. A point p, relative to the picture's center, moves to matrix × p.
struct Turn {
    /// The smallest canvas that contains the rotated picture.
    let canvas: PixelSize
    private let size: PixelSize
    private let matrix: [Double]
    /// The padding around the picture in pixels, which is needed because interpolation reads beyond the picture's edge.
    private static let margin = 3

    init(_ size: PixelSize, degrees: Double) {
        let (sine, cosine) = (sin(degrees * .pi / 180), cos(degrees * .pi / 180))
        self.size = size
        matrix = [cosine, -sine, sine, cosine]
        let (width, height) = (Double(size.width), Double(size.height))
        // Subtract a millionth, so that rounding errors do not add a pixel to a length that is a whole number.
        func edge(_ length: Double) -> Int { max(1, Int((length - 1e-6).rounded(.up))) }
        canvas = PixelSize(
            width: edge(width * abs(cosine) + height * abs(sine)),
            height: edge(width * abs(sine) + height * abs(cosine)))
    }

    /// Returns the rotated `image`, surrounded by `color`.
    func turned(_ image: Image, _ color: Color) throws(RenderError) -> Image {
        // The fraction of each pixel that the picture covers: a ramp one pixel wide across each edge.
        let one = try Image(PixelStorage([255]), width: 1, height: 1, bands: 1)
        let whole = try one.placed(on: size, x: 0, y: 0, extend: "copy")
        let coverage = try moved(padded(whole, extend: "black"), interpolate: "bilinear")
        if !image.hasAlpha, color.alpha == 0 {
            // For an opaque picture on a transparent background, the coverage is the alpha.
            let colors = try moved(padded(image, extend: "copy"), interpolate: "bicubic")
            return try colors.joined(alpha: coverage).labeled("srgb")
        }
        let source = color.alpha < 255 ? try image.withAlpha() : image
        let pixels = try moved(padded(source.premultiplied(), extend: "copy"), interpolate: "bicubic")
        let share = Double(color.alpha) / 255
        var around = color.bands.map { $0 * share }
        if source.hasAlpha { around.append(Double(color.alpha)) }
        let ground = try one.linear(around.map { _ in 0 }, around, toBytes: !source.hasAlpha)
            .placed(on: canvas, x: 0, y: 0, extend: "copy")
        let mixed = try VipsCall(
            "ifthenelse",
            ["cond": .image(coverage), "in1": .image(pixels), "in2": .image(ground), "blend": true]
        ).image().labeled("srgb")
        return source.hasAlpha ? try mixed.unpremultiplied() : mixed
    }

    private func padded(_ image: Image, extend: String) throws(RenderError) -> Image {
        let canvas = PixelSize(width: size.width + 2 * Self.margin, height: size.height + 2 * Self.margin)
        return try image.placed(on: canvas, x: Self.margin, y: Self.margin, extend: extend)
    }

    /// libvips measures positions from pixel centers: the center of the first pixel is 0.
    private func moved(_ image: Image, interpolate: String) throws(RenderError) -> Image {
        let center = (x: Double(size.width - 1) / 2, y: Double(size.height - 1) / 2)
        let target = (x: Double(canvas.width - 1) / 2, y: Double(canvas.height - 1) / 2)
        return try VipsCall(
            "affine",
            [
                "in": .image(image), "matrix": .doubles(matrix), "interpolate": .string(interpolate),
                "oarea": .string("0 0 \(canvas.width) \(canvas.height)"), "premultiplied": true,
                "idx": .double(-Double(Self.margin)), "idy": .double(-Double(Self.margin)),
                "odx": .double(target.x - matrix[0] * center.x - matrix[1] * center.y),
                "ody": .double(target.y - matrix[2] * center.x - matrix[3] * center.y),
            ]
        ).image()
    }
}
