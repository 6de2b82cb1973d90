/// Determines which stored responses are invalidated by requests that may change state (RFC 9111 §4.4).
package enum Invalidation {
    /// A normalized URL and its origin.
    package struct Target: Sendable, Hashable {
        package let url: String
        /// The scheme, host and port. Two URLs have the same origin if these are equal.
        package let origin: String

        package init(url: String, origin: String) {
            self.url = url
            self.origin = origin
        }
    }

    /// Whether a method is safe, that is, read-only (RFC 9110 §9.2.1). Unknown methods count as unsafe. Methods are
    /// case-sensitive.
    package static func isSafe(_ method: String) -> Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }

    /// Returns the URLs for which stored responses must no longer be used after a request has been answered.
    ///
    /// The result is empty after a safe method or an error (4xx, 5xx), because the resource is not known to have
    /// changed. Otherwise it contains the URL of the request, and the URLs in `Location` and `Content-Location` that
    /// have the same origin. A response must not invalidate responses from a different origin.
    ///
    /// - Parameters:
    ///   - fields: all field lines of the response.
    ///   - resolving: a closure that resolves a reference relative to `target`, or returns nil if the reference is
    ///     invalid.
    package static func targets(
        after method: String, to target: Target, status: Int, fields: [HeaderField],
        resolving: (_ reference: String) -> Target?
    ) -> [Target] {
        guard !isSafe(method), (200..<400).contains(status) else { return [] }
        let named = ["location", "content-location"].flatMap { fields.values(of: $0) }.compactMap(resolving)
        return [target] + named.filter { $0.origin == target.origin && $0 != target }
    }

    /// Whether the response to a POST may also answer later GET requests (RFC 9110 §9.3.3). It must be a 200 that
    /// declares its freshness and has its own URL in `Content-Location`. Such a response is stored if the response to a
    /// GET would be stored.
    package static func answersLaterRequests(
        _ response: StoredResponse, to method: String, at target: Target,
        configuration: CachingConfiguration = CachingConfiguration(), resolving: (_ reference: String) -> Target?
    ) -> Bool {
        guard method == "POST", response.status == 200 else { return false }
        let locations = response.fields.values(of: "content-location")
        guard locations.count == 1, locations.compactMap(resolving) == [target] else { return false }
        let basis = Freshness.lifetime(of: response, configuration: configuration).basis
        return [.sharedMaxAge, .maxAge, .expires].contains(basis)
    }
}
