public import Variants

extension ImagePipeline {
    /// The image that a recipe makes of a source, both given as text; everything else is as `ImageRequest` has it by
    /// default.
    ///
    /// A program that asks for the same recipe often should parse it once with `recipe(_:)` and call `respond(to:)`.
    ///
    /// - Parameters:
    ///   - source: an http or https URL, the name of an original of a provider (`photos:42`), or a path; `ImageSource(_:)`
    ///     tells URLs and paths apart.
    ///   - recipe: steps separated by commas, such as `thumbnail:300,webp` (docs/recipes.md); nil, the default, asks
    ///     for the original's own bytes.
    /// - Throws: `invalidRecipe` if the recipe does not parse, before anything is looked up or fetched; otherwise what
    ///   `respond(to:)` throws.
    public func image(for source: String, recipe: String? = nil) async throws(PipelineError) -> ImageResponse {
        var request = ImageRequest(ImageSource(source))
        if let recipe { request.recipe = try self.recipe(recipe) }
        return try await respond(to: request)
    }

    /// Parses recipe text, in which `@name` refers to one of `PipelineConfiguration.presets`.
    ///
    /// Call it when the program starts, so that a misspelt step or preset stops the start rather than a request:
    /// `let card = try pipeline.recipe("@card")`.
    ///
    /// - Throws: `invalidRecipe`.
    public func recipe(_ text: String) throws(PipelineError) -> Recipe {
        do throws(RecipeError) { return try Recipe(text, presets: presets) } catch { throw PipelineError(error) }
    }
}
