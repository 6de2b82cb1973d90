public import Variants

/// Restricts the recipes that clients may request (`ServerConfiguration.recipes`), so that they cannot fill the caches
/// with arbitrary variants.
///
/// ```swift
/// var configuration = ServerConfiguration()
/// configuration.recipes.steps = ["thumbnail", "crop", "webp", "auto"]
/// configuration.recipes.sizes = RecipeRules.usualSizes
/// configuration.recipes.watermark = Recipe().overlay("logo", gravity: .southEast, size: .percent(20))
/// ```
///
/// The operator wrote the presets and the recipes in `allowed`, so `sizes` does not change them.
public struct RecipeRules: Sendable {
    /// The recipes that the site renders, in canonical form with presets expanded. If nil, the default, every recipe is
    /// rendered.
    public var allowed: Set<Recipe>?
    /// Whether clients may request only presets (`@name`), each optionally followed by steps in `suffixes`. Defaults to
    /// false.
    public var presetsOnly = false
    /// Steps that may follow a preset if `presetsOnly` is true, as clients write them. By default, they are `dpr` with
    /// common ratios from 1 to 3, and every output without arguments.
    public var suffixes =
        ["1", "1.25", "1.5", "1.75", "2", "2.5", "3"].map { "dpr:" + $0 }
        + OutputSpecification.Kind.allCases.map(\.rawValue)
    /// Names of the steps, load options and outputs that clients may write. If nil, the default, all are allowed.
    /// Presets may contain any step.
    public var steps: Set<String>?
    /// The edge lengths of thumbnails, in pixels, 1…8192, in any order. Limiting them prevents clients that request
    /// every width from filling the caches. The longer edge is rounded up to the next of these sizes, and a width and
    /// height together are rounded to a common aspect ratio. If empty, the default, sizes are not rounded.
    public var sizes: [Int] = []
    /// Edge lengths, in pixels, that suit thumbnails, layouts and full-screen pictures.
    public static let usualSizes = [20, 40, 60, 120, 250, 330, 500, 960, 1280, 1920, 3840]
    /// Whether sizes not in `sizes` are refused rather than replaced with the next larger size. Defaults to false.
    public var refusesOtherSizes = false
    /// A recipe for a watermark. The site appends its steps to every recipe, including presets. Defaults to nil (no
    /// watermark).
    public var watermark: Recipe?

    /// Creates rules that allow every recipe.
    public init() {}

    /// Whether the rules keep clients from rendering arbitrary pictures, because presets, recipes or steps are limited
    /// or a watermark is set.
    package var isRestricted: Bool { presetsOnly || allowed != nil || steps != nil || watermark != nil }

    /// Returns the recipe to render for a string that parses as `recipe`.
    ///
    /// - Throws: a `Problem` with status 403 if the site does not render the recipe, or 400 if a size is not allowed.
    func admitted(_ recipe: Recipe, text: String) throws(Problem) -> Recipe {
        var recipe = try checked(recipe, text: text)
        guard let watermark else { return recipe }
        recipe.steps += watermark.steps
        let steps = recipe.description.split(separator: ",").count
        guard steps <= Recipe.stepLimit else {
            throw Problem(
                .invalidRecipe,
                "the recipe has \(steps) steps, including the server's watermark; the maximum is \(Recipe.stepLimit)")
        }
        return recipe
    }

    /// Returns the reason why the site does not render a recipe, or nil if it does.
    package func refusal(of recipe: Recipe, text: String) -> String? {
        do throws(Problem) {
            _ = try admitted(recipe, text: text)
            return nil
        } catch {
            return error.detail ?? error.kind.title
        }
    }

    /// Returns the preset that a recipe string consists of, with or without `suffixes` after it. Returns nil if the
    /// string has a different form.
    func preset(in text: String) -> String? {
        let steps = text.split(separator: ",")
        guard let first = steps.first, first.hasPrefix("@"), steps.dropFirst().allSatisfy(isSuffix) else { return nil }
        return String(first.dropFirst())
    }

    private func isSuffix(_ step: Substring) -> Bool {
        let name = Self.suffixName(step)
        return suffixes.contains { Self.suffixName($0[...]) == name }
    }

    /// Returns the canonical name of an output (`jpeg` for `jpg`), or a step with arguments unchanged.
    private static func suffixName(_ step: Substring) -> Substring {
        step.contains(":") ? step : Catalog.listedName(ofStep: step).map { $0[...] } ?? step
    }

