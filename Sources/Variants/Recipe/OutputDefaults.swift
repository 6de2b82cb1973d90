/// Sets default output options for each format, for recipes that do not set them: quality or `lossless`, `max`,
/// `score`, `progressive`, `chroma`, `effort` and `keep` (`RenderingConfiguration.outputs`).
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.rendering.outputs = try OutputDefaults(["jpeg:80:progressive", "avif:50:effort=3"])
/// ```
public struct OutputDefaults: Sendable, Hashable {
    private var byFormat: [ImageFormat: OutputSpecification] = [:]

    /// The defaults of the library (docs/recipes.md).
    public static let none = OutputDefaults()

    private init() {}

    /// - Parameter texts: outputs in recipe syntax, at most one per format, such as `jpeg:80:progressive` and
    ///   `avif:50:effort=3:keep=icc`.
    /// - Throws: `RecipeError` if a text is not an output with a format, or if a format appears twice.
    public init(_ texts: [String]) throws(RecipeError) {
        for text in texts {
            let recipe = try Recipe(text)
            guard recipe.stepsDescription.isEmpty, let output = recipe.output, case .format(let format) = output.kind
            else {
                throw RecipeError(
                    expected: "`\(RecipeError.shown(text))` is not an output with its options, such as "
                        + "jpeg:80:progressive")
            }
            guard byFormat.updateValue(output, forKey: format) == nil else {
                throw RecipeError(expected: "the options of `\(format.rawValue)` are given twice")
            }
        }
    }

    /// The outputs in canonical form, sorted by name.
    public var texts: [String] { byFormat.values.compactMap { $0.canonicalText(keepsProfile: false) }.sorted() }

    /// Returns the output with the format's defaults for options that the recipe does not set. Size and fidelity
    /// options are a single choice: an output that sets any of them gets none of the others from the defaults.
    func completed(_ written: OutputSpecification, as format: ImageFormat) -> OutputSpecification {
        guard let own = byFormat[format] else { return written }
        var output = written
        let isFree =
            written.quality == nil && !written.isLossless && written.maxBytes == nil && written.score == nil
            && !written.transcodes
        if isFree {
            (output.quality, output.isLossless) = (own.quality, own.isLossless)
            (output.maxBytes, output.score) = (own.maxBytes, own.score)
            output.transcodes = own.transcodes
        }
        output.isProgressive = written.isProgressive || own.isProgressive
        if written.chroma == .auto { output.chroma = own.chroma }
        output.effort = written.effort ?? own.effort
        // `none` means that the recipe adds nothing to what it lists.
        if let kept = written.keep {
            output.keep = kept.contains(.copyright) ? kept.union(own.keep ?? []) : kept
        } else {
            output.keep = own.keep
        }
        return output
    }
}
