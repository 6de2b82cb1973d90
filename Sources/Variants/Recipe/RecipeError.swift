/// Describes why recipe text was rejected: the invalid step, and the text that was expected.
///
/// ```swift
/// do throws(RecipeError) {
///     _ = try Recipe("thumbnial:300")
/// } catch {
///     print(error.suggestion ?? error.expected)  // thumbnail
/// }
/// ```
public struct RecipeError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The position of the step in the recipe as written, starting at 1, or nil if the error concerns the recipe as a
    /// whole.
    public var step: Int?
    /// The step as written, truncated to 80 characters and with control characters escaped. Empty if `step` is nil.
    public var text: String
    /// A description of the mistake and the expected text.
    public var expected: String
    /// The closest valid spelling.
    public var suggestion: String?

    package init(step: Int? = nil, text: String = "", expected: String, suggestion: String? = nil) {
        self.step = step
        self.text = Self.shown(text)
        self.expected = expected
        self.suggestion = suggestion
    }

    /// The error message, such as: step 2, `thumbnial`: unknown step; did you mean `thumbnail`?
    public var description: String {
        let place = step.map { "step \($0), `\(text)`: " } ?? ""
        return place + problem
    }

    private var problem: String { expected + (suggestion.map { "; did you mean `\($0)`?" } ?? "") }

    /// Returns the message with the recipe. The message names the step only if the recipe has other steps.
    package func message(of recipe: String) -> String {
        "recipe `\(Self.shown(recipe))`: " + (text == Self.shown(recipe) ? problem : description)
    }

    /// Returns user text for a message, truncated and with control characters escaped.
    static func shown(_ text: some StringProtocol) -> String {
        var result = ""
        for (count, scalar) in text.unicodeScalars.enumerated() {
            if count == 80 { return result + "…" }
            result += scalar.value < 0x20 || scalar.value == 0x7f ? scalar.escaped(asASCII: true) : String(scalar)
        }
        return result
    }
}
