/// Whether a response may be stored (RFC 9111 §3).
public enum Storability {
    /// Why a response may not be stored.
    public enum Refusal: String, Sendable, Hashable {
        /// Not a complete, final response of a status we know how to store: 1xx, 206, 304, 600 and above.
        case status
        /// `no-store` in the response or the request.
        case noStore = "no-store"
        /// `private` in a shared cache; with field names too, which §5.2.2.7 permits.
        case `private`
        /// The request carried `Authorization`, and nothing in the response permits a shared cache to store it (§3.5).
        case authorization
        /// `Vary: *`, which no later request matches (§4.1).
        case varies = "vary-*"
        /// Neither freshness information nor a status with a lifetime by heuristic.
        case noLifetime = "no-lifetime"
    }

    /// Statuses whose meaning for caching is implemented, for `must-understand` (§5.2.2.3).
    private static let understood: Set<Int> = Freshness.heuristicStatuses.union([
        302, 303, 307, 400, 401, 403, 500, 502, 503, 504,
    ])

    /// Whether the response may be stored and reused for later requests.
    public static func mayStore(
        response: StoredResponse, requestFields: [HeaderField],
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> Bool {
        refusal(response: response, requestFields: requestFields, configuration: configuration) == nil
    }

    /// What forbids storing the response; nil when it may be stored. Source: RFC 9111 §3 and §3.5.
    public static func refusal(
        response: StoredResponse, requestFields: [HeaderField],
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> Refusal? {
        guard (200..<600).contains(response.status), response.status != 206, response.status != 304 else {
            return .status
        }
        let control = CacheControl(fields: response.fields)
        let isShared = !configuration.isPrivate
        if control.has("must-understand") {
            // must-understand puts no-store aside, which is there for caches that do not know it.
            guard understood.contains(response.status) else { return .status }
        } else if control.has("no-store") {
            return .noStore
        }
        if CacheControl(fields: requestFields).has("no-store") { return .noStore }
        if isShared, control.has("private") { return .private }
        if isShared, requestFields.first("authorization") != nil,
            !control.has("public"), !control.has("must-revalidate"), control.seconds("s-maxage") == .absent
        {
            return .authorization
        }
        if Variation.names(in: response.fields) == nil { return .varies }
        let hasLifetime =
            control.has("public") || control.has("max-age") || response.fields.first("expires") != nil
            || (isShared && control.has("s-maxage")) || (!isShared && control.has("private"))
            || Freshness.heuristicStatuses.contains(response.status)
        return hasLifetime ? nil : .noLifetime
    }
}
