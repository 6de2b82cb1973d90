struct Thumbnail: ResizingOperation {
    static let token = "thumbnail"
    static let grammar = "thumbnail:SIZE[:fit|fill|pad|stretch][:up][:gravity=G][:focus=XxY][:resample=Q][:light=L]"
    static let ranges = """
        SIZE `WxH`, `Wx`, `xH` or `N` (= `NxN`), edges 1…8192; mode `fit`; G `centre`; X, Y 0…1; \
        Q `fast`, `balanced`, `best` (default: the setting `render.quality`); L `auto`, \
        `linear`, `gamma` (default: the setting `render.light`)
        """
    static let words = [
        "gravity": Gravity.allCases.map(\.rawValue), "resample": RenderQuality.allCases.map(\.rawValue),
        "light": RenderLight.allCases.map(\.rawValue),
    ]
    static let summary = "Resizes to a box. Never enlarges without `up`."
    static let example = "thumbnail:300x200:fill:gravity=attention"

    typealias Mode = Recipe.Mode
    var box: PixelBox
    var mode: Mode
    var enlarges: Bool
    /// The part that `fill` keeps visible, or the position of the picture for `pad` (fixed gravities only).
    var anchor: Anchor
    /// The quality. If nil, the quality of the render job is used.
    var resample: RenderQuality?
    /// The light. If nil, the light of the render job is used.
    var light: RenderLight?

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        box = try PixelBox(try arguments.next("a size"), arguments)
        let modes = Mode.allCases.map(\.rawValue)
        let options = try arguments.options(flags: modes + ["up"], keys: ["gravity", "focus", "resample", "light"])
        let chosen = Mode.allCases.filter { options.flags.contains($0.rawValue) }
        guard chosen.count <= 1 else {
            throw arguments.error("`fit`, `fill`, `pad` and `stretch` cannot be combined")
        }
        mode = chosen.first ?? .fit
        enlarges = options.flags.contains("up")
        guard mode == .fit || box.width != nil && box.height != nil else {
            throw arguments.error(
                "`\(mode.rawValue)` requires both edges, such as `300x200`; with one edge, only `fit` is possible")
        }
        anchor = try Anchor(options, arguments)
        if options.values["gravity"] != nil || options.values["focus"] != nil {
            switch (mode, anchor) {
            case (.fill, _): break
            case (.pad, .gravity(let gravity)) where Gravity.places.contains(gravity): break
            case (.pad, _): throw arguments.error("`attention`, `entropy` and `focus=` require `fill`")
            default: throw arguments.error("`gravity=` and `focus=` require `fill` or `pad`")
            }
        }
        if let text = options.values["resample"] { resample = try arguments.word(text, "`resample=`") }
        if let text = options.values["light"] { light = try arguments.word(text, "`light=`") }
    }

    var canonicalArguments: [String] {
        [box.text] + (mode == .fit ? [] : [mode.rawValue]) + (enlarges ? ["up"] : []) + anchor.arguments
            + (resample.map { ["resample=\($0.rawValue)"] } ?? []) + (light.map { ["light=\($0.rawValue)"] } ?? [])
    }

    var explanation: String {
        let size = box.spoken
        let limit = enlarges ? ", enlarging if necessary" : ", never enlarging"
        let sentence =
            switch mode {
            case .fit: "Resizes to fit \(size)"
            case .fill: "Resizes to cover \(size) and crops the excess, keeping \(anchor.spoken)"
            case .pad: "Fits the picture into a canvas of \(size), placed at \(anchor.spoken)"
            case .stretch: "Resizes to \(size) without keeping the ratio"
            }
        return sentence + limit + (light?.spoken ?? "") + "."
    }

    var differenceGain: Double { mode == .fill && anchor.looksAtPixels ? .infinity : 1 }
    var heldPictures: Double { differenceGain > 1 ? 2 : 0 }
    var nanosecondsPerPixel: Double { enlarges ? 30 : 4 }
    var alphaEffect: AlphaEffect { mode == .pad ? .uncovers(antialiased: false) : .keeps }

    func multiplied(by ratio: Double) -> Thumbnail { setting(\.box, to: box.multiplied(by: ratio)) }

    /// Returns the sizes that this step produces for a picture of size `source`.
    func geometry(of source: PixelSize) -> ThumbnailGeometry {
        ThumbnailGeometry(source: source, box: box, mode: mode, enlarges: enlarges)
    }

    func resultSize(of size: PixelSize) -> PixelSize? { geometry(of: size).output }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let geometry = geometry(of: picture.size)
        try context.checkEdge(geometry.output)
        let resized = try picture.resized(to: geometry.scaled, light: light, context)
        if geometry.output == geometry.scaled { return resized }
        guard mode == .pad else { return try resized.cropped(to: geometry.output, anchor: anchor, context) }
        let place = anchor.rectangle(resized.size, in: geometry.output)
        return try resized.placed(on: geometry.output, x: place.x, y: place.y, color: resized.uncovered)
    }
}

extension RenderLight {
    /// The words that end the sentence about this step in an explanation.
    var spoken: String {
        switch self {
        case .auto: ", in linear or gamma-encoded light, whichever suits the picture"
        case .linear: ", in linear light"
        case .gamma: ", in gamma-encoded light"
        }
    }
}

extension Recipe {
    /// The recipe for a vector drawing, in which the first step is allowed to enlarge, because a drawing has no pixels
    /// that enlarging would blur.
    var enlarging: Recipe {
        guard var thumbnail = steps.first as? Thumbnail else { return self }
        thumbnail.enlarges = true
        var recipe = self
        recipe.steps[0] = thumbnail
        return recipe
    }
}
