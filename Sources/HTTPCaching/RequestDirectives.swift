/// A client's directives for caches: `Cache-Control` in a request, else `Pragma` (RFC 9111 §5.2.1 and §5.4).
///
/// All of them are advice that a cache may follow. A directive with a malformed value is ignored; of several valid
/// values the strictest counts.
package struct RequestDirectives: Sendable, Hashable {
    /// How stale a response the client accepts.
    package enum MaxStale: Sendable, Hashable {
        /// Any staleness: `max-stale` without a value.
        case any
        /// At most this many seconds past its freshness lifetime.
        case seconds(Int)
    }

    /// `no-cache`: use no stored response without validating it.
    package var noCache = false
    /// `no-store`: store nothing of this request and its response. Stored responses may still be used.
    package var noStore = false
    /// `only-if-cached`: do not ask the origin; answer 504 if no stored response can be used.
    package var onlyIfCached = false
    /// `max-age`: the greatest age in seconds that the client accepts.
    package var maxAge: Int?
    /// `min-fresh`: seconds for which the response must still be fresh.
    package var minFresh: Int?
    /// `max-stale`: whether, and how far, stale responses are acceptable.
    package var maxStale: MaxStale?
    /// `stale-if-error`: seconds past its lifetime a response may stand in for an error (RFC 5861 §4).
    package var staleIfError: Int?

    package init() {}

    /// Reads the fields of a request. `Pragma: no-cache` counts only if there is no `Cache-Control` at all.
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

    /// Whether the client accepts a response this many seconds past its freshness lifetime.
    func permitsStale(by seconds: Double) -> Bool {
        switch maxStale {
        case nil: false
        case .any: true
        case .seconds(let most): seconds <= Double(most)
        }
    }
}
