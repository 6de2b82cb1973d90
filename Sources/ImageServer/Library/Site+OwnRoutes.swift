public import HTTPTypes
public import Pipeline
public import Variants

extension Site {
    /// Responds to a request for one of the application's own paths with a picture, as `/variant` does. Supports
    /// validators, 304, HEAD, ranges, `Vary`, `Cache-Control`, `Cache-Status` and RFC 9457 problems, and content
    /// negotiation with `Accept` if the recipe leaves the format open.
    ///
    /// The application decides which client may see which picture, so signatures, recipe rules and base URLs do not
    /// apply. The settings for rate limits, forwarded fields, CORS, added fields and the fallback picture do apply.
    ///
    /// - Parameters:
    ///   - request: A GET or HEAD request. Its path is ignored.
    ///   - image: The picture. Its own fields and policy take precedence over the site's.
    ///   - cacheControl: A `Cache-Control` that replaces the value derived from the original. The original's
    ///     restrictions for shared caches still apply, and `private` and `no-store` in this value always apply. A
    ///     response that the pipeline may not store is `private`.
    ///   - client: The client's address, for `ServerConfiguration.rate`.
    public func respond(
        to request: HTTPRequest, with image: ImageRequest, cacheControl: String? = nil, client: String? = nil
    ) async -> (HTTPResponse, AnswerBody) {
        let response: ServerResponse
        do throws(Problem) {
            var asked = try ServerRequest(request, target: request.path ?? "")
            asked.client = client
            response = await traced(asked, nil) { [asked] in
                await pictureAnswer(to: asked) { await answer(to: asked, with: image, cacheControl) }
            }
        } catch {
            response = error.response(now: now())
        }
        return (HTTPResponse(response), AnswerBody(response, isHead: request.method == .head))
    }

    private func answer(
        to request: ServerRequest, with image: ImageRequest, _ cacheControl: String?
    ) async -> ServerResponse {
        let output = image.recipe?.output
        let isNegotiated =
            image.recipe != nil && (output == nil || output?.kind == .auto) && image.negotiated.isEmpty
        do throws(Problem) {
            guard RoutedRequest.methods.contains(request.method) else {
                throw Self.refusal(of: request.method, allowed: RoutedRequest.methods)
            }
            try settings.loop.check(request.fields)
            var asked = completed(image, for: request)
            if isNegotiated {
                asked.negotiated = Negotiation.formats(accept: request.combined("accept"), among: settings.formats)
            }
            return try await answer(
                asked, to: request, isNegotiated: isNegotiated, cacheControl: cacheControl, isOwnRoute: true
            ) { image, _ in
                settings.tags.fields(of: image.record)
            }
        } catch {
            return await fallback(for: error, image, variesByAccept: isNegotiated)
                ?? answer(to: error, request, source: nil, variesByAccept: isNegotiated)
        }
    }

    /// Returns the path of a variant, including the mount point, for a link in a page. The path is signed with the
    /// first key, or unsigned if there are no keys.
    ///
    /// Call this method once for each recipe at startup, so that a recipe that the site refuses is found early.
    ///
    /// - Parameters:
    ///   - recipe: The recipe as a string. It may refer to presets by name.
    ///   - source: An http or https URL, or `name:path` with the name of a base URL or provider.
    ///   - expiry: When a signed path expires, in seconds since 1970, rounded down. If nil, the default, the path never
    ///     expires.
    /// - Throws: `invalidRecipe` if the recipe does not parse, names an unknown preset, or is refused by the site's
    ///   rules.
    public func path(_ recipe: String, _ source: String, expiry: Double? = nil) throws(PipelineError) -> String {
        do {
            _ = try settings.recipes.admitted(Recipe(recipe, presets: rules.presets), text: recipe)
        } catch {
            let message = (error as? Problem).map { $0.detail ?? $0.kind.title } ?? "\(error)"
            throw PipelineError(.invalidRecipe, "`\(recipe)`: \(message)", cause: error)
        }
        return settings.mountPoint
            + (settings.signature.keys.first?.variantPath(recipe: recipe, source: source, expiry: expiry)
                ?? "/variant/\(Signature.unsigned)/\(PercentText.segment(recipe))/\(PercentText.segment(source))")
    }

    /// Returns the path of a variant for a parsed recipe or a recipe built from typed steps. A recipe that consists of
    /// a preset is written as `@name`.
    public func path(_ recipe: Recipe, _ source: String, expiry: Double? = nil) throws(PipelineError) -> String {
        try path(recipe.presetName.map { "@" + $0 } ?? recipe.description, source, expiry: expiry)
    }
}
