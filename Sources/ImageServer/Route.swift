import PipelineCaching
import PipelineSupport

/// What a request's path asks for.
///
///     /variant/{signature}/{recipe}/{source}    /original/{signature}/{source}    /info/{signature}/{source}
///     /source/{source}    /purge    /health    /ready    /metrics    /    /page/…
///
/// The recipe is one path segment, and the source is the rest of the path. Both are percent-decoded exactly once. The query may
/// have `exp=UNIX`, which is `Signature`'s to check like the signature, and `v=…`, which has no meaning here.
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
    /// - Throws: `Problem`: 404 for other paths, 400 for a segment that cannot be decoded, for a source that a proxy may read
    ///   differently, and for another query, which may have been meant as the source's.
    init(_ target: String) throws(Problem) {
        let path = target[..<(target.utf8.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex)]
        let query = Self.query(of: target)
        let hasQuery = query != nil && query.flatMap(SignedPath.expiry) == nil
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
            let mode = try Self.mode(query)
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
        "the source percent-encoded, `?` as %3F, `%` as %25, and `/` as %2F throughout or not at all, "
        + "or `b64:` and its base64url"

    /// The bytes of a target's query without `v=…`, which only changes the URL for browsers and caches in front; nil if
    /// nothing is left.
    static func query(of target: String) -> [UInt8]? {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return nil }
        let parts = target.utf8[target.utf8.index(after: mark)...]
            .split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
            .filter { !$0.starts(with: "v=".utf8) }
        return parts.isEmpty ? nil : Array(parts.joined(separator: "&".utf8))
    }

    private static func mode(_ query: [UInt8]?) throws(Problem) -> PurgeMode? {
        guard let query else { return nil }
        for mode in [PurgeMode.hard, .soft] where query.elementsEqual("mode=\(mode.rawValue)".utf8) { return mode }
        throw Problem(
            .malformedRequest, "the query is `mode=soft` or `mode=hard`; in the source, write `?` as %3F")
    }

    private static func source(_ segments: ArraySlice<Substring>, hasQuery: Bool) throws(Problem) -> String {
        guard !hasQuery else {
            throw Problem(
                .invalidSource, "a raw `?` ends the source, and only `v=…` and `exp=…` may follow; write \(howToEncode)"
            )
        }
        // Clients and proxies resolve dot segments, and some decode %2F, so that they would read another path.
        for segment in segments where segments.count > 1 {
            let folded = segment.lowercased().replacing("%2e", with: ".")
            guard folded != ".", folded != ".." else {
                throw Problem(
                    .invalidSource, "the source has a segment `\(segment)`, which others resolve; leave it out")
            }
            guard !folded.contains("%2f") else {
                throw Problem(.invalidSource, "the source has both `/` and %2F; write \(howToEncode)")
            }
        }
        let source = try text(segments.joined(separator: "/"), of: .invalidSource, called: "source")
        for scheme in ["http:/", "https:/", "s3:/"]
        where segments.count > 1 && source.hasPrefix(scheme) && !source.hasPrefix(scheme + "/") {
            throw Problem(
                .invalidSource,
                "`\(scheme)` lacks a slash; a proxy may have merged two (nginx: `merge_slashes off`), or write each as %2F"
            )
        }
        guard source.hasPrefix("b64:") else { return source }
        guard let bytes = PercentText.base64URLDecoded(source.dropFirst(4)),
            let plain = String(validating: bytes, as: UTF8.self)
        else {
            throw Problem(.invalidSource, "what follows `b64:` is no base64url of UTF-8 text")
        }
        return plain
    }

    private static func text(
        _ segment: some StringProtocol, of kind: Problem.Kind, called name: String
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
