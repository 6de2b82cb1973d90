import HTTPCaching
public import Pipeline
import PipelineFetching
public import PipelineSupport
import Variants

/// Responds to HTTP requests for pictures, using an image pipeline. Any HTTP server can mount a site: pass it each
/// request, and send the response that it returns.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// var configuration = ServerConfiguration()
/// configuration.keys = [try SigningKey(id: "k1", hex: "000102030405060708090a0b0c0d0e0f")]
/// configuration.baseURLs["photos"] = "https://images.example.org/photos"
/// let site = try Site(pipeline: pipeline, configuration: configuration)
/// let path = try site.path("thumbnail:300,webp", "photos:42.jpg")  // For a link in a page.
/// let response = await site.respond(method: "GET", path: path, fields: [("Host", "img.example.org")])
/// for try await chunk in response.body { print(response.status, chunk.count) }
/// ```
///
/// Errors become responses, too. `respond(to:with:)` answers a path of the application's own with a picture. `pipectl
/// serve` mounts a site in a server built with SwiftNIO.
public struct Site: Sendable {
    let pipeline: ImagePipeline
    let settings: ServerConfiguration
    let rules: SiteRules
    let prepared: PreparedAnswers
    let uploads: UploadBudget
    private let refusals = RefusalNotice()
    /// Returns the current time in Unix seconds.
    package let now: @Sendable () -> Double

    /// Creates a site that uses a pipeline. The caller shuts down the pipeline. Folders among the base URLs stay open
    /// as long as the site or a copy of it exists.
    ///
    /// - Throws: if a setting is invalid, for example a string that does not parse or a folder that does not exist. The
    ///   error names the setting.
    public init(pipeline: ImagePipeline, configuration: ServerConfiguration) throws(InvalidSetting) {
        try self.init(pipeline: pipeline, settings: configuration, now: { SystemClock.unix.seconds })
    }

    package init(
        pipeline: ImagePipeline, settings: ServerConfiguration, now: @escaping @Sendable () -> Double
    ) throws(InvalidSetting) {
        self.pipeline = pipeline
        var settings = settings
        do throws(InvalidSetting) { settings.pictureRoutes += try settings.mountedGrammars() } catch {
            throw InvalidSetting("`grammars`: \(error.message)")
        }
        self.settings = settings
        rules = try SiteRules(settings, presets: pipeline.presets)
        self.now = now
        let memory = pipeline.memoryStatistics
        prepared = PreparedAnswers(budgets: memory.originals.budget + memory.variants.budget)
        uploads = UploadBudget(largest: pipeline.limits.bytes)
    }

    /// The pipeline's caching rules, which determine the freshness of responses.
    var caching: CachingConfiguration { pipeline.caching }

    /// Whether the site has a page at `/`.
    package var hasPage: Bool { settings.playground }
    /// The path prefix of all routes.
    package var mountPoint: String { settings.mountPoint }
    /// The token that clients need, or nil if the server has keys or serves all clients.
    package var accessTokenInForce: AccessToken? { settings.signature.servesThisMachine ? settings.accessToken : nil }
    /// Whether folders on this machine are among the sources.
    package var hasFolders: Bool { !rules.baseURLs.folders.isEmpty }

    /// Returns a target relative to the mount point. Probes and `/metrics` also work without the mount point, because
    /// clients send them directly to the server and not through the proxy.
    ///
    /// - Throws: a `Problem` with status 404 if the path is outside the mount point.
    package func relativeTarget(_ target: String) throws(Problem) -> String {
        if settings.mountPoint.isEmpty { return target }
        let path = try RequestAdmission.originForm(target)
        if let below = ServerRequest.relativeTarget(settings.mountPoint, path) { return below }
        switch Operation.Name(RequestTarget(path)) {
        case .health, .ready, .metrics: return path
        default:
            throw Problem(
                .unknownPath, "the paths of pictures begin with \(settings.mountPoint)/ (`server.mountPoint`)")
        }
    }

    /// Responds to a request. Errors also become responses.
    ///
    /// - Parameter onInterim: A closure that receives the origin's interim responses before this method returns.
    package func respond(
        to request: ServerRequest, onInterim: @escaping @Sendable (ServerResponse) -> Void = { _ in }
    ) async -> ServerResponse {
        let route = settings.route(of: RequestTarget(request.target))
        var response = await traced(request, route) {
            await guarded(request) { request in
                guard route?.isPicture == true else { return await answer(to: request, route, onInterim) }
                return await pictureAnswer(to: request, route?.grammar) {
                    await answer(to: request, route, onInterim)
                }
            }
        }
        response.route = route
        return response
    }

