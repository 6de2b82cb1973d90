import HTTPCaching
import Pipeline
import PipelineSupport

/// `/variant`: the fields of a rendered picture.
enum VariantAnswer {
    /// A 200 with everything a client needs to keep it and to ask again cheaply.
    ///
    /// - Parameters:
    ///   - image: what the pipeline gave.
    ///   - varying: request fields that this answer depended on, as `Vary` names them.
    ///   - naming: fields that name the source, tags included.
    ///   - told: a `Cache-Control` in place of the one that follows from the original.
    ///   - isAtHand: whether the original is a file or bytes of this machine, which have no time to live.
    ///   - isOwnRoute: whether the path is the program's: what its caches may not store is the client's alone, since no field
    ///     of the client's request need say so.
    ///   - expiry: Unix seconds from which the URL is refused, so that no cache in front keeps the answer for longer.
    ///   - now: Unix seconds.
    static func response(
        _ image: ImageResponse, varying: [String], naming: [HeaderField] = [], caching: CachingConfiguration,
        told: String? = nil, isAtHand: Bool = false, isOwnRoute: Bool = false, expiry: Double? = nil, now: Double
    ) -> ServerResponse {
        var cached = Self.handling(of: image, caching: caching, now: now)
        if isAtHand { cached.timeToLive = nil }
        let handling = cached.fieldValue()
        var fields = [
            HeaderField("Content-Type", image.mediaType),
            // The digest of the body, so two results never share a validator.
            HeaderField("ETag", "\"\(image.digest)\""),
        ]
        if let created = image.created {
            fields.append(HeaderField("Last-Modified", HTTPDate.text(unixSeconds: Int(min(created, now)))))
        }
        var control =
            image.isDamaged
            ? "no-store"
            : DerivedFreshness.cacheControl(
                of: image.record.response, isStale: image.isStale, now: now, configuration: caching)
        // What shared caches may not store is not offered to them, whether the origin says so or the program.
        let isClosed = control.hasPrefix("no-store") || control.hasPrefix("private")
        if let told, forbidsSharing(told) ? !control.hasPrefix("no-store") : image.isStorable && !isClosed {
            control = told
        }
        if isOwnRoute, !image.isStorable, !forbidsSharing(control) { control = "private, " + control }
        fields += [
            HeaderField("Cache-Control", expiry.map { cut(control, to: $0 - now) } ?? control),
            HeaderField("Accept-Ranges", "bytes"),
        ]
        if !varying.isEmpty { fields.append(HeaderField("Vary", varying.joined(separator: ", "))) }
        fields += naming
        fields.append(HeaderField("Cache-Status", handling))
        let timing = timing(image.timings)
        if !timing.isEmpty { fields.append(HeaderField("Server-Timing", timing)) }
        fields += [
            HeaderField("X-Content-Type-Options", "nosniff"),
            // A polyglot opened by itself is no document.
            OriginalAnswer.sandbox,
            HeaderField("Date", HTTPDate.text(unixSeconds: Int(now))),
        ]
        var answer = ServerResponse(status: 200, fields: fields, body: image.bytes, note: handling)
        answer.picture = AnswerPicture(image)
        return answer
    }

    private static func forbidsSharing(_ control: String) -> Bool {
        let control = CacheControl(fields: [HeaderField("Cache-Control", control)])
        return control.has("private") || control.has("no-store")
    }

    /// A `Cache-Control` whose answer is not used after so many seconds, stale or not.
    static func cut(_ control: String, to seconds: Double) -> String {
        let most = Int(max(0, min(seconds, 2_147_483_648)).rounded(.down))
        return control.split(separator: ",").map { $0.trimmingSpace() }.compactMap { directive in
            let pair = directive.split(separator: "=")
            guard pair.count == 2, let value = Int(pair[1]) else { return directive }
            // Staleness counts from the end of freshness, which may be the end of the URL.
            return pair[0].hasPrefix("stale-") ? nil : "\(pair[0])=\(min(value, most))"
        }.joined(separator: ", ")
    }

    /// Which request fields the answer depends on: those the original varied by, as far as they are forwarded, and
    /// `Accept` for an `auto` output.
    static func varying(
        original: [HeaderField], forwarded: ForwardedFields, isNegotiated: Bool
    ) -> [String] {
        var names: [String] = isNegotiated ? ["Accept"] : []
        // What was stored varies on a hundred fields at most; what was not, is not worth more looking.
        for field in original.filter({ $0.name.lowercased() == "vary" }).prefix(100) {
            for name in field.value.split(separator: ",").prefix(100).map({ $0.trimmingSpace() }) {
                if names.count > 100 { return ["*"] }
                let isKnown = names.contains { $0.lowercased() == name.lowercased() }
                if !isKnown, !name.isEmpty, name == "*" || forwarded.contains(name) { names.append(name) }
            }
        }
        return names
    }

    /// How the caches handled it (RFC 9211): a hit is an answer without a request to the origin, rendered again or not.
    static func handling(of image: ImageResponse, caching: CachingConfiguration, now: Double) -> CacheHandling {
        let isNew = image.originalOutcome == .network || image.originalOutcome == .revalidated
        var handling = CacheHandling(
            isHit: image.forward == nil, forward: image.forward, forwardStatus: image.forwardStatus,
            isStored: isNew && image.isStorable, isCollapsed: image.isCollapsed)
        if image.isStorable {
            let remaining = Freshness.remaining(of: image.record.response, now: now, configuration: caching)
            handling.timeToLive = Int(max(-2_147_483_648, min(remaining, 2_147_483_648)).rounded(.down))
        }
        if image.isDamaged {
            handling.detail = "damaged"
        } else if handling.isHit {
            handling.detail = image.outcome.rawValue
        }
        return handling
    }

    /// Milliseconds of the parts that took any (W3C Server Timing).
    private static func timing(_ timings: Timings) -> String {
        let parts = [
            ("queue", "waiting for a renderer", timings.queue), ("fetch", "asking the origin", timings.fetch),
            ("open", "reading the header", timings.decode),
            ("operations", "decoding, and the steps of the recipe", timings.operations),
            ("encode", "encoding", timings.encode), ("store", "storing", timings.store),
        ]
        return parts.filter { $0.2 > 0 }
            .map { "\($0.0);desc=\"\($0.1)\";dur=\(JSONText.thousandths($0.2))" }.joined(separator: ", ")
    }
}
