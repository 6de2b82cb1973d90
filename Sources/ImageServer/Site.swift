public import HTTPCaching
public import Pipeline
import PipelineFetching
import PipelineSupport
import Variants

/// From a request to its answer: the routes, on top of the pipeline. Knows no connection, so any HTTP server can mount it;
/// `ImageServerNIO` is the one that `pipectl serve` runs.
public struct Site: Sendable {
    let pipeline: ImagePipeline
    let settings: ServerConfiguration
    private let prepared: PreparedAnswers
    private let refusals = RefusalNotice()
    /// Unix seconds.
    package let now: @Sendable () -> Double

    /// A site on a pipeline, whose lifetime is the caller's affair.
    public init(pipeline: ImagePipeline, configuration: ServerConfiguration) {
        self.init(pipeline: pipeline, settings: configuration, now: { SystemClock.unix.seconds })
    }

    package init(pipeline: ImagePipeline, settings: ServerConfiguration, now: @escaping @Sendable () -> Double) {
        self.pipeline = pipeline
        var settings = settings
        if settings.presets == .none { settings.presets = pipeline.presets }
        self.settings = settings
        self.now = now
        let memory = pipeline.memoryStatistics
        prepared = PreparedAnswers(budgets: memory.originals.budget + memory.variants.budget)
    }

    /// The pipeline's own rules, from which answers derive their freshness.
    var caching: CachingConfiguration { pipeline.caching }

    /// Whether there is a page at `/`.
    package var hasPage: Bool { settings.playground }
    /// The path before all others.
    package var mountPoint: String { settings.mountPoint }
    /// Whether folders of this machine are among the sources.
    package var hasFolders: Bool { !settings.baseURLs.folders.isEmpty }

    /// What a target is below the mount point. Probes and `/metrics` are also answered where they are without one, since
    /// they ask the server itself and not what stands before it.
    ///
    /// - Throws: `Problem`: 404 for a path outside the mount point.
    package func below(_ target: String) throws(Problem) -> String {
        if settings.mountPoint.isEmpty { return target }
        let path = try RequestAdmission.originForm(target)
        if let below = ServerRequest.below(settings.mountPoint, path) { return below }
        switch RouteName(path) {
        case .health, .ready, .metrics: return path
        default: throw ServerRequest.outside(settings.mountPoint)
        }
    }

    /// A fresh answer that memory holds, without suspending: for a server's event loops. nil if the request is to be
    /// answered by `respond(to:onInterim:)`.
    ///
    /// - Parameters:
    ///   - method: as sent.
    ///   - target: path and query as sent, below the mount point.
    ///   - fields: all of the request, `Host` included.
    /// - Returns: an answer for an HTTP/1.1 connection that stays open.
    public func hit(method: String, target: String, fields: [HeaderField]) -> PreparedAnswer? {
        // A server without keys answers by the client's address, which only `respond(to:onInterim:)` knows.
        guard !settings.signature.servesThisMachine,
            let query = HitQuery(method: method, fields: fields, settings)
        else { return nil }
        let key = key(target, query)
        guard let entry = prepared.entry(for: key) else { return nil }
        let now = now()
        guard entry.fresh.contains(now) else {
            prepared.remove(key)
            return nil
        }
        return pipeline.body(of: entry.answer).map { entry.prepared($0, for: query, now: now) }
    }

    /// A prepared answer with its body: from memory if the caller has not asked `hit`, else from a tier behind it.
    private func storedHit(_ request: ServerRequest) async -> ServerResponse? {
        let now = now()
        guard let query = HitQuery(method: request.method, fields: request.fields, settings),
            let entry = prepared.entry(for: key(request.target, query)), entry.fresh.contains(now)
        else { return nil }
        let body: [UInt8]
        var tier = TierName.memory
        if let inMemory = pipeline.body(of: entry.answer) {
            body = inMemory
        } else {
            guard let stored = await pipeline.storedBody(of: entry.answer) else { return nil }
            (body, tier) = stored
        }
        var answer = entry.response(now, tier)
        answer.body = body[...]
        return ConditionalAnswer.response(
            answer, to: request.fields, isHead: query.isHead, isOrigin: true, now: now)
    }

