/// What outputs have unless a recipe says otherwise, for each format: quality or `lossless`, `max`, `progressive`,
/// `chroma`, `effort`, `keep`.
public struct OutputDefaults: Sendable, Hashable {
    private var byFormat: [ImageFormat: OutputSpecification] = [:]

    /// The library's own defaults (docs/recipes.md).
    public static let none = OutputDefaults()

    private init() {}

    /// - Parameter texts: outputs as in recipes, each of another format: `jpeg:80:progressive`,
    ///   `avif:50:effort=3:keep=copyright`.
    /// - Throws: `RecipeError` for what is no output with a format, and for a format that comes twice.
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
                throw RecipeError(expected: "`\(format.rawValue)` has its options twice")
            }
        }
    }

    /// The outputs in canonical form, in the order of their names.
    public var texts: [String] { byFormat.values.compactMap { $0.canonicalText(keepsProfile: false) }.sorted() }

    /// The output as written, with the format's defaults where it says nothing. What says how many bytes there may be,
    /// and how like the picture has to be, is one choice: an output that makes it keeps it whole.
    func completed(_ written: OutputSpecification, as format: ImageFormat) -> OutputSpecification {
        guard let own = byFormat[format] else { return written }
        var output = written
        if written.quality == nil, !written.isLossless, written.maxBytes == nil {
            (output.quality, output.isLossless, output.maxBytes) = (own.quality, own.isLossless, own.maxBytes)
        }
        output.isProgressive = written.isProgressive || own.isProgressive
        if written.chroma == .auto { output.chroma = own.chroma }
        output.effort = written.effort ?? own.effort
        output.keep.formUnion(own.keep)
        return output
    }
}
