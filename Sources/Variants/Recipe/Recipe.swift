/// Load options, operations and an output, in the order of recipe text (docs/recipes.md).
///
/// `Recipe(_:presets:)` parses; `description` is the canonical text, which parses to an equal recipe. Recipes are equal
/// if their canonical texts are.
public struct Recipe: Sendable {
    /// Which frames of an animation are decoded.
    public enum Frames: Sendable, Hashable { case first, all, count(Int) }

    /// The most steps a recipe may have after presets are expanded, including load options, `dpr` and the output.
    public static let stepLimit = 32
    /// The most characters a recipe may have, as written and in canonical form.
    package static let characterLimit = 2000

    /// Whether the EXIF orientation is applied; `orient:off` turns it off.
    package var orients = true { didSet { parsedSteps = nil } }
    /// Whether the picture stays in its own colour space (`profile:keep`) instead of sRGB.
    package var keepsProfile = false { didSet { parsedSteps = nil } }
    package var frames = Frames.first { didSet { parsedSteps = nil } }
    package var steps: [any VariantOperation] = [] { didSet { parsedSteps = nil } }
    /// The output; nil leaves the format to negotiation, as `auto` does.
    package var output: OutputSpecification?
    /// The preset's name if the parsed text was exactly one preset (`@name`). Not part of equality.
    package internal(set) var presetName: String?

    /// `stepsDescription` of a recipe that nothing has changed since it was parsed: each request makes a key of it.
    var parsedSteps: String?
    /// The text of a typed recipe; nil for other recipes.
    var written: WrittenRecipe?

    /// The empty recipe: the picture as it is, upright and in sRGB.
    public init() {}
}

extension Recipe: CustomStringConvertible {
    /// Canonical text: load options, steps, output; defaults dropped, numbers normalised, presets expanded.
    public var description: String {
        if let written, written.error != nil { return written.text }
        guard let output = output?.canonicalText(keepsProfile: keepsProfile) else { return stepsDescription }
        return stepsDescription.isEmpty ? output : stepsDescription + "," + output
    }

    /// Canonical text without the output; part of the variant key.
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
        return texts
    }

    /// Whether it has steps, and nothing that is no step: no load option and no output.
    package var isOfStepsAlone: Bool { output == nil && loadOptionTexts.isEmpty && !steps.isEmpty }

    private var stepTexts: [String] { loadOptionTexts + steps.map { $0.canonicalText } }

    /// Names of the masks used, each once, in order of use.
    public var maskNames: [String] { Self.unique(steps.compactMap { ($0 as? NamedMask)?.name }) }

    /// Names of the overlays used, each once, in order of use.
    public var overlayNames: [String] { Self.unique(steps.compactMap { ($0 as? Overlay)?.name }) }

    /// The key of an overlay's bytes in `RenderJob.masks`; never a valid mask name.
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
