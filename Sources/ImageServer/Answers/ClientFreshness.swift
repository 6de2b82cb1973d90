/// Sets the `Cache-Control` directives of variants: `ServerConfiguration.freshness`, or `presetFreshness` for a preset.
/// They replace the directives that the server derives from the origin's response.
///
/// ```swift
/// var freshness = ClientFreshness(maxAge: .seconds(3600))
/// freshness.staleWhileRevalidate = .seconds(86_400)
/// var configuration = ServerConfiguration()
/// configuration.freshness = freshness
/// ```
public struct ClientFreshness: Sendable, Hashable {
    /// How long clients may reuse a variant without contacting the server, in whole seconds and at least 0.
    public var maxAge: Duration
    /// How long after `maxAge` clients may reuse the variant while they revalidate it (RFC 5861 §3), in whole seconds.
    /// Defaults to 0.
    public var staleWhileRevalidate = Duration.zero
    /// Whether browsers reuse the variant even if the user reloads the page (RFC 8246 §2). Defaults to false.
    public var isImmutable = false

    /// - Parameter maxAge: A duration in whole seconds, at least 0.
    public init(maxAge: Duration) { self.maxAge = maxAge }

    /// The value of `Cache-Control`.
    var directives: String {
        let grace = staleWhileRevalidate.components.seconds
        return "max-age=\(max(0, maxAge.components.seconds))" + (isImmutable ? ", immutable" : "")
            + (grace > 0 ? ", stale-while-revalidate=\(grace)" : "")
    }
}
