import HTTPCaching
import Pipeline
import PipelineSupport

/// Builds the responses of `/variant`.
enum VariantAnswer {
    /// Returns a 200 response with the header fields that a client needs to store and revalidate it.
    ///
    /// - Parameters:
    ///   - image: The pipeline's result.
    ///   - varying: The request fields that the response depends on, for `Vary`.
    ///   - naming: Fields that name the source, including tags.
    ///   - cacheControl: A `Cache-Control` that replaces the value derived from the original.
    ///   - isAtHand: Whether the original is bytes or a file on this machine. Such originals have no time to live.
    ///   - isOwnRoute: Whether the path belongs to the application. If the pipeline's caches may not store such a
    ///     response, it is `private`, because the fields of the client's request may not show that it is personal.
    ///   - firstPassMaxAge: The maximum `max-age` of a picture that a second pass may replace, or nil for no maximum.
    ///   - expiry: When the URL expires, in Unix seconds. Downstream caches must not keep the response longer.
    ///   - now: The current time, in Unix seconds.
    static func response(
        _ image: ImageResponse, varying: [String], naming: [HeaderField] = [], caching: CachingConfiguration,
        cacheControl: String? = nil, isAtHand: Bool = false, isOwnRoute: Bool = false,
        firstPassMaxAge: Duration? = nil, expiry: Double? = nil, now: Double
    ) -> ServerResponse {
        var cached = Self.handling(of: image, caching: caching, now: now)
        if isAtHand { cached.timeToLive = nil }
        let handling = cached.fieldValue()
        var fields = [
            HeaderField("Content-Type", image.mediaType),
            // The digest of the body, so different results never share a validator.
            HeaderField("ETag", "\"\(image.digest)\""),
        ]
        // A second version may follow within the same second, so the date would not distinguish them (RFC 9110 §8.8.2.2).
        if let created = image.created, image.pass != 1 {
            fields.append(HeaderField("Last-Modified", HTTPDate.text(unixSeconds: Int(min(created, now)))))
        }
        var control =
            image.isDamaged
            ? "no-store"
            : DerivedFreshness.cacheControl(
                of: image.record.response, isStale: image.isStale, now: now, configuration: caching)
        // Responses that shared caches may not store have no tags, whether the origin or the application forbids
        // storing.
        let isClosed = control.hasPrefix("no-store") || control.hasPrefix("private")
        if let cacheControl,
            forbidsSharing(cacheControl) ? !control.hasPrefix("no-store") : image.isStorable && !isClosed
        {
            control = cacheControl
        }
        if isOwnRoute, !image.isStorable, !forbidsSharing(control) { control = "private, " + control }
        if image.pass == 1, let firstPassMaxAge { control = replaceable(control, within: firstPassMaxAge) }
        fields += [
            HeaderField("Cache-Control", expiry.map { limited(control, to: $0 - now) } ?? control),
            HeaderField("Accept-Ranges", "bytes"),
        ]
        if !varying.isEmpty { fields.append(HeaderField("Vary", varying.joined(separator: ", "))) }
        fields += naming
        fields.append(HeaderField("Cache-Status", handling))
        let timing = timing(image.timings)
        if !timing.isEmpty { fields.append(HeaderField("Server-Timing", timing)) }
        fields += [
            HeaderField("X-Content-Type-Options", "nosniff"),
            // A file that is also valid HTML must not act as a document when it is opened directly.
            image.format == .svg ? OriginalAnswer.vectorSandbox : OriginalAnswer.sandbox, .date(now),
        ]
        var answer = ServerResponse(status: 200, fields: fields, body: image.bytes, note: handling)
        answer.picture = AnswerPicture(image)
        return answer
    }

    static func forbidsSharing(_ control: String) -> Bool {
        let control = CacheControl(fields: [HeaderField("Cache-Control", control)])
        return control.has("private") || control.has("no-store")
    }