    private func checked(_ recipe: Recipe, text: String) throws(Problem) -> Recipe {
        if let allowed {
            guard allowed.contains(recipe) else {
                throw Problem(.recipeNotAllowed, "the recipe is not in `recipes.allow`; use one of the allowed recipes")
            }
        }
        if recipe.presetName != nil { return recipe }
        if presetsOnly {
            guard preset(in: text) == nil else { return recipe }
            throw Problem(
                .recipeNotAllowed,
                "this server renders only presets (`recipes.presetsOnly`); use `@name`"
                    + (suffixes.isEmpty
                        ? " without further steps" : ", optionally followed by " + suffixes.joined(separator: ", ")))
        }
        if let steps {
            for step in text.split(separator: ",") where !step.hasPrefix("@") {
                guard let name = Catalog.listedName(ofStep: step), steps.contains(name) else {
                    throw Problem(
                        .recipeNotAllowed,
                        "`\(step.prefix { $0 != ":" })` is not allowed on this server; the allowed steps (`recipes.steps`) are "
                            + steps.sorted().joined(separator: ", "))
                }
            }
        }
        guard allowed == nil, let sizeSteps else { return recipe }
        return try sizeSteps.admitted(recipe)
    }

    /// The allowed sizes, or nil if clients may use every size.
    var sizeSteps: SizeSteps? { sizes.isEmpty ? nil : SizeSteps(sizes, isStrict: refusesOtherSizes) }
}

/// Rounds thumbnail sizes according to `RecipeRules.sizes`.
package struct SizeSteps: Sendable {
    /// Edge lengths in pixels, ascending.
    private let edges: [Int]
    private let isStrict: Bool

    /// The valid range of edge lengths, in pixels.
    static let range = 1...8192

    /// - Parameter edges: Edge lengths in pixels. Must not be empty.
    init(_ edges: [Int], isStrict: Bool) { (self.edges, self.isStrict) = (edges.sorted(), isStrict) }

    /// Ratios of the shorter to the longer edge of a box, for screens, photographs, banners and squares.
    private static let ratios = [1, 4.0 / 5, 3.0 / 4, 2.0 / 3, 9.0 / 16, 1.0 / 2, 1.0 / 3]

    /// The maximum number of sizes per edge length. They are the boxes of each ratio in portrait and landscape, a width
    /// without a height, and a height without a width.
    static let boxesOfEdge = 2 * ratios.count - 1 + 2

    /// Returns the smallest step that is at least `edge`, or the largest step if all are smaller.
    func step(for edge: Int) -> Int { edges.first { $0 >= edge } ?? edges[edges.count - 1] }

    /// Returns the size to render instead of `size`. The longer edge is rounded up to a step. If both edges are given,
    /// the shorter edge follows the nearest of the ratios.
    func step(for size: ThumbnailSize) -> ThumbnailSize {
        guard let width = size.width, let height = size.height else {
            return ThumbnailSize(width: size.width.map(step(for:)), height: size.height.map(step(for:)))
        }
        let larger = step(for: max(width, height))
        let given = Double(min(width, height)) / Double(max(width, height))
        let ratio = Self.ratios.min { max($0 / given, given / $0) < max($1 / given, given / $1) } ?? 1
        let smaller = max(1, Int((Double(larger) * ratio).rounded()))
        return width < height
            ? ThumbnailSize(width: smaller, height: larger) : ThumbnailSize(width: larger, height: smaller)
    }

    /// Returns the recipe with the size of each `thumbnail` replaced with an allowed size.
    ///
    /// - Throws: a `Problem` with status 400 that names the size, if the size is not allowed and other sizes are
    ///   refused.
    func admitted(_ recipe: Recipe) throws(Problem) -> Recipe {
        try recipe.mappingThumbnails { size throws(Problem) in try admitted(size, "`thumbnail`: ") }
    }

    /// Returns an allowed size instead of `size`.
    func admitted(_ size: ThumbnailSize, _ step: String = "") throws(Problem) -> ThumbnailSize {
        let allowed = self.step(for: size)
        guard !isStrict || allowed == size else {
            throw Problem(
                .invalidRecipe,
                "\(step)the size \(size) is not allowed on this server (`sizes.strict`); the next allowed size is \(allowed)"
            )
        }
        return allowed
    }
}
