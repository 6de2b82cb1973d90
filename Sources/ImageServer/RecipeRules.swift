public import Variants

/// Which recipes a site makes of those that clients ask for. What the operator has written, presets and `recipes.allow`,
/// is made as it is.
public struct RecipeRules: Sendable {
    /// Recipes that the site makes; nil if it makes all. In canonical form, presets expanded.
    public var allowed: Set<Recipe>?
    /// Whether a client may ask for a preset (`@name`), followed by `suffixes` at most, and for nothing that it has written itself.
    public var presetsOnly = false
    /// Steps that may follow the preset with `presetsOnly`, as clients write them. Default: `dpr` with usual ratios from 1 to 3, and
    /// every output without arguments.
    public var suffixes =
        ["1", "1.25", "1.5", "1.75", "2", "2.5", "3"].map { "dpr:" + $0 }
        + OutputSpecification.Kind.allCases.map(\.rawValue)
    /// Names of the steps, load options and outputs that clients may write; nil if they may write all. Presets may use
    /// any.
    public var steps: Set<String>?
    /// The sizes of `thumbnail`; nil if there is no rule.
    public var sizes: SizeSteps?
    /// Whose steps end every recipe that the site makes, presets included: a watermark. nil, the default, for none.
    public var watermark: Recipe?

    public init() {}

    /// Whether clients cannot have every picture of a source made: presets, recipes or steps are listed, or a watermark is set.
    package var isRestricted: Bool { presetsOnly || allowed != nil || steps != nil || watermark != nil }

    /// The recipe to make for a text that parses as `recipe`.
    ///
    /// - Throws: `Problem`: 403 for one that the site does not make, 400 for a size that is no step.
    func admitted(_ recipe: Recipe, text: String) throws(Problem) -> Recipe {
        var recipe = try checked(recipe, text: text)
        guard let watermark else { return recipe }
        recipe.steps += watermark.steps
        let steps = recipe.description.split(separator: ",").count
        guard steps <= Recipe.stepLimit else {
            throw Problem(
                .invalidRecipe,
                "with the server's watermark it has \(steps) steps, and at most \(Recipe.stepLimit) are made")
        }
        return recipe
    }

    /// Why the site does not make a recipe; nil if it does.
    package func refusal(of recipe: Recipe, text: String) -> String? {
        do throws(Problem) {
            _ = try admitted(recipe, text: text)
            return nil
        } catch {
            return error.detail ?? error.kind.title
        }
    }

    /// The preset that a recipe's text names alone or before `suffixes`; nil for other texts.
    func preset(in text: String) -> String? {
        let steps = text.split(separator: ",")
        guard let first = steps.first, first.hasPrefix("@"), steps.dropFirst().allSatisfy(isSuffix) else { return nil }
        return String(first.dropFirst())
    }

    private func isSuffix(_ step: Substring) -> Bool {
        let name = Self.suffixName(step)
        return suffixes.contains { Self.suffixName($0[...]) == name }
    }

    /// Returns `jpeg` for `jpg`, and a step with arguments unchanged.
    private static func suffixName(_ step: Substring) -> Substring {
        step.contains(":") ? step : Catalogue.listedName(ofStep: step).map { $0[...] } ?? step
    }

    private func checked(_ recipe: Recipe, text: String) throws(Problem) -> Recipe {
        if let allowed {
            guard allowed.contains(recipe) else {
                throw Problem(.recipeNotAllowed, "only recipes in `recipes.allow` are made")
            }
        }
        if recipe.presetName != nil { return recipe }
        if presetsOnly {
            guard preset(in: text) == nil else { return recipe }
            throw Problem(
                .recipeNotAllowed,
                "only presets are made (`recipes.presetsOnly`); write one as `@name`"
                    + (suffixes.isEmpty
                        ? " and nothing else" : ", alone or with " + suffixes.joined(separator: ", ")))
        }
        if let steps {
            for step in text.split(separator: ",") where !step.hasPrefix("@") {
                guard let name = Catalogue.listedName(ofStep: step), steps.contains(name) else {
                    throw Problem(
                        .recipeNotAllowed,
                        "`\(step.prefix { $0 != ":" })` is not one of the steps that this server makes (`recipes.steps`): "
                            + steps.sorted().joined(separator: ", "))
                }
            }
        }
        guard let sizes, allowed == nil else { return recipe }
        return try sizes.admitted(recipe)
    }
}

/// The sizes that `thumbnail` is made in, so that clients who ask for every width cannot fill the caches.
public struct SizeSteps: Sendable, Hashable {
    /// Edges in pixels, ascending.
    public let edges: [Int]

    /// Whether another size is refused rather than replaced by the next step.
    public var isStrict = false

    /// Edges that cover thumbnails, layouts and screens.
    public static let usual = SizeSteps(edges: [20, 40, 60, 120, 250, 330, 500, 960, 1280, 1920, 3840])

    private init(edges: [Int]) { self.edges = edges }

    /// - Parameter edges: pixels, 1…8192, in any order; nil without any.
    public init?(_ edges: [Int]) {
        guard !edges.isEmpty, edges.allSatisfy({ (1...8192).contains($0) }) else { return nil }
        self.init(edges: Set(edges).sorted())
    }

    /// The ratios of the smaller to the larger edge of a box: of screens, photographs, banners and squares.
    private static let ratios = [1, 4.0 / 5, 3.0 / 4, 2.0 / 3, 9.0 / 16, 1.0 / 2, 1.0 / 3]

    /// How many sizes an edge makes at most: boxes of each ratio, upright and lying, a width alone and a height alone.
    static let boxesOfEdge = 2 * ratios.count - 1 + 2

    /// The smallest step that is not below an edge; the last one if all are.
    func step(for edge: Int) -> Int { edges.first { $0 >= edge } ?? edges[edges.count - 1] }

    /// The size that is made for another: its larger edge at a step, and two edges in the nearest of the ratios.
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

    /// The recipe with each `thumbnail` in a size of the steps.
    ///
    /// - Throws: `Problem`: 400 naming the size, if another one is to be refused.
    func admitted(_ recipe: Recipe) throws(Problem) -> Recipe {
        try recipe.mappingThumbnails { size throws(Problem) in
            let step = step(for: size)
            guard !isStrict || step == size else {
                throw Problem(
                    .invalidRecipe,
                    "`thumbnail`: \(size) is not a size that this server makes (`sizes.strict`); the next one is \(step)"
                )
            }
            return step
        }
    }
}