    /// Returns the response with CORS and added fields, or the response to a preflight request.
    func pictureAnswer(
        to request: ServerRequest, _ grammar: (any Grammar)? = nil, _ answer: () async -> ServerResponse
    ) async -> ServerResponse {
        let rule = crossOrigin(grammar)
        let methods = RoutedRequest.methods + (settings.uploads && grammar?.takesUploads == true ? ["POST"] : [])
        let isAny = grammar?.crossOrigin != nil
        if let answer = rule.preflight(request, methods, isAny: isAny, now: now()) { return answer }
        return rules.fields.applied(to: rule.applied(to: await answer(), origin: request.fields.first("origin")))
    }

    /// Returns the rule that decides which pages may read the responses of a grammar.
    package func crossOrigin(_ grammar: (any Grammar)?) -> CrossOriginRule { grammar?.crossOrigin ?? rules.crossOrigin }

    private func answer(
        to request: ServerRequest, _ route: Route?, _ onInterim: @escaping @Sendable (ServerResponse) -> Void
    ) async -> ServerResponse {
        do throws(Problem) {
            switch route {
            case .picture(let grammar): return try await answer(to: request, grammar, onInterim)
            case .operation(let name): return try await answer(to: request, name)
            case nil: throw Operation.nothing
            }
        } catch {
            // The recipe was not parsed. It may leave the format open, in which case the response would vary by
            // `Accept`.
            return answer(to: error, request, source: nil, variesByAccept: route?.negotiates == true)
        }
    }

    private func answer(
        to request: ServerRequest, _ grammar: any Grammar, _ onInterim: @escaping @Sendable (ServerResponse) -> Void
    ) async throws(Problem) -> ServerResponse {
        if request.method == "POST", grammar.takesUploads { return try await upload(request, grammar) }
        try admitRoute(request, grammar)
        if let hit = await storedHit(request) { return hit }
        let routed = try read(request, grammar)
        var request = request
        let secrets = grammar.secretFields
        if !secrets.isEmpty { request.fields.removeAll { secrets.contains(FieldLines.lowercased($0.name)) } }
        guard RoutedRequest.methods.contains(request.method) || passesOn(request, routed) else {
            throw Self.refusal(
                of: request.method,
                allowed: routed.answer == .original
                    ? rules.methods.allowed(isSigned: routed.grant.isSigned) : methods(of: grammar))
        }
        try settings.loop.check(request.fields)
        try rules.referrers.check(request.fields)
        do throws(Problem) {
            switch routed.answer {
            case .original: return try await original(routed, request, onInterim)
            case .info: return try await info(routed, request)
            case .variant(let recipe): return try await variant(recipe, routed, request)
            case .choice(let choice): return try await picture(choice, routed, request, grammar)
            case .information: return try await information(routed, request)
            case .redirect(let location): return redirect(to: location)
            }
        } catch {
            return answer(
                to: error, request, source: routed.source,
                variesByAccept: routed.negotiates ?? (grammar.negotiates || routed.answer == .information))
        }
    }

    /// Throws a `Problem` with status 403 if this client may not use the route of a grammar.
    func admitRoute(_ request: ServerRequest, _ grammar: any Grammar) throws(Problem) {
        try admit(request)
        if let route = grammar as? ImageRoute, !settings.openRoutes.contains(route) {
            throw Problem(.routeClosed, "/\(grammar.name) is disabled on this server (`server.routes`)")
        }
    }

    private func answer(to request: ServerRequest, _ name: Operation.Name) async throws(Problem) -> ServerResponse {
        let operation = try Operation(name, RequestTarget(request.target))
        guard name.methods.contains(request.method) else {
            throw Self.refusal(of: request.method, allowed: name.methods)
        }
        try settings.loop.check(request.fields)
        switch operation {
        case .health: return health()
        case .source(let source, let mode): return try await purge(source, mode, request)
        case .purge: return try await purge(request)
        case .page(let page): return try await self.page(page, request)
        case .ready: return ready(request)
        case .metrics: return try await metrics(request)
        }
    }