    /// Recipes that leave the format open depend on `Accept`, and on nothing else of it than the formats it names.
    private func key(_ target: String, _ query: HitQuery) -> PreparedAnswers.Key {
        PreparedAnswers.Key(
            target: target,
            formats: query.accept == nil || target.hasPrefix("/original/")
                ? []
                : Negotiation.formats(accept: query.accept, among: settings.formats).map {
                    UInt8(settings.formats.firstIndex(of: $0) ?? 0)
                }, origin: settings.crossOrigin.selected(query.origin))
    }

    /// Answers; whatever goes wrong is an answer too.
    ///
    /// - Parameter onInterim: takes the origin's interim responses, before this returns.
    package func respond(
        to request: ServerRequest, onInterim: @escaping @Sendable (ServerResponse) -> Void = { _ in }
    ) async -> ServerResponse {
        await traced(request) {
            let rule = RouteName(request.target)?.isSigned == true ? settings.crossOrigin : .none
            if let answer = rule.preflight(request, now: now()) { return answer }
            let answer = rule.applied(to: await answer(to: request, onInterim), origin: request.fields.first("origin"))
            return RouteName(request.target)?.isSigned == true ? settings.fields.applied(to: answer) : answer
        }
    }

    private func answer(
        to request: ServerRequest, _ onInterim: @escaping @Sendable (ServerResponse) -> Void
    ) async -> ServerResponse {
        do throws(Problem) {
            try admit(request)
            try checkIsOpen(request.target)
            if let hit = await storedHit(request) { return hit }
            // First, so that nothing of a path is decoded or done for those who may not ask.
            let grant = try settings.signature.grant(request.target, now: now())
            let route = try Route(request.target)
            guard route.methods.contains(request.method) || passesOn(request, route) else {
                var problem = Problem(.methodNotAllowed, "\(request.method) is not for this path")
                problem.allowed = route.methods
                if case .original(let signature, _) = route {
                    problem.allowed = settings.methods.allowed(signature: signature)
                }
                throw problem
            }
            try settings.loop.check(request.fields)
            if RouteName(request.target)?.isSigned == true { try settings.referrers.check(request.fields) }
            switch route {
            case .health:
                return health()
            case .source(let source, let mode):
                return try await purge(source, mode, request)
            case .purge:
                return try await purge(request)
            case .page(let page):
                return try await self.page(page, request)
            case .ready:
                return ready(request)
            case .metrics:
                return try await metrics(request)
            case .original(_, let source):
                return try await original(source, request, try Self.needed(grant), onInterim)
            case .info(_, let source):
                return try await info(source, request, try Self.needed(grant))
            case .variant(_, let recipe, let source):
                return try await variant(recipe, source, request, try Self.needed(grant))
            }
        } catch {
            // The recipe was not read, so it may be one without a format, whose answer varies by `Accept`.
            return answer(to: error, request, variesByAccept: request.target.hasPrefix("/variant/"))
        }
    }

    /// Whether the request goes to an origin with what it carries, or its body says what to purge.
    package func wantsBody(of request: ServerRequest) -> Bool {
        // Errors are answered by `respond(to:onInterim:)`, which meets them again.
        guard !Route.methods.contains(request.method), let route = try? Route(request.target) else { return false }
        // It has no signature, and so no grant.
        if case .purge = route { return request.method == "POST" && settings.adminToken?.isIn(request.fields) == true }
        return passesOn(request, route) && (try? settings.signature.grant(request.target, now: now())) != nil
    }

    /// Throws a 403 for a route that the setting `server.routes` closes.
    private func checkIsOpen(_ target: String) throws(Problem) {
        guard let route = RouteName(target).flatMap({ ImageRoute(rawValue: $0.rawValue) }),
            !settings.openRoutes.contains(route)
        else { return }
        throw Problem(.routeClosed, "/\(route.rawValue) is closed on this server (`server.routes`)")
    }

    /// Leave for a route that needs it; a path without a signature has none.
    private static func needed(_ grant: Signature.Grant?) throws(Problem) -> Signature.Grant {
        guard let grant else { throw Problem(.badSignature) }
        return grant
    }

    /// The source that a client names.
    ///
    /// - Throws: `Problem`: 400 for a path that leads out of a base URL; 403 for a bucket that no pattern admits, since the
    ///   server's credentials may read more than clients are to see.
    func source(named text: String) throws(Problem) -> BaseURLs.Resolved {
        let source = try settings.baseURLs.resolved(text)
        guard source.text != text || !text.lowercased().hasPrefix("s3:") || pipeline.admitsListedSourcesOnly else {
            throw Problem(.sourceRefused, "buckets are served once `sources.allow` names them, or as a base URL")
        }
        // Nor does a list of hosts that clients may name admit the program's own originals.
        guard source.folder != nil || !pipeline.admitsListedSourcesOnly || pipeline.ownName(source.text) == nil else {
            throw Problem(
                .sourceRefused, "where `sources.allow` is set, the application's own paths alone show its originals")
        }
        return source
    }

