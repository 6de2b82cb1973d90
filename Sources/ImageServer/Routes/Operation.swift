package import PipelineCaching

/// A request for the server itself: purges, probes, metrics and the page.
///
///     /source/{source}    /purge    /health    /ready    /metrics    /    /page/…
package enum Operation: Sendable, Hashable {
    case health, ready, metrics
    /// Purges everything stored for a source, with the mode in the query if there is one.
    case source(String, mode: PurgeMode?)
    case purge
    case page(PageRoute)

    /// The first segment of an operation's path. The name of `/` is `page`.
    package enum Name: String, CaseIterable, Sendable {
        case source, purge, health, ready, metrics, page

        package init?(_ target: RequestTarget) {
            guard let name = target.name else { return nil }
            if name.isEmpty { self = .page } else { self.init(rawValue: String(name)) }
        }

        var template: String {
            switch self {
            case .source: "/source/{source}"
            case .page: "/"
            case .purge, .health, .ready, .metrics: "/" + rawValue
            }
        }

        var methods: [String] {
            switch self {
            case .source: ["DELETE", "PURGE"]
            case .purge: ["POST"]
            case .health, .ready, .metrics, .page: RoutedRequest.methods
            }
        }
    }

    /// Parses a target with the given name.
    ///
    /// - Throws: a `Problem` with status 404 if the path belongs to no operation, or 400 if a source or query is
    ///   malformed.
    init(_ name: Name, _ target: RequestTarget) throws(Problem) {
        let segments = target.segments
        switch name {
        case .health where segments.count == 1: self = .health
        case .ready where segments.count == 1: self = .ready
        case .metrics where segments.count == 1: self = .metrics
        case .purge where segments.count == 1: self = .purge
        case .page where target.name?.isEmpty == true: self = .page(.document)
        case .page: self = .page(try PageRoute(segments.dropFirst()))
        case .source:
            guard segments.count >= 2, !segments[1].isEmpty else {
                throw Problem(.invalidSource, "expected \(name.template), \(OwnPath.howToEncode)")
            }
            let mode = try Self.mode(target.query)
            self = .source(try OwnPath.source(segments[1...], hasQuery: false), mode: mode)
        case .health, .ready, .metrics, .purge: throw Self.nothing
        }
    }

    static let nothing = Problem(
        .unknownPath, "the available paths are /variant/…, /original/…, /info/…, /health and /ready")

    private static func mode(_ query: [UInt8]?) throws(Problem) -> PurgeMode? {
        guard let query else { return nil }
        for mode in [PurgeMode.hard, .soft] where query.elementsEqual("mode=\(mode.rawValue)".utf8) { return mode }
        throw Problem(
            .malformedRequest,
            "the query must be `mode=soft` or `mode=hard`; if the `?` belongs to the source, write it as %3F")
    }
}

extension Operation.Name {
    /// Returns a target of this name for the log.
    func shown(_ target: RequestTarget) -> String? {
        switch try? Operation(self, target) {
        case .source(let source, _): "/source/" + RequestLog.redacted(source)
        case .page: String(target.text.prefix { $0 != "?" })
        case .health, .ready, .metrics, .purge: template
        case nil: nil
        }
    }
}
