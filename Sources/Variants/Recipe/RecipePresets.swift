/// Contains named recipes, which recipe text refers to as `@name`. A pipeline creates them from
/// `RenderingConfiguration.presets`. Create them yourself to parse recipes without a pipeline.
///
/// ```swift
/// let presets = try RecipePresets(["card": "thumbnail:300x200:fill"])
/// let recipe = try Recipe("@card,webp", presets: presets)
/// print(recipe)  // thumbnail:300x200:fill,webp
/// ```
public struct RecipePresets: Sendable, Hashable {
    /// The maximum nesting depth of presets that use other presets.
    package static let nestingLimit = 4

    /// An empty set of presets.
    public static let none = RecipePresets(unchecked: [:], stepLimit: Recipe.stepLimit)

    private let texts: [String: String]
    /// The maximum number of steps after preset expansion. At most `Recipe.stepLimit`.
    let stepLimit: Int

    /// Checks all names and recipes, and throws the error of the first invalid preset in order of name. Names must
    /// match `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`. Presets must not form a cycle or nest deeper than four levels, and an
    /// output must be the last step.
    ///
    /// - Parameters:
    ///   - texts: the recipe texts, indexed by preset name.
    ///   - stepLimit: the maximum number of steps after preset expansion. At most 32, which is the default.
    public init(_ texts: [String: String], stepLimit: Int = Recipe.stepLimit) throws(RecipeError) {
        self.init(unchecked: texts, stepLimit: stepLimit)
        for name in names { if let fault = fault(of: name) { throw fault } }
    }

    private init(unchecked texts: [String: String], stepLimit: Int) {
        self.texts = texts
        self.stepLimit = min(stepLimit, Recipe.stepLimit)
    }

    /// Returns the errors in these presets, in order of name. Omits presets that are invalid only because they use an
    /// invalid preset.
    package static func faults(
        in texts: [String: String], stepLimit: Int = Recipe.stepLimit
    ) -> [(name: String, fault: RecipeError)] {
        let presets = RecipePresets(unchecked: texts, stepLimit: stepLimit)
        let faults = presets.names.compactMap { name in presets.fault(of: name).map { (name: name, fault: $0) } }
        let faulty = Set(faults.map(\.name))
        return faults.filter { name, _ in
            // Presets in a cycle use each other, and each of them is invalid.
            !presets.used(by: name).contains { faulty.contains($0) && !presets.used(by: $0).contains(name) }
        }
    }

    private func fault(of name: String) -> RecipeError? {
        guard RecipeName.isValid(name) else {
            return RecipeError(expected: "preset `\(RecipeError.shown(name))`: its name must be \(RecipeName.rule)")
        }
        guard let text = texts[name], !text.isEmpty else {
            return RecipeError(expected: "preset `\(name)` is empty; set it to a recipe")
        }
        guard text.utf8.count <= Recipe.characterLimit else {
            return RecipeError(expected: "preset `\(name)` exceeds the maximum of \(Recipe.characterLimit) characters")
        }
        do throws(RecipeError) { _ = try Recipe("@" + name, presets: self) } catch { return error }
        return nil
    }

    /// Returns all presets that a preset uses, directly or indirectly.
    private func used(by name: String) -> Set<String> {
        var used: Set<String> = []
        var waiting = [name]
        while let text = waiting.popLast().flatMap({ texts[$0] }) {
            for step in text.split(separator: ",") where step.hasPrefix("@") {
                let name = String(step.dropFirst())
                if used.insert(name).inserted { waiting.append(name) }
            }
        }
        return used
    }

    package var names: [String] { texts.keys.sorted() }

    package subscript(name: String) -> String? { texts[name] }
}