    private func passesOn(_ request: ServerRequest, _ route: Route) -> Bool {
        guard case .original(let signature, _) = route, settings.openRoutes.contains(.original) else { return false }
        return settings.methods.contains(request.method, signature: signature)
    }

    private func original(
        _ text: String, _ request: ServerRequest, _ grant: Signature.Grant,
        _ onInterim: @escaping @Sendable (ServerResponse) -> Void
    ) async throws(Problem) -> ServerResponse {
        let source = try source(named: text)
        let forwarded = settings.forwarded
        let changes = !Route.methods.contains(request.method)
        let isObject = source.text.utf8.prefix(5).elementsEqual("s3://".utf8)
        var asked = OriginalRequest(
            url: source.text, fields: forwarded.upstream(request.fields, isOriginal: true, changes: changes))
        asked.folder = source.folder
        if request.method == "OPTIONS", let hops = request.combined("max-forwards").flatMap({ Int($0) }), hops >= 0 {
            // With Max-Forwards 0 this server is the final recipient and answers itself (RFC 9110 §7.6.2).
            if hops == 0 {
                let allowed = settings.methods.allowed(signature: Signature.unsigned).joined(separator: ", ")
                return ServerResponse(
                    status: 204,
                    fields: [
                        HeaderField("Allow", allowed), HeaderField("Date", HTTPDate.text(unixSeconds: Int(now()))),
                    ])
            }
            asked.fields.append(HeaderField("Max-Forwards", String(hops - 1)))
        }
        if !forwarded.areAll { asked.fields += LoopGuard.passedOn(request.fields) }
        if changes {
            asked.method = request.method
            asked.body = request.body
        }
        asked.honoursDirectives = forwarded.contains("cache-control") || forwarded.contains("pragma")
        asked.policy = policy(request)
        // What the origin says is what is to be seen, redirects and answers to the client's own conditions included.
        asked.followsRedirects = false
        asked.forwardsConditionals = true
        asked.acceptsFile = true
        asked.onInterim = InterimObserver { status, fields in
            // A length would be taken for that of a body, and an interim response has none (RFC 9110 §8.6).
            let kept = OriginalAnswer.passed(fields, status: status, passesAll: forwarded.areAll, isObject: isObject)
                .filter { $0.name.lowercased() != "content-length" }
            onInterim(ServerResponse(status: status, fields: kept))
        }
        var original: OriginalResponse
        asked.gate = settings.rate?.gate(request.client, now)
        do throws(PipelineError) { original = try await pipeline.original(for: asked) } catch { throw Problem(error) }
        // A file has no time to live: each request looks whether it has changed.
        if source.folder != nil { original.handling.timeToLive = nil }
        if isObject { original = try Self.withoutErrorText(original, of: source.text) }
        let answer = OriginalAnswer.response(
            original, passesAll: forwarded.areAll, isObject: isObject, tags: settings.tags)
        if !changes { prepare(original, request, grant, isObject: isObject) }
        if changes { return answer }
        // Comparing a 200 with what the client has, or cutting it, sends the origin nothing. Other answers stay as the origin
        // gave them.
        let isOrigin = asked.folder != nil
        let fields =
            original.status == 200
            ? request.fields.filter { forwarded.contains($0.name) || Self.compares($0, asOrigin: isOrigin) }
            : forwarded.visible(request.fields)
        return ConditionalAnswer.response(answer, to: fields, isHead: request.isHead, isOrigin: isOrigin, now: now())
    }

    /// An object's response, without a document of the store: it may name accounts, keys and requests.
    ///
    /// - Throws: `Problem` for an error.
    private static func withoutErrorText(
        _ original: OriginalResponse, of object: String
    ) throws(Problem) -> OriginalResponse {
        let status = original.status
        guard status >= 300, status != 304 else { return original }
        guard [412, 416].contains(status) else {
            throw Problem(
                PipelineError(
                    [404, 410].contains(status) ? .notFound : .fetchFailed,
                    "\(SourceURL.redacting(object)): the store answered \(status)"))
        }
        var bare = original
        (bare.body, bare.file) = ([], nil)
        return bare
    }

