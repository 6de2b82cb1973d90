import TestSupport

@testable import Variants

extension VariantsFuzzTests {
    /// Recipe text: canonical text is a recipe, the same one, within the limits; an error says something.
    static let recipeTarget = FuzzTarget(
        "recipe",
        words: [
            "thumbnail:", "300x200", ":fill", ":gravity=", "attention", "rounded-mask:", "50pct", "50%", "mask:star",
            "crop:10x10+5+5", "rotate:", "blur:", "overlay:", "dpr:", "frames:", "orient:off", "profile:keep", "@",
            ",", ":", "=", "+", "x", "-", ".", "0", "999999999999999999999", "1e9", "nan", "max=20kB", "lossless",
            "keep=exif+icc", "jpeg:80", "webp", "auto", "original", "background:ff00ff80", "\u{301}", "é", "\r\n",
        ]
    ) { bytes in
        do throws(RecipeError) {
            let recipe = try Recipe(bytes.fuzzText)
            let canonical = recipe.description
            if canonical.count > Recipe.characterLimit { return "the canonical text is over the limit" }
            let again = try Recipe(canonical)
            return again.description == canonical ? nil : "`\(canonical)` is read as `\(again)`"
        } catch {
            if (try? Recipe(bytes.fuzzText)) != nil { return "its canonical text is refused: \(error)" }
            return error.description.isEmpty ? "an error without words" : nil
        }
    }
}
