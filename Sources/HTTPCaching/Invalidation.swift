/// How requests that may change state invalidate stored responses (RFC 9111 §4.4).
package enum Invalidation {
    /// A URL in normal form, and its origin.
    package struct Target: Sendable, Hashable {
        package let url: String
        /// Scheme, host and port; two URLs have the same origin if these are equal.
        package let origin: String

        package init(url: String, origin: String) {
            self.url = url
            self.origin = origin
        }
    }

    /// Whether a method is safe, that is, read-only (RFC 9110 §9.2.1). Unknown methods count as unsafe. Methods are
    /// case-sensitive.
    package static func isSafe(_ method: String) -> Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }

    /// The URLs whose stored responses must not be used any more after a request has been answered.
    ///
    /// None after a safe method or an error (4xx, 5xx), since nothing is known to have changed. Otherwise the request's
    /// URL, and those that `Location` and `Content-Location` name on the same origin; a response must not invalidate
    /// what is stored for another origin.
    ///
    /// - Parameters:
    ///   - fields: all field lines of the response.
    ///   - resolving: returns the URL that a reference found at `target` leads to; nil if the reference is invalid.
    package static func targets(
        after method: String, to target: Target, status: Int, fields: [HeaderField],
        resolving: (_ reference: String) -> Target?
    ) -> [Target] {
        guard !isSafe(method), (200..<400).contains(status) else { return [] }
        let named = ["location", "content-location"].flatMap { fields.values(of: $0) }.compactMap(resolving)
        return [target] + named.filter { $0.origin == target.origin && $0 != target }
    }

    /// Whether the response to a POST also answers later GET requests (RFC 9110 §9.3.3): a 200 that declares its
    /// freshness, and whose `Content-Location` is its own URL. It is stored if the response to a GET would be.
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