    /// Whether a field compares the answer with what the client has, or asks for a part of it.
    ///
    /// - Parameter isOrigin: whether this server has the original itself, and no origin compares it.
    private static func compares(_ field: HeaderField, asOrigin isOrigin: Bool) -> Bool {
        let names =
            ["if-none-match", "if-modified-since", "range", "if-range"]
            + (isOrigin ? ["if-match", "if-unmodified-since"] : [])
        return names.contains { FieldLines.isSameName($0, field.name) }
    }

    private func variant(
        _ text: String, _ source: String, _ request: ServerRequest, _ grant: Signature.Grant
    ) async throws(Problem) -> ServerResponse {
        let recipe: Recipe
        do throws(RecipeError) {
            recipe = try Recipe(text, presets: settings.presets)
        } catch {
            throw Problem(.invalidRecipe, error.description)
        }
        let isNegotiated = recipe.output == nil || recipe.output?.kind == .auto
        var standIn = ImageRequest(.bytes([], name: ""), recipe: recipe)
        if isNegotiated {
            standIn.negotiated = Negotiation.formats(accept: request.combined("accept"), among: settings.formats)
        }
        do throws(Problem) {
            let recipe = try settings.recipes.admitted(recipe, text: text)
            standIn.recipe = recipe
            let url = try self.source(named: source)
            var asked = imageRequest(url, recipe, for: request)
            asked.negotiated = standIn.negotiated
            let told = settings.freshness.control(preset: settings.recipes.preset(in: text))
            return try await answer(
                asked, to: request, isNegotiated: isNegotiated, told: told, expiry: grant.expiry
            ) { image, varying in
                let naming =
                    SourceFields.fields(of: url, image.format, isGiven: url.text == source)
                    + settings.tags.fields(of: image.record)
                // A named mask is read for each request: it may have changed.
                if recipe.maskNames.isEmpty, recipe.overlayNames.isEmpty {
                    prepare(image, varying, naming, told, request, grant)
                }
                return naming
            }
        } catch {
            return await fallback(for: error, standIn, variesByAccept: isNegotiated)
                ?? answer(to: error, request, variesByAccept: isNegotiated)
        }
    }

    /// The fallback picture, rendered as the picture would have been; nil if it does not stand for this problem.
    ///
    /// - Parameter asked: its recipe and its negotiated formats count.
    func fallback(for problem: Problem, _ asked: ImageRequest, variesByAccept: Bool) async -> ServerResponse? {
        guard let fallback = settings.fallback, FallbackPicture.stands(for: problem) else { return nil }
        let image = try? await pipeline.respond(to: fallback.request(like: asked))
        return fallback.response(to: problem, image, variesByAccept: variesByAccept, now: now())
    }

    /// Answers with the picture that the pipeline makes.
    ///
    /// - Parameters:
    ///   - told: a `Cache-Control` in place of the one that follows from the original.
    ///   - naming: the fields that name the source; is passed the picture, and what it varies by.
    func answer(
        _ asked: ImageRequest, to request: ServerRequest, isNegotiated: Bool, told: String?, isOwnRoute: Bool = false,
        expiry: Double? = nil,
        naming: (ImageResponse, _ varying: [String]) -> [HeaderField]
    ) async throws(Problem) -> ServerResponse {
        let image: ImageResponse
        do throws(PipelineError) { image = try await pipeline.respond(to: asked) } catch { throw Problem(error) }
        let varying = VariantAnswer.varying(
            original: image.record.response.fields, forwarded: settings.forwarded, isNegotiated: isNegotiated)
        let answer = VariantAnswer.response(
            image, varying: varying, naming: naming(image, varying), caching: caching, told: told,
            isAtHand: asked.isAtHand, isOwnRoute: isOwnRoute, expiry: expiry, now: now())
        return ConditionalAnswer.response(
            answer, to: request.fields, isHead: request.isHead, isOrigin: true, now: now())
    }

    /// The answer to a problem, of which operators are told all.
    func answer(to problem: Problem, _ request: ServerRequest, variesByAccept: Bool) -> ServerResponse {
        if problem.kind == .sourceRefused || problem.kind == .notFound {
            refusals.report(problem, of: request, settings.baseURLs, pipeline.warn)
        }
        if problem.kind == .originFailed {
            for notice in settings.baseURLs.folders.compactMap({ $0.takeNotice() }) { pipeline.warn(notice) }
        }
        return problem.response(variesByAccept: variesByAccept, showsAll: isOperator(request), now: now())
    }

