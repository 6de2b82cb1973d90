/// Named recipes, used in recipe text as `@name`.
public struct RecipePresets: Sendable, Hashable {
    /// Presets may use other presets, nested at most this deep.
    package static let nestingLimit = 4

    /// No presets at all.
    public static let none = RecipePresets()

    private let texts: [String: String]
    /// The most steps a recipe may have after presets are expanded; at most `Recipe.stepLimit`.
    let stepLimit: Int

    private init() {
        texts = [:]
        stepLimit = Recipe.stepLimit
    }

    /// Checks every name and recipe. Names match `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`; presets must not form a circle or
    /// nest deeper than 4; an output may only be the last step. Reports the first faulty preset in order of name.
    ///
    /// - Parameters:
    ///   - texts: recipe texts by their names.
    ///   - stepLimit: the most steps a recipe may have after presets are expanded; at most 32, the default.
    public init(_ texts: [String: String], stepLimit: Int = Recipe.stepLimit) throws(RecipeError) {
        self.texts = texts
        self.stepLimit = min(stepLimit, Recipe.stepLimit)
        for name in names {
            guard RecipeName.isValid(name) else {
                throw RecipeError(
                    expected: "preset `\(RecipeError.shown(name))`: its name must be \(RecipeName.rule)")
            }
            guard let text = texts[name], !text.isEmpty else {
                throw RecipeError(expected: "preset `\(name)` is empty; expected a recipe")
            }
            guard text.utf8.count <= Recipe.characterLimit else {
                throw RecipeError(
                    expected: "preset `\(name)` has more than \(Recipe.characterLimit) characters")
            }
        }
        for name in names { _ = try Recipe("@" + name, presets: self) }
    }

    package var names: [String] { texts.keys.sorted() }

    package subscript(name: String) -> String? { texts[name] }
}
