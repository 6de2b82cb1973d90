/// Describes how to derive a variant from an original: load options, operations and an output, as in recipe text
/// (docs/recipes.md). Create it from text or from typed steps.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let parsed = try Recipe("thumbnail:300x200:fill,rounded-mask:24,webp:80")
/// let typed = Recipe.thumbnail(300, 200, .fill).roundedMask(24).webp(80)
/// print(parsed == typed)  // true
/// let image = try await pipeline.respond(to: ImageRequest(.file("photo.jpg"), recipe: typed))
/// ```
///
/// `description` is the canonical text, which parses to an equal recipe. Two recipes are equal if their canonical texts
/// are equal. Parsing throws a `RecipeError`. Typed steps do not throw: `error` contains the first mistake.
public struct Recipe: Sendable {
    /// The frames of an animation to decode.
    package enum Frames: Sendable, Hashable { case first, all, count(Int) }

    /// The maximum number of steps after preset expansion, including load options, `dpr` and the output.
    public static let stepLimit = 32
    /// The maximum number of characters, both as written and in canonical form.
    package static let characterLimit = 2000

    /// Whether to apply the EXIF orientation. False if the recipe contains `orient:off`.
    package var orients = true { didSet { parsedSteps = nil } }
    /// Whether the picture keeps its own color space (`profile:keep`) instead of being converted to sRGB.
    package var keepsProfile = false { didSet { parsedSteps = nil } }
    package var frames = Frames.first { didSet { parsedSteps = nil } }
    /// The page of a TIFF to decode, starting at 1.
    package var page = 1 { didSet { parsedSteps = nil } }
    package var steps: [any VariantOperation] = [] { didSet { parsedSteps = nil } }
    /// The output. If nil, the format is negotiated, as with `auto`.
    package var output: OutputSpecification?
    /// The name of the preset if the parsed text was exactly one preset (`@name`). Equality ignores this name.
    package internal(set) var presetName: String?

    /// The `stepsDescription` of a recipe that has not changed since it was parsed. It is cached because every request
    /// uses it in a key.
    var parsedSteps: String?
    /// The text of the recipe if it was built from typed steps. Otherwise nil.
    var written: WrittenRecipe?

    /// Creates an empty recipe, which only applies the orientation and converts to sRGB.
    public init() {}
}

extension Recipe: CustomStringConvertible {
    /// The canonical text: load options, steps and output. Defaults are dropped, numbers are normalized, and presets
    /// are expanded.
    public var description: String {
        if let written, written.error != nil { return written.text }
        guard let output = output?.canonicalText(keepsProfile: keepsProfile) else { return stepsDescription }
        return stepsDescription.isEmpty ? output : stepsDescription + "," + output
    }

    /// The canonical text without the output. It is part of the variant key.
    package var stepsDescription: String { parsedSteps ?? stepTexts.joined(separator: ",") }

    private var loadOptionTexts: [String] {
        var texts: [String] = []
        if !orients { texts.append("orient:off") }
        if keepsProfile { texts.append("profile:keep") }
        switch frames {
        case .first: break
        case .all: texts.append("frames:all")
        case .count(let count): if count != 1 { texts.append("frames:\(count)") }
        }
        if page > 1 { texts.append("page:\(page)") }
        return texts
    }

    /// Whether the recipe has steps but no load option or output.
    package var isOfStepsAlone: Bool { output == nil && loadOptionTexts.isEmpty && !steps.isEmpty }

    private var stepTexts: [String] { loadOptionTexts + steps.map { $0.canonicalText } }

    /// The names of the masks, each listed once, in order of first use.
    public var maskNames: [String] { Self.unique(steps.compactMap { ($0 as? NamedMask)?.name }) }

    /// The names of the overlays, each listed once, in order of first use.
    public var overlayNames: [String] { Self.unique(steps.compactMap { ($0 as? Overlay)?.name }) }

    /// Returns the key of an overlay's bytes in `RenderJob.masks`. The key is never a valid mask name.
    public static func overlayKey(_ name: String) -> String { "overlay:" + name }

    private static func unique(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}

extension Recipe: Hashable {
    public static func == (left: Recipe, right: Recipe) -> Bool { left.description == right.description }
    public func hash(into hasher: inout Hasher) { hasher.combine(description) }
}