    /// Returns the request to the pipeline on behalf of a client. The page's samples are sources if the page is shown.
    func imageRequest(
        _ source: BaseURLs.Resolved, _ recipe: Recipe? = nil, for request: ServerRequest
    ) -> ImageRequest {
        var asked = ImageRequest(.url(source.text), recipe: recipe)
        asked.folder = source.folder
        if settings.playground, let sample = PageSample(source: source.text) { asked.source = sample.imageSource }
        return completed(asked, for: request)
    }

    /// The same request within the client's rate, with the fields and the policy that it leaves to the client.
    func completed(_ image: ImageRequest, for request: ServerRequest) -> ImageRequest {
        var asked = image
        asked.gate = settings.rate?.gate(request.client, now)
        var fields = settings.forwarded.upstream(request.fields, isOriginal: false)
        if !settings.forwarded.areAll { fields += LoopGuard.passedOn(request.fields) }
        asked.fields += fields.filter { image.fields.first($0.name.lowercased()) == nil }
        asked.policy = image.policy ?? policy(request)
        return asked
    }

    private func prepare(
        _ image: ImageResponse, _ varying: [String], _ naming: [HeaderField], _ told: String?,
        _ request: ServerRequest, _ grant: Signature.Grant
    ) {
        guard let query = HitQuery(method: request.method, fields: request.fields, settings),
            let fresh = fresh(image.record.response, until: grant.expiry),
            let answer = pipeline.memoryAnswer(for: image)
        else { return }
        let (hit, caching, expiry) = (image.asMemoryHit, caching, grant.expiry)
        let (crossOrigin, added) = (settings.crossOrigin, settings.fields)
        prepared.keep(
            PreparedAnswers.Entry(answer, fresh: fresh, length: image.bytes.count) { now, tier in
                var hit = hit
                hit.outcome = Outcome(tier)
                let answer = VariantAnswer.response(
                    hit, varying: varying, naming: naming, caching: caching, told: told, expiry: expiry,
                    now: now)
                return added.applied(to: crossOrigin.applied(to: answer, origin: query.origin))
            }, for: key(request.target, query))
    }

    private func prepare(
        _ original: OriginalResponse, _ request: ServerRequest, _ grant: Signature.Grant, isObject: Bool
    ) {
        guard original.status == 200, let record = original.record, original.file == nil,
            let query = HitQuery(method: request.method, fields: request.fields, settings),
            let fresh = fresh(record.response, until: grant.expiry), let answer = pipeline.memoryAnswer(for: original)
        else { return }
        let (caching, crossOrigin, passesAll) = (caching, settings.crossOrigin, settings.forwarded.areAll)
        let (added, tags) = (settings.fields, settings.tags)
        prepared.keep(
            PreparedAnswers.Entry(answer, fresh: fresh, length: original.body.count) {
                now, tier in
                let answer = OriginalAnswer.response(
                    OriginalResponse(hit: record, in: tier, now: now, caching: caching), passesAll: passesAll,
                    isObject: isObject, tags: tags)
                return added.applied(to: crossOrigin.applied(to: answer, origin: query.origin))
            }, for: key(request.target, query))
    }

    /// From now until the stored response must be validated or the signature expires; nil if that is now.
    private func fresh(_ stored: StoredResponse, until expiry: Double?) -> Range<Double>? {
        let now = now()
        guard stored.responseTime <= now + LookUpStage.clockTolerance,
            Reuse.decision(stored: stored, now: now, policy: .protocol, configuration: caching) == .fresh
        else { return nil }
        let end = min(
            now + Freshness.remaining(of: stored, now: now, configuration: caching), expiry ?? .infinity)
        return now < end ? now..<end : nil
    }

    /// The site's policy, unless a client's `no-cache` is to be honoured and given (RFC 9111 §5.2.1.4 and §5.4).
    func policy(_ request: ServerRequest) -> CachePolicy {
        guard settings.honoursClientNoCache else { return settings.policy }
        let control = CacheControl(fields: request.fields)
        let asks =
            control.directives.isEmpty
            ? request.combined("pragma")?.lowercased().contains("no-cache") == true : control.has("no-cache")
        return asks ? .revalidate : settings.policy
    }
}

extension ImageRequest {
    /// Whether the original is a file of this machine, or bytes that came with the request.
    var isAtHand: Bool { if case .url = source { folder != nil } else { true } }
}