    static func refusal(of method: String, allowed: [String], _ hint: String = "") -> Problem {
        var problem = Problem(
            .methodNotAllowed,
            "this path does not support \(method); the supported methods are \(allowed.joined(separator: ", "))"
                + hint)
        problem.allowed = allowed
        return problem
    }

    /// Whether the body of a request is needed, because it is forwarded to an origin or selects entries to purge.
    package func wantsBody(of request: ServerRequest) -> Bool {
        guard !RoutedRequest.methods.contains(request.method) else { return false }
        let target = RequestTarget(request.target)
        switch settings.route(of: target) {
        case .operation(.purge):
            return request.method == "POST" && rules.adminToken?.isIn(request.fields) == true
                && (try? Operation(.purge, target)) == .purge
        case .picture(let grammar):
            // `respond(to:onInterim:)` finds the same error again and responds to it.
            guard let routed = try? read(request, grammar) else { return false }
            return passesOn(request, routed)
        case .operation, nil: return false
        }
    }

    /// Returns the source that a client names.
    ///
    /// - Throws: a `Problem` with status 400 if the path leads out of a base URL, or 403 if no pattern allows the
    ///   bucket. The server's credentials may be able to read objects that clients must not see.
    func source(named text: String) throws(Problem) -> BaseURLs.Resolved {
        let source = try rules.baseURLs.resolved(text)
        guard source.text != text || !text.lowercased().hasPrefix("s3:") || pipeline.admitsListedSourcesOnly else {
            throw Problem(.sourceRefused, "buckets must be listed in `sources.allow`, or be a base URL")
        }
        // A list of allowed hosts does not allow the application's own originals either.
        guard source.folder != nil || !pipeline.admitsListedSourcesOnly || pipeline.ownName(source.text) == nil else {
            throw Problem(
                .sourceRefused,
                "if `sources.allow` is set, an application's own originals are available only at its own routes")
        }
        return source
    }

    private func passesOn(_ request: ServerRequest, _ routed: RoutedRequest) -> Bool {
        routed.answer == .original && settings.openRoutes.contains(.original)
            && rules.methods.contains(request.method, isSigned: routed.grant.isSigned)
    }

    private func original(
        _ routed: RoutedRequest, _ request: ServerRequest, _ onInterim: @escaping @Sendable (ServerResponse) -> Void
    ) async throws(Problem) -> ServerResponse {
        let source = try source(named: routed.source)
        let forwarded = rules.forwarded
        let changes = !RoutedRequest.methods.contains(request.method)
        let isObject = source.text.utf8.prefix(5).elementsEqual("s3://".utf8)
        var asked = OriginalRequest(
            url: source.text, fields: forwarded.upstream(request.fields, isOriginal: true, changes: changes))
        asked.folder = source.folder
        if request.method == "OPTIONS", let hops = request.combined("max-forwards").flatMap({ Int($0) }), hops >= 0 {
            // If `Max-Forwards` is 0, this server is the final recipient and must respond itself (RFC 9110 §7.6.2).
            if hops == 0 {
                let allowed = rules.methods.allowed(isSigned: false).joined(separator: ", ")
                return ServerResponse(status: 204, fields: [HeaderField("Allow", allowed), .date(now())])
            }
            asked.fields.append(HeaderField("Max-Forwards", String(hops - 1)))
        }
        if changes {
            asked.method = request.method
            asked.body = request.body
        }
        asked.honorsDirectives = forwarded.contains("cache-control") || forwarded.contains("pragma")
        asked.policy = policy(request)
        // Return the origin's response unchanged, including redirects and answers to the client's own conditions.
        asked.followsRedirects = false
        asked.forwardsConditionals = true
        asked.acceptsFile = true
        asked.onInterim = InterimObserver { status, fields in
            // A client would interpret `Content-Length` as the length of a body, but an interim response has no body
            // (RFC 9110 §8.6).
            let kept = OriginalAnswer.passed(fields, status: status, passesAll: forwarded.areAll, isObject: isObject)
                .filter { $0.name.lowercased() != "content-length" }
            onInterim(ServerResponse(status: status, fields: kept))
        }
        var original: OriginalResponse
        asked.gate = settings.rate?.gate(request.client, now)
        do throws(PipelineError) { original = try await pipeline.original(for: asked) } catch { throw Problem(error) }
        // A file has no time to live. Each request checks whether the file has changed.
        if source.folder != nil { original.handling.timeToLive = nil }
        if isObject { original = try Self.withoutErrorText(original, of: source.text) }
        let answer = OriginalAnswer.response(
            original, passesAll: forwarded.areAll, isObject: isObject, tags: settings.tags)
        if !changes { prepare(original, request, routed, isObject: isObject) }
        if changes { return answer }
        // Conditions and ranges are applied only to a 200, and without contacting the origin. Other responses stay as
        // the origin sent them.
        let isOrigin = asked.folder != nil
        let fields =
            original.status == 200
            ? request.fields.filter { forwarded.contains($0.name) || Self.compares($0, asOrigin: isOrigin) }
            : forwarded.visible(request.fields)
        return ConditionalAnswer.response(answer, to: fields, isHead: request.isHead, isOrigin: isOrigin, now: now())
    }

