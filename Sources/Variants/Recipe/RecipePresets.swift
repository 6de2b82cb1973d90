/// Named recipes, used in recipe text as `@name`.
public struct RecipePresets: Sendable, Hashable {
    /// Presets may use other presets, nested at most this deep.
    package static let nestingLimit = 4

    /// No presets at all.
    public static let none = RecipePresets(unchecked: [:], stepLimit: Recipe.stepLimit)

    private let texts: [String: String]
    /// The most steps a recipe may have after presets are expanded; at most `Recipe.stepLimit`.
    let stepLimit: Int

    /// Checks every name and recipe. Names match `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`; presets must not form a circle or
    /// nest deeper than 4; an output may only be the last step. Reports the first faulty preset in order of name.
    ///
    /// - Parameters:
    ///   - texts: recipe texts by their names.
    ///   - stepLimit: the most steps a recipe may have after presets are expanded; at most 32, the default.
    public init(_ texts: [String: String], stepLimit: Int = Recipe.stepLimit) throws(RecipeError) {
        self.init(unchecked: texts, stepLimit: stepLimit)
        for name in names { if let fault = fault(of: name) { throw fault } }
    }

    private init(unchecked texts: [String: String], stepLimit: Int) {
        self.texts = texts
        self.stepLimit = min(stepLimit, Recipe.stepLimit)
    }

    /// What is wrong with each of these presets, in order of name. One that is wrong only because of another that it uses
    /// is left out.
    package static func faults(
        in texts: [String: String], stepLimit: Int = Recipe.stepLimit
    ) -> [(name: String, fault: RecipeError)] {
        let presets = RecipePresets(unchecked: texts, stepLimit: stepLimit)
        let faults = presets.names.compactMap { name in presets.fault(of: name).map { (name: name, fault: $0) } }
        let faulty = Set(faults.map(\.name))
        return faults.filter { name, _ in
            // Those of a circle use each other, and each of them is at fault.
            !presets.used(by: name).contains { faulty.contains($0) && !presets.used(by: $0).contains(name) }
        }
    }

    private func fault(of name: String) -> RecipeError? {
        guard RecipeName.isValid(name) else {
            return RecipeError(expected: "preset `\(RecipeError.shown(name))`: its name must be \(RecipeName.rule)")
        }
        guard let text = texts[name], !text.isEmpty else {
            return RecipeError(expected: "preset `\(name)` is empty; expected a recipe")
        }
        guard text.utf8.count <= Recipe.characterLimit else {
            return RecipeError(expected: "preset `\(name)` has more than \(Recipe.characterLimit) characters")
        }
        do throws(RecipeError) { _ = try Recipe("@" + name, presets: self) } catch { return error }
        return nil
    }

    /// All presets that one uses, through others too.
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
