public import Variants

/// Which recipes a site makes of those that clients ask for. What the operator has written, presets and `recipes.allow`,
/// is made as it is.
public struct RecipeRules: Sendable {
    /// Recipes that the site makes; nil if it makes all. In canonical form, presets expanded.
    public var allowed: Set<Recipe>?
    /// Whether a client may ask for a preset (`@name`) alone, and for nothing that it has written itself.
    public var presetsOnly = false
    /// Names of the steps, load options and outputs that clients may write; nil if they may write all. Presets may use
    /// any.
    public var steps: Set<String>?
    /// The sizes of `thumbnail`; nil if there is no rule.
    public var sizes: SizeSteps?

    public init() {}

    /// The recipe to make for a text that parses as `recipe`.
    ///
    /// - Throws: `Problem`: 403 for one that the site does not make, 400 for a size that is no step.
    func admitted(_ recipe: Recipe, text: String) throws(Problem) -> Recipe {
        if let allowed {
            guard allowed.contains(recipe) else {
                throw Problem(.recipeNotAllowed, "only recipes in `recipes.allow` are made")
            }
        }
        if recipe.presetName != nil { return recipe }
        guard !presetsOnly else {
            throw Problem(
                .recipeNotAllowed,
                "only presets are made (`recipes.presetsOnly`); write one as `@name` and nothing else")
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

    /// The smallest step that is not below an edge; the last one if all are.
    func step(for edge: Int) -> Int { edges.first { $0 >= edge } ?? edges[edges.count - 1] }

    /// The recipe with each `thumbnail`'s larger edge at a step, the other edge in the same ratio.
    ///
    /// - Throws: `Problem`: 400 naming the step, if another size is to be refused.
    func admitted(_ recipe: Recipe) throws(Problem) -> Recipe {
        if isStrict, let edge = recipe.thumbnailEdges.first(where: { step(for: $0) != $0 }) {
            throw Problem(
                .invalidRecipe,
                "`thumbnail`: \(edge) is not a size that this server makes (`sizes.strict`); the next one is "
                    + "\(step(for: edge))")
        }
        return recipe.mappingThumbnailEdges(step(for:))
    }
}
