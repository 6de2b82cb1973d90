package import HTTPCaching
import Pipeline
import PipelineCaching
import Variants

/// Responses from memory that skip the stages of the pipeline.
extension Site {
    /// Returns a fresh response from memory without suspending, for use on event loops. Returns nil if the caller must
    /// call `respond(to:onInterim:)`.
    ///
    /// - Parameters:
    ///   - method: The method as sent.
    ///   - target: Path and query as sent, relative to the mount point.
    ///   - fields: All of the request's header fields, including `Host`.
    ///   - client: The client's address. A server without keys checks it.
    ///   - isSecure: Whether the client used https, according to a trusted proxy.
    /// - Returns: A response for an HTTP/1.1 connection that stays open.
    package func hit(
        method: String, target: String, fields: [HeaderField], client: @autoclosure () -> String? = nil,
        isSecure: @autoclosure () -> Bool = false
    ) -> PreparedAnswer? {
        guard !settings.signature.servesThisMachine || admitsHit(fields, client()),
            let query = HitQuery(method: method, fields: fields, self)
        else { return nil }
        let key = key(target, query, isSecure: isSecure())
        guard let entry = prepared.entry(for: key) else { return nil }
        let now = now()
        guard entry.fresh.contains(now) else {
            prepared.remove(key)
            return nil
        }
        return pipeline.body(of: entry.answer).flatMap { entry.prepared($0, for: query, now: now) }
    }

    /// Returns a prepared response with its body. The body is read from memory if the caller did not call `hit`, and
    /// from a slower tier otherwise.
    func storedHit(_ request: ServerRequest) async -> ServerResponse? {
        let now = now()
        guard let query = HitQuery(method: request.method, fields: request.fields, self),
            let entry = prepared.entry(for: key(request.target, query, isSecure: request.isSecure)),
            entry.fresh.contains(now)
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

    /// Returns the key of a request. Recipes that leave the format open depend on the formats in `Accept`, and on no
    /// other part of that field.
    private func key(
        _ target: String, _ query: HitQuery, isSecure: @autoclosure () -> Bool
    ) -> PreparedAnswers.Key {
        let grammar = settings.route(of: RequestTarget(target))?.grammar
        var key = PreparedAnswers.Key(target: target, formats: [], origin: crossOrigin(grammar).selected(query.origin))
        if grammar?.dependsOnHost == true { key.base = base(host: query.host, isSecure: isSecure()) }
        if query.accept != nil, let grammar, grammar.negotiates {
            let formats = grammar.formats ?? settings.formats
            key.formats = Negotiation.formats(accept: query.accept, among: formats).map {
                UInt8(formats.firstIndex(of: $0) ?? 0)
            }
        }
        return key
    }

    func prepare(
        _ image: ImageResponse, _ varying: [String], _ naming: [HeaderField], _ cacheControl: String?,
        _ request: ServerRequest, _ routed: RoutedRequest
    ) {
        let (hit, caching, expiry, present) = (image.asMemoryHit, caching, routed.grant.expiry, routed.present)
        let firstPassMaxAge = pipeline.maxAgeOfFirstPass
        prepare(pipeline.memoryAnswer(for: image), length: image.bytes.count, request, routed) { now, tier in
            var hit = hit
            hit.outcome = ImageResponse.Outcome(tier)
            var response = VariantAnswer.response(
                hit, varying: varying, naming: naming, caching: caching, cacheControl: cacheControl,
                firstPassMaxAge: firstPassMaxAge, expiry: expiry, now: now)
            present(&response, PresentedPicture(hit, now: now))
            return response
        }
    }

    func prepare(
        _ original: OriginalResponse, _ request: ServerRequest, _ routed: RoutedRequest, isObject: Bool
    ) {
        guard original.status == 200, let record = original.record, original.file == nil else { return }
        let (caching, passesAll, tags) = (caching, rules.forwarded.areAll, settings.tags)
        prepare(pipeline.memoryAnswer(for: original), length: original.body.count, request, routed) { now, tier in
            OriginalAnswer.response(
                OriginalResponse(hit: record, in: tier, now: now, caching: caching), passesAll: passesAll,
                isObject: isObject, tags: tags)
        }
    }

    /// Prepares the response for the next request with the same key.
    private func prepare(
        _ answer: MemoryAnswer?, length: Int, _ request: ServerRequest, _ routed: RoutedRequest,
        response: @escaping @Sendable (_ now: Double, _ tier: TierName) -> ServerResponse
    ) {
        guard let answer, let query = HitQuery(method: request.method, fields: request.fields, self),
            let fresh = fresh(answer.record.response, routed),
            let route = settings.route(of: RequestTarget(request.target))
        else { return }
        let (crossOrigin, added, closing) = (crossOrigin(route.grammar), rules.fields, closing)
        prepared.keep(
            PreparedAnswers.Entry(answer, route: route, fresh: fresh, length: length) { now, tier in
                closing.applied(
                    to: added.applied(to: crossOrigin.applied(to: response(now, tier), origin: query.origin)))
            }, for: key(request.target, query, isSecure: request.isSecure))
    }

    /// Returns the time from now until the stored response must be validated or the signature expires. Returns nil if
    /// either has already happened.
    private func fresh(_ stored: StoredResponse, _ routed: RoutedRequest) -> Range<Double>? {
        let now = now()
        guard stored.responseTime <= now + LookUpStage.clockTolerance else { return nil }
        var asked = ImageRequest(.bytes([], name: ""))
        asked.minFreshness = routed.freshness?.least
        guard
            asked.minFreshness != nil && asked.mayAssumeFreshness(of: stored)
                || Reuse.decision(stored: stored, now: now, policy: .protocol, configuration: caching) == .fresh
        else { return nil }
        let end = min(now + asked.freshness(of: stored, now: now, caching), routed.grant.expiry ?? .infinity)
        return now < end ? now..<end : nil
    }
}
