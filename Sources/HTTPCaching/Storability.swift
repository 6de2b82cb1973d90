/// Decides whether a response may be stored (RFC 9111 §3).
package enum Storability {
    package enum Refusal: String, Sendable, Hashable {
        /// The response is incomplete or not final, or its status cannot be stored: 1xx, 206, 304, or above 999. With
        /// `must-understand`, this includes every status whose caching rules this cache does not implement (RFC 9111
        /// §5.2.2.3).
        case status
        /// The response or the request has `no-store`.
        case noStore = "no-store"
        /// The response has `private` without field names, and the cache is shared.
        case `private`
        /// The request has `Authorization`, and the response does not permit a shared cache to store it (§3.5).
        case authorization
        /// The response has `Vary: *`, which no later request matches (§4.1).
        case varies = "vary-*"
        /// The response is a 412 or 416, which answers only the conditions or the range of this request.
        case conditional
        /// The response has no freshness information, and its status does not permit a heuristic lifetime.
        case noLifetime = "no-lifetime"
    }

    /// The statuses with implemented caching rules, as `must-understand` requires (§5.2.2.3). They are the
    /// statuses of RFC 9110, except 206, 304 and those that answer conditional and range requests.
    private static let understood: Set<Int> = [
        200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408,
        409,
        410, 411, 413, 414, 415, 417, 421, 422, 426, 500, 501, 502, 503, 504, 505,
    ]

    /// Returns the reason why the response to a GET may not be stored, or nil if it may be stored.
    ///
    /// A response with any final status, even 299 or 999, may be stored if it has freshness information. A response
    /// with a status of RFC 9110 §15.1 may be stored without it. `Set-Cookie` and `Cookie` are ignored. `storedFields`
    /// decides which fields are stored. Sources: RFC 9111 §3 and §3.5.
    package static func refusal(
        response: StoredResponse, requestFields: [HeaderField],
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> Refusal? {
        let status = response.status
        guard (200...999).contains(status), status != 206, status != 304 else { return .status }
        let governing = GoverningDirectives(fields: response.fields, configuration: configuration)
        let control = governing.control
        let isShared = !configuration.isPrivate
        if control.has("must-understand") {
            // must-understand overrides no-store, which is meant for caches that do not implement must-understand.
            guard understood.contains(status) else { return .status }
        } else if control.has("no-store") {
            return .noStore
        }
        if RequestDirectives(fields: requestFields).noStore { return .noStore }
        if isShared, control.isPrivate { return .private }
        if isShared, requestFields.first("authorization") != nil,
            !control.has("public"), !control.has("must-revalidate"), control.seconds("s-maxage") == .absent
        {
            return .authorization
        }
        if Variation.names(in: response.fields) == nil { return .varies }
        if status == 412 || status == 416 { return .conditional }
        let hasLifetime =
            control.has("public") || control.has("max-age")
            || (!governing.isTargeted && response.fields.first("expires") != nil)
            || (isShared && control.has("s-maxage")) || (!isShared && control.has("private"))
            || Freshness.heuristicStatuses.contains(status) || response.assignedLifetime != nil
        return hasLifetime ? nil : .noLifetime
    }

    /// Returns the fields of a response that are stored. Excludes hop-by-hop fields (RFC 9111 §3.1) and, in a shared
    /// cache, the fields listed by `private` (§5.2.2.7).
    package static func storedFields(
        of fields: [HeaderField], configuration: CachingConfiguration = CachingConfiguration()
    ) -> [HeaderField] {
        let kept = fields.endToEnd()
        guard !configuration.isPrivate else { return kept }
        let dropped = GoverningDirectives(fields: fields, configuration: configuration).control.privateFields
        return dropped.isEmpty ? kept : kept.dropping(Array(dropped))
    }
}
