/// Why recipe text was refused: which step, and what was expected in its place.
public struct RecipeError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Position of the step in the written recipe, from 1; nil if the recipe as a whole is at fault.
    public var step: Int?
    /// The step as written, cut to 80 characters, control characters escaped; empty if `step` is nil.
    public var text: String
    /// What is wrong and what was expected.
    public var expected: String
    /// The nearest spelling that would have been understood there.
    public var suggestion: String?

    package init(step: Int? = nil, text: String = "", expected: String, suggestion: String? = nil) {
        self.step = step
        self.text = Self.shown(text)
        self.expected = expected
        self.suggestion = suggestion
    }

    /// For example: step 2, `thumbnial`: unknown step; did you mean `thumbnail`?
    public var description: String {
        let place = step.map { "step \($0), `\(text)`: " } ?? ""
        return place + problem
    }

    private var problem: String { expected + (suggestion.map { "; did you mean `\($0)`?" } ?? "") }

    /// The message with the recipe. The step is named only if the recipe has others.
    package func message(of recipe: String) -> String {
        "recipe `\(Self.shown(recipe))`: " + (text == Self.shown(recipe) ? problem : description)
    }

    /// User text as it may appear in a message: bounded, and without control characters.
    static func shown(_ text: some StringProtocol) -> String {
        var result = ""
        for (count, scalar) in text.unicodeScalars.enumerated() {
            if count == 80 { return result + "…" }
            result += scalar.value < 0x20 || scalar.value == 0x7f ? scalar.escaped(asASCII: true) : String(scalar)
        }
        return result
    }
}