    /// Returns a `Cache-Control` that makes caches ask again within a time.
    private static func replaceable(_ control: String, within time: Duration) -> String {
        let most = Int(max(0, min(time.inSeconds, 2_147_483_648)))
        return control.split(separator: ",").map { $0.trimmingSpace() }.filter { $0 != "immutable" }.map { directive in
            let pair = directive.split(separator: "=")
            guard pair.count == 2, pair[0] == "max-age" || pair[0] == "s-maxage", let age = Int(pair[1]) else {
                return directive
            }
            return "\(pair[0])=\(min(age, most))"
        }.joined(separator: ", ")
    }

    /// Returns a `Cache-Control` that allows no use of the response after `seconds`, fresh or stale.
    static func limited(_ control: String, to seconds: Double) -> String {
        let most = Int(max(0, min(seconds, 2_147_483_648)).rounded(.down))
        return control.split(separator: ",").map { $0.trimmingSpace() }.compactMap { directive in
            let pair = directive.split(separator: "=")
            guard pair.count == 2, let value = Int(pair[1]) else { return directive }
            // The stale period starts when freshness ends, which may be when the URL expires.
            return pair[0].hasPrefix("stale-") ? nil : "\(pair[0])=\(min(value, most))"
        }.joined(separator: ", ")
    }

    /// Returns the request fields that the response depends on: the fields in the original's `Vary` that are forwarded,
    /// and `Accept` for an `auto` output.
    static func varying(
        original: [HeaderField], forwarded: ForwardedFields, isNegotiated: Bool
    ) -> [String] {
        var names: [String] = isNegotiated ? ["Accept"] : []
        // A stored response varies on at most 100 fields. For other responses, the first 100 are sufficient.
        for field in original.filter({ $0.name.lowercased() == "vary" }).prefix(100) {
            for name in field.value.split(separator: ",").prefix(100).map({ $0.trimmingSpace() }) {
                if names.count > 100 { return ["*"] }
                let isKnown = names.contains { $0.lowercased() == name.lowercased() }
                if !isKnown, !name.isEmpty, name == "*" || forwarded.contains(name) { names.append(name) }
            }
        }
        return names
    }

    /// Returns how the caches handled the request (RFC 9211). A hit is a response without a request to the origin, even
    /// if the picture was rendered again.
    static func handling(of image: ImageResponse, caching: CachingConfiguration, now: Double) -> CacheHandling {
        let isNew = image.originalOutcome == .network || image.originalOutcome == .revalidated
        var handling = CacheHandling(
            isHit: image.forward == nil, forward: image.forward, forwardStatus: image.forwardStatus,
            isStored: isNew && image.isStorable, isCollapsed: image.isCollapsed)
        if image.isStorable {
            let remaining = Freshness.remaining(of: image.record.response, now: now, configuration: caching)
            handling.timeToLive = .seconds(
                Int(max(-2_147_483_648, min(remaining, 2_147_483_648)).rounded(.down)))
        }
        if image.isDamaged {
            handling.detail = "damaged"
        } else {
            let pass = image.pass.map { $0 == 1 ? "first-pass" : "second-pass" }
            let parts = [handling.isHit ? image.outcome.rawValue : nil, pass].compactMap(\.self)
            handling.detail = parts.isEmpty ? nil : parts.joined(separator: "/")
        }
        return handling
    }

    /// Returns the stages that took time, in milliseconds (W3C Server Timing).
    private static func timing(_ timings: Timings) -> String {
        let parts = [
            ("queue", "waiting for a renderer", timings.queue), ("fetch", "waiting for the origin", timings.fetch),
            ("open", "opening the original", timings.decode),
            ("operations", "decoding and applying the steps", timings.operations),
            ("encode", "encoding", timings.encode), ("store", "storing", timings.store),
        ]
        return parts.filter { $0.2 > .zero }
            .map { "\($0.0);desc=\"\($0.1)\";dur=\(JSONText.thousandths($0.2.milliseconds))" }.joined(separator: ", ")
    }
}
