public import HTTPTypes
public import Pipeline
public import Variants

extension Site {
    /// Answers a request for a path of the program's own with a picture, as `/variant` answers: with its format by `Accept` if
    /// the recipe leaves it open, validators, 304, HEAD, ranges, `Vary`, `Cache-Control` and `Cache-Status`, and with RFC 9457
    /// problems. Who may have the picture, and which one, is for the program to decide: no signature, rule of recipes or base
    /// URL is looked at. The settings for rates, forwarded fields, CORS, added fields and the fallback picture apply.
    ///
    /// - Parameters:
    ///   - request: GET or HEAD; its path says nothing.
    ///   - image: what the answer is made of; its own fields and policy go before those that the site would set.
    ///   - cacheControl: in place of what follows from the original. What that keeps from shared caches is not offered to them,
    ///     but `private` and `no-store` here always hold. What the pipeline may not store is `private`.
    ///   - client: the client's address, for `ServerConfiguration.rate`.
    public func respond(
        to request: HTTPRequest, with image: ImageRequest, cacheControl: String? = nil, client: String? = nil
    ) async -> (HTTPResponse, AnswerBody) {
        let response: ServerResponse
        do throws(Problem) {
            var asked = try ServerRequest(request, mountPoint: "")
            asked.client = client
            response = await traced(asked) { [asked] in
                let rule = settings.crossOrigin
                if let answer = rule.preflight(asked, now: now()) { return answer }
                return settings.fields.applied(
                    to: rule.applied(
                        to: await answer(to: asked, with: image, cacheControl), origin: asked.fields.first("origin")))
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
            guard Route.methods.contains(request.method) else {
                var problem = Problem(.methodNotAllowed, "\(request.method) is not for this path")
                problem.allowed = Route.methods
                throw problem
            }
            try settings.loop.check(request.fields)
            var asked = completed(image, for: request)
            if isNegotiated {
                asked.negotiated = Negotiation.formats(accept: request.combined("accept"), among: settings.formats)
            }
            return try await answer(
                asked, to: request, isNegotiated: isNegotiated, told: cacheControl, isOwnRoute: true
            ) { image, _ in
                settings.tags.fields(of: image.record)
            }
        } catch {
            return await fallback(for: error, image, variesByAccept: isNegotiated)
                ?? answer(to: error, request, variesByAccept: isNegotiated)
        }
    }

    /// The path of a variant, mount point included, for a link in a page: signed with the first key, or unsigned without one.
    ///
    /// Call it once for each recipe when the program starts, so that a recipe that the site would refuse stops the start.
    ///
    /// - Parameters:
    ///   - recipe: its text; presets may stand in it by name.
    ///   - source: an http or https URL, or `name:path` with the name of a base URL or provider.
    ///   - expiry: Unix seconds from which the path is refused; nil, the default, for never. Only signed paths expire.
    /// - Throws: `invalidRecipe` if the recipe does not parse, names an unknown preset, or is one that the site's rules refuse.
    public func path(_ recipe: String, _ source: String, expiry: Int? = nil) throws(PipelineError) -> String {
        do {
            _ = try settings.recipes.admitted(Recipe(recipe, presets: settings.presets), text: recipe)
        } catch {
            let message = (error as? Problem).map { $0.detail ?? $0.kind.title } ?? "\(error)"
            throw PipelineError(.invalidRecipe, "`\(recipe)`: \(message)", cause: error)
        }
        return settings.mountPoint
            + (settings.signature.keys.first?.variantPath(recipe: recipe, source: source, expiry: expiry)
                ?? "/variant/\(Signature.unsigned)/\(PercentText.segment(recipe))/\(PercentText.segment(source))")
    }

    /// The same for a recipe that has been parsed, or made of typed steps. A preset alone is written as `@name`.
    public func path(_ recipe: Recipe, _ source: String, expiry: Int? = nil) throws(PipelineError) -> String {
        try path(recipe.presetName.map { "@" + $0 } ?? recipe.description, source, expiry: expiry)
    }
}
