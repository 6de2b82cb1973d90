/// What requests that may change things do to what is stored (RFC 9111 §4.4).
public enum Invalidation {
    /// A URL in normal form, and the scheme, host and port it is of.
    public struct Target: Sendable, Hashable {
        /// What is stored is known by it.
        public let url: String
        /// Two URLs are of one origin where these are equal.
        public let origin: String

        public init(url: String, origin: String) {
            self.url = url
            self.origin = origin
        }
    }

    /// Whether a method asks for nothing to be changed (RFC 9110 §9.2.1). Of methods that nobody knows it is not known,
    /// and so not taken for granted. Methods compare with their case.
    public static func isSafe(_ method: String) -> Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }

    /// The URLs whose stored responses must not be used any more once a request has been answered.
    ///
    /// None after a safe method, or after an error (4xx, 5xx): nothing is known to have changed. Else the URL of the
    /// request, and what `Location` and `Content-Location` name of the same origin; another origin's responses are not
    /// this one's to remove.
    ///
    /// - Parameters:
    ///   - fields: those of the answer, all lines.
    ///   - resolving: the URL that a reference found at `target` leads to; nil for what is none.
    public static func targets(
        after method: String, to target: Target, status: Int, fields: [HeaderField],
        resolving: (_ reference: String) -> Target?
    ) -> [Target] {
        guard !isSafe(method), (200..<400).contains(status) else { return [] }
        let named = ["location", "content-location"].flatMap { fields.values(of: $0) }.compactMap(resolving)
        return [target] + named.filter { $0.origin == target.origin && $0 != target }
    }

    /// Whether the answer to a POST answers later GET requests as well (RFC 9110 §9.3.3): a 200 that says how long it is
    /// fresh, and by `Content-Location` that it is what its own URL stands for now. It is stored where a GET's would be.
    public static func answersLaterRequests(
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
