import PipelineCaching
import PipelineSupport

/// What a request's path asks for.
///
///     /variant/{signature}/{recipe}/{source}    /original/{signature}/{source}    /info/{signature}/{source}
///     /source/{source}    /purge    /health    /ready    /metrics    /    /page/…
///
/// Recipe and source are one path segment each, percent-decoded exactly once. The signature is `Signature`'s to check, and
/// so is `?exp=UNIX`, their only query.
enum Route: Sendable, Hashable {
    case original(signature: String, source: String)
    case variant(signature: String, recipe: String, source: String)
    case info(signature: String, source: String)
    case health, ready, metrics
    /// Everything stored of a source, and how to purge it if the query says so.
    case source(String, mode: PurgeMode?)
    case purge
    case page(PageRoute)

    /// Methods of the routes that show something.
    static let methods = ["GET", "HEAD"]

    /// Methods that this route takes.
    var methods: [String] {
        switch self {
        case .source: ["DELETE", "PURGE"]
        case .purge: ["POST"]
        case .original, .variant, .info, .health, .ready, .metrics, .page: Self.methods
        }
    }

    /// What the path names to be fetched, as the client wrote it; nil if it names nothing.
    var source: String? {
        switch self {
        case .original(_, let source), .variant(_, _, let source), .info(_, let source): source
        case .source, .purge, .health, .ready, .metrics, .page: nil
        }
    }

    /// Reads a target in origin form.
    ///
    /// - Throws: `Problem`: 404 for other paths, 400 for a segment that cannot be decoded, and for raw `/` and `?`
    ///   inside the source, since what follows them would be cut off or taken for something else.
    init(_ target: String) throws(Problem) {
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        let path = target[..<mark]
        let hasQuery = mark != target.endIndex && SignedPath.expiry(target[mark...].dropFirst()) == nil
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        switch RouteName(target) {
        case .health where segments.count == 1: self = .health
        case .ready where segments.count == 1: self = .ready
        case .metrics where segments.count == 1: self = .metrics
        case .purge where segments.count == 1: self = .purge
        case .page: self = .page(path == "/" ? .document : try PageRoute(segments.dropFirst()))
        case .original:
            let (signature, source) = try Self.signedSource(segments, hasQuery: hasQuery)
            self = .original(signature: signature, source: source)
        case .info:
            let (signature, source) = try Self.signedSource(segments, hasQuery: hasQuery)
            self = .info(signature: signature, source: source)
        case .variant:
            guard segments.count >= 4, !segments[3].isEmpty else {
                throw Problem(.invalidSource, "expected \(RouteName.variant.template), \(Self.howToEncode)")
            }
            let source = try Self.source(segments[3...], hasQuery: hasQuery)
            let recipe = try Self.text(segments[2], of: .invalidRecipe, called: "recipe")
            self = .variant(signature: String(segments[1]), recipe: recipe, source: source)
        case .source:
            guard segments.count >= 2, !segments[1].isEmpty else {
                throw Problem(.invalidSource, "expected \(RouteName.source.template), \(Self.howToEncode)")
            }
            let mode = try Self.mode(target[mark...].dropFirst())
            self = .source(try Self.source(segments[1...], hasQuery: false), mode: mode)
        case .health, .ready, .metrics, .purge, nil: throw Self.nothing
        }
    }

    /// Of `/{route}/{signature}/{source}`.
    private static func signedSource(
        _ segments: [Substring], hasQuery: Bool
    ) throws(Problem) -> (signature: String, source: String) {
        guard segments.count >= 3, !segments[2].isEmpty else {
            throw Problem(.invalidSource, "expected /\(segments[0])/{signature}/{source}, \(howToEncode)")
        }
        return (String(segments[1]), try source(segments[2...], hasQuery: hasQuery))
    }

    static let nothing = Problem(.unknownPath, "there is /variant/…, /original/…, /info/…, /health and /ready")

    private static let howToEncode =
        "the source as one path segment: percent-encode it, `/` as %2F, `?` as %3F and `%` as %25, "
        + "or write `b64:` and its base64url"

    private static func mode(_ query: Substring) throws(Problem) -> PurgeMode? {
        if query.isEmpty { return nil }
        for mode in [PurgeMode.hard, .soft] where query == "mode=\(mode.rawValue)" { return mode }
        throw Problem(
            .malformedRequest, "the query is `mode=soft` or `mode=hard`; in the source, write `?` as %3F")
    }

    private static func source(_ segments: ArraySlice<Substring>, hasQuery: Bool) throws(Problem) -> String {
        guard segments.count == 1, let segment = segments.first else {
            throw Problem(.invalidSource, "a raw `/` ends the source; write \(howToEncode)")
        }
        guard !hasQuery else { throw Problem(.invalidSource, "a raw `?` ends the source; write \(howToEncode)") }
        let source = try text(segment, of: .invalidSource, called: "source")
        guard source.hasPrefix("b64:") else { return source }
        guard let bytes = PercentText.base64URLDecoded(source.dropFirst(4)),
            let plain = String(validating: bytes, as: UTF8.self)
        else {
            throw Problem(.invalidSource, "what follows `b64:` is no base64url of UTF-8 text")
        }
        return plain
    }

    private static func text(
        _ segment: Substring, of kind: Problem.Kind, called name: String
    ) throws(Problem) -> String {
        guard let bytes = percentDecoded(segment) else {
            throw Problem(kind, "the \(name) holds a `%` without two hexadecimal digits; write %25 for a percent sign")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Problem(kind, "the \(name) is not UTF-8 once percent-decoded")
        }
        return text
    }
}
