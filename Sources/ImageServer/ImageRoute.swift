/// A route that answers with pictures, or with what is known of them. A server may close some (`ServerConfiguration.routes`).
public enum ImageRoute: String, CaseIterable, Sendable {
    /// `/variant/…`: pictures derived from sources.
    case variant
    /// `/original/…`: sources as their origins sent them, with all metadata.
    case original
    /// `/info/…`: descriptions of sources.
    case info
}