    /// Returns an object's response, without an error document from the object store. Such a document may name
    /// accounts, keys and requests.
    private static func withoutErrorText(
        _ original: OriginalResponse, of object: String
    ) throws(Problem) -> OriginalResponse {
        let status = original.status
        guard status >= 300, status != 304 else { return original }
        guard [412, 416].contains(status) else {
            throw Problem(
                PipelineError(
                    [404, 410].contains(status) ? .notFound : .fetchFailed,
                    "\(SourceURL.redacting(object)): the object store answered \(status)"))
        }
        var bare = original
        (bare.body, bare.file) = ([], nil)
        return bare
    }

    /// Whether a header field is a condition on the client's stored response, or requests a part of the response.
    ///
    /// - Parameter isOrigin: Whether this server has the original itself, so that no origin evaluates the condition.
    private static func compares(_ field: HeaderField, asOrigin isOrigin: Bool) -> Bool {
        let names =
            ["if-none-match", "if-modified-since", "range", "if-range"]
            + (isOrigin ? ["if-match", "if-unmodified-since"] : [])
        return names.contains { FieldLines.isSameName($0, field.name) }
    }

    /// Parses the recipe of a path.
    ///
    /// - Returns: The recipe, and the formats that the client accepts. The formats are nil if the recipe names one.
    func recipe(_ text: String, _ request: ServerRequest) throws(Problem) -> (Recipe, negotiated: [ImageFormat]?) {
        let recipe: Recipe
        do throws(RecipeError) {
            recipe = try Recipe(text, presets: rules.presets)
        } catch {
            throw Problem(.invalidRecipe, error.description)
        }
        guard recipe.output == nil || recipe.output?.kind == .auto else { return (recipe, nil) }
        return (recipe, Negotiation.formats(accept: request.combined("accept"), among: settings.formats))
    }

    private func variant(
        _ text: String, _ routed: RoutedRequest, _ request: ServerRequest
    ) async throws(Problem) -> ServerResponse {
        let source = routed.source
        let (recipe, negotiated) = try recipe(text, request)
        let isNegotiated = negotiated != nil
        var standIn = ImageRequest(.bytes([], name: ""), recipe: recipe)
        standIn.negotiated = negotiated ?? []
        do throws(Problem) {
            let recipe = try settings.recipes.admitted(recipe, text: text)
            standIn.recipe = recipe
            let url = try self.source(named: source)
            var asked = imageRequest(url, recipe, for: request)
            asked.negotiated = standIn.negotiated
            let ofPreset = settings.recipes.preset(in: text).flatMap { settings.presetFreshness[$0] }
            let cacheControl = (ofPreset ?? settings.freshness)?.directives
            return try await answer(
                asked, to: request, isNegotiated: isNegotiated, cacheControl: cacheControl,
                expiry: routed.grant.expiry
            ) { image, varying in
                let naming =
                    SourceFields.fields(of: url, image.format, isGiven: url.text == source)
                    + settings.tags.fields(of: image.record)
                // A named mask may have changed, so it is read for each request.
                if recipe.maskNames.isEmpty, recipe.overlayNames.isEmpty {
                    prepare(image, varying, naming, cacheControl, request, routed)
                }
                return naming
            }
        } catch {
            return await fallback(for: error, standIn, variesByAccept: isNegotiated)
                ?? answer(to: error, request, source: source, variesByAccept: isNegotiated)
        }
    }

