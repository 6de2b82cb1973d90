/// Whether a response may be stored (RFC 9111 §3).
package enum Storability {
    package enum Refusal: String, Sendable, Hashable {
        /// Not a complete, final response of a status we know how to store: 1xx, 206, 304, beyond 999; with
        /// `must-understand` also every status whose caching rules this cache does not know (RFC 9111 §5.2.2.3).
        case status
        /// `no-store` in the response or the request.
        case noStore = "no-store"
        /// `private` without field names, in a shared cache.
        case `private`
        /// The request carried `Authorization`, and nothing in the response permits a shared cache to store it (§3.5).
        case authorization
        /// `Vary: *`, which no later request matches (§4.1).
        case varies = "vary-*"
        /// 412 or 416, which answers the conditions or range of this request only.
        case conditional
        /// Neither freshness information nor a status that allows a heuristic lifetime.
        case noLifetime = "no-lifetime"
    }

    /// Statuses whose meaning for caching is implemented, for `must-understand` (§5.2.2.3): those of RFC 9110 except
    /// 206, 304 and those that answer conditions and ranges.
    private static let understood: Set<Int> = [
        200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408,
        409,
        410, 411, 413, 414, 415, 417, 421, 422, 426, 500, 501, 502, 503, 504, 505,
    ]

    /// Why the response to a GET may not be stored; nil if it may be.
    ///
    /// Every final status may be stored if it has freshness information, even 299 or 999; those of RFC 9110 §15.1 also
    /// without. `Set-Cookie` and `Cookie` do not matter. For what is stored see `storedFields`. RFC 9111 §3 and §3.5.
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
            // must-understand overrides no-store, which is there for caches that do not know must-understand.
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

    /// The fields of a response that are stored: without hop-by-hop fields (RFC 9111 §3.1) and, in a shared cache,
    /// without those that `private` names (§5.2.2.7).
    package static func storedFields(
        of fields: [HeaderField], configuration: CachingConfiguration = CachingConfiguration()
    ) -> [HeaderField] {
        let kept = fields.endToEnd()
        guard !configuration.isPrivate else { return kept }
        let dropped = GoverningDirectives(fields: fields, configuration: configuration).control.privateFields
        return dropped.isEmpty ? kept : kept.dropping(Array(dropped))
    }
}
