/// The routes by the first segment of their paths, which is what signatures, cross-origin rules, metrics and traces know
/// of them.
enum RouteName: String, CaseIterable, Sendable {
    case variant, original, info, source, purge, health, ready, metrics, page

    /// Reads the beginning of a target in origin form and decodes nothing; nil if there is no such route.
    init?(_ target: String) {
        guard target.utf8.first == UInt8(ascii: "/") else { return nil }
        let path = target.utf8.dropFirst()
        let name = path.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        if name.isEmpty {
            guard path.first != UInt8(ascii: "/") else { return nil }
            self = .page
        } else {
            self.init(rawValue: String(Substring(name)))
        }
    }

    /// As OpenTelemetry's `http.route` has it, below the mount point.
    var template: String {
        switch self {
        case .variant: "/variant/{signature}/{recipe}/{source}"
        case .original: "/original/{signature}/{source}"
        case .info: "/info/{signature}/{source}"
        case .source: "/source/{source}"
        case .page: "/"
        case .purge, .health, .ready, .metrics: "/" + rawValue
        }
    }

    /// Whether a request needs leave, by a signature. Pages of other origins may be allowed to read the answers of these
    /// alone: the others depend on where the client is.
    var isSigned: Bool {
        switch self {
        case .variant, .original, .info: true
        case .source, .purge, .health, .ready, .metrics, .page: false
        }
    }
}
