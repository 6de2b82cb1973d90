/// A client's directives for caches: `Cache-Control` in a request, or `Pragma` if that is absent (RFC 9111 §5.2.1 and
/// §5.4).
///
/// All directives are advisory. A directive with a malformed value is ignored. If there are several valid values, the
/// strictest applies.
package struct RequestDirectives: Sendable, Hashable {
    /// How stale a response may be for the client to accept it.
    package enum MaxStale: Sendable, Hashable {
        /// `max-stale` without a value, which means that any staleness is acceptable.
        case any
        /// `max-stale` with a value: the maximum number of seconds past the freshness lifetime.
        case seconds(Int)
    }

    /// `no-cache`: do not use a stored response without validation.
    package var noCache = false
    /// `no-store`: neither this request nor its response may be stored. Stored responses may still be used.
    package var noStore = false
    /// `only-if-cached`: do not contact the origin, and answer with 504 if no stored response can be used.
    package var onlyIfCached = false
    /// `max-age`: the maximum age in seconds that the client accepts.
    package var maxAge: Int?
    /// `min-fresh`: how long the response must still be fresh, in seconds.
    package var minFresh: Int?
    /// `max-stale`: how stale a response may be, or nil if stale responses are not acceptable.
    package var maxStale: MaxStale?
    /// `stale-if-error`: how long after its lifetime a response may replace an error, in seconds (RFC 5861 §4).
    package var staleIfError: Int?

    package init() {}

    /// Reads the directives from the fields of a request. `Pragma: no-cache` is used only if `Cache-Control` is absent.
    package init(fields: [HeaderField]) {
        guard fields.first("cache-control") != nil else {
            noCache = fields.values(of: "pragma").contains { line in
                FieldLines.members(of: line).contains { FieldLines.lowercased($0) == "no-cache" }
            }
            return
        }
        let control = CacheControl(fields: fields)
        noCache = control.has("no-cache")
        noStore = control.has("no-store")
        onlyIfCached = control.has("only-if-cached")
        maxAge = control.validSeconds("max-age").min()
        minFresh = control.validSeconds("min-fresh").max()
        staleIfError = control.validSeconds("stale-if-error").min()
        if let least = control.validSeconds("max-stale").min() {
            maxStale = .seconds(least)
        } else if control.directives.contains(where: { $0.name == "max-stale" && $0.argument == nil }) {
            maxStale = .any
        }
    }

    /// Whether the client accepts a response this many seconds after its freshness lifetime.
    func permitsStale(by seconds: Double) -> Bool {
        switch maxStale {
        case nil: false
        case .any: true
        case .seconds(let most): seconds <= Double(most)
        }
    }
}