    /// Returns a response with the fallback picture, or nil if it does not apply to this problem.
    ///
    /// - Parameters:
    ///   - asked: The failed request, which determines the recipe and the negotiated formats.
    ///   - grammar: The picture of the request's grammar, which precedes the site's.
    func fallback(
        for problem: Problem, _ asked: ImageRequest, variesByAccept: Bool, of grammar: FallbackPicture? = nil
    ) async -> ServerResponse? {
        guard let fallback = grammar ?? rules.fallback, fallback.applies(to: problem) else { return nil }
        let image = try? await pipeline.respond(to: fallback.request(like: asked))
        return fallback.response(to: problem, image, variesByAccept: variesByAccept, now: now())
    }

    /// Responds with the picture that the pipeline renders.
    ///
    /// - Parameters:
    ///   - cacheControl: A `Cache-Control` that replaces the value derived from the original.
    ///   - present: Completes a successful response.
    ///   - naming: A closure that returns the fields that name the source. It receives the picture and the fields that
    ///     it varies by.
    func answer(
        _ asked: ImageRequest, to request: ServerRequest, isNegotiated: Bool, cacheControl: String?,
        isOwnRoute: Bool = false,
        expiry: Double? = nil, present: (inout ServerResponse, PresentedPicture) -> Void = { _, _ in },
        naming: (ImageResponse, _ varying: [String]) -> [HeaderField]
    ) async throws(Problem) -> ServerResponse {
        let image: ImageResponse
        do throws(PipelineError) { image = try await pipeline.respond(to: asked) } catch { throw Problem(error) }
        let varying = VariantAnswer.varying(
            original: image.record.response.fields, forwarded: rules.forwarded, isNegotiated: isNegotiated)
        var answer = VariantAnswer.response(
            image, varying: varying, naming: naming(image, varying), caching: caching, cacheControl: cacheControl,
            isAtHand: asked.isAtHand, isOwnRoute: isOwnRoute, firstPassMaxAge: pipeline.maxAgeOfFirstPass,
            expiry: expiry, now: now())
        present(&answer, PresentedPicture(image, now: now()))
        return ConditionalAnswer.response(
            answer, to: request.fields, isHead: request.isHead, isOrigin: true, now: now())
    }

    /// Returns the error response. Operators see every detail, and other clients see a summary.
    ///
    /// - Parameter source: The source as the client wrote it, or nil if the request names no source.
    func answer(
        to problem: Problem, _ request: ServerRequest, source: String?, variesByAccept: Bool
    ) -> ServerResponse {
        if problem.kind == .sourceRefused || problem.kind == .notFound, let source {
            refusals.report(problem, of: source, rules.baseURLs, pipeline.warn)
        }
        if problem.kind == .originFailed {
            for notice in rules.baseURLs.folders.compactMap({ $0.takeNotice() }) { pipeline.warn(notice) }
        }
        let route = settings.route(of: RequestTarget(request.target))
        return problem.response(
            variesByAccept: variesByAccept, of: route?.grammar, showsAll: isOperator(request), now: now())
    }

    /// Returns a pipeline request on behalf of a client. The page's samples are valid sources if the page is enabled.
    func imageRequest(
        _ source: BaseURLs.Resolved, _ recipe: Recipe? = nil, for request: ServerRequest
    ) -> ImageRequest {
        var asked = ImageRequest(.url(source.text), recipe: recipe)
        asked.folder = source.folder
        if settings.playground, let sample = PageSample(source: source.text) { asked.source = sample.imageSource }
        return completed(asked, for: request)
    }

    /// Returns the request with the client's rate limit and with the fields and the policy that depend on the client.
    func completed(_ image: ImageRequest, for request: ServerRequest) -> ImageRequest {
        var asked = image
        asked.gate = settings.rate?.gate(request.client, now)
        let fields = rules.forwarded.upstream(request.fields, isOriginal: false)
        asked.fields += fields.filter { image.fields.first($0.name.lowercased()) == nil }
        asked.policy = image.policy ?? policy(request)
        return asked
    }

    /// Returns the site's policy, unless the client sent `no-cache` and the site honors it (RFC 9111 §5.2.1.4 and
    /// §5.4).
    func policy(_ request: ServerRequest) -> CachePolicy {
        guard settings.honorsClientNoCache else { return settings.policy }
        let control = CacheControl(fields: request.fields)
        let asks =
            control.directives.isEmpty
            ? request.combined("pragma")?.lowercased().contains("no-cache") == true : control.has("no-cache")
        return asks ? .revalidate : settings.policy
    }
}

extension ImageRequest {
    /// Whether the original is a file on this machine, or bytes in the request itself.
    var isAtHand: Bool { if case .url = source { folder != nil } else { true } }
}
