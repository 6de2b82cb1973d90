public import Variants

extension ImagePipeline {
    /// Returns an image for a source and a recipe, both given as strings. All other options have the defaults of
    /// `ImageRequest`.
    ///
    /// A program that often requests the same recipe should parse it once with `recipe(_:)` and call `respond(to:)`.
    ///
    /// - Parameters:
    ///   - source: an http or https URL, the name of an original from a provider (`photos:42`), or a path.
    ///     `ImageSource(_:)` distinguishes URLs from paths.
    ///   - recipe: steps separated by commas, such as `thumbnail:300,webp` (docs/recipes.md). If nil, the default, the
    ///     response contains the bytes of the original.
    /// - Throws: `invalidRecipe` before any look-up or fetch if the recipe does not parse, or any error of
    ///   `respond(to:)`.
    public func image(for source: String, recipe: String? = nil) async throws(PipelineError) -> ImageResponse {
        var request = ImageRequest(ImageSource(source))
        if let recipe { request.recipe = try self.recipe(recipe) }
        return try await respond(to: request)
    }

    /// Parses a recipe, which may refer to the presets of this pipeline (`RenderingConfiguration.presets`).
    ///
    /// - Throws: `invalidRecipe` if the recipe does not parse.
    public func recipe(_ text: String) throws(PipelineError) -> Recipe {
        do throws(RecipeError) { return try Recipe(text, presets: presets) } catch { throw PipelineError(error) }
    }
}
