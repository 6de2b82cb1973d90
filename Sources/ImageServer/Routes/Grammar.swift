/// Parses the paths of one picture route. Each grammar is one file and one line in `Grammars.all`.
package protocol Grammar: Sendable {
    /// The first segment of the route's paths, which is also the route's name in logs, metrics and traces.
    var name: String { get }
    /// The path template relative to the mount point, in the form of OpenTelemetry's `http.route`.
    var template: String { get }
    /// Whether the `Accept` field of a request may determine the format of the response.
    var negotiates: Bool { get }

    /// Parses a target without side effects.
    ///
    /// - Parameters:
    ///   - signature: The rules that decide whether the request is allowed. The signature is checked before any part of
    ///     the target is decoded.
    ///   - now: The current time, in Unix seconds.
    /// - Throws: a `Problem` with status 403 if the target is not signed or has expired, or 400 if it is malformed.
    func read(_ target: RequestTarget, _ signature: Signature, now: Double) throws(Problem) -> RoutedRequest

    /// Returns the target for the log, in visible ASCII, without the signature or any credentials.
    func shown(_ target: RequestTarget) -> String
}

/// A request for a picture, parsed from its target.
package struct RoutedRequest: Sendable {
    package enum ResponseKind: Sendable, Hashable {
        /// A picture rendered with a recipe.
        case variant(recipe: String)
        /// The source as the origin sent it.
        case original
        /// A description of the source, as JSON.
        case info
    }

    package var answer: ResponseKind
    /// The source as the client wrote it: a URL, `name:path`, or a path relative to the default base.
    package var source: String
    /// The permission that the signature check granted.
    package var grant: Signature.Grant

    /// The methods that every picture route supports.
    static let methods = ["GET", "HEAD"]
}

/// The grammars that a site supports.
enum Grammars {
    static let all: [any Grammar] = ImageRoute.allCases
}

/// The route of a target. Logs, metrics, traces, cross-origin rules and the keys of prepared responses depend on the
/// route.
package enum Route: Sendable, Hashable {
    case picture(any Grammar)
    case operation(Operation.Name)

    package var name: String {
        switch self {
        case .picture(let grammar): grammar.name
        case .operation(let name): name.rawValue
        }
    }

    var template: String {
        switch self {
        case .picture(let grammar): grammar.template
        case .operation(let name): name.template
        }
    }

    var negotiates: Bool { if case .picture(let grammar) = self { grammar.negotiates } else { false } }

    /// Whether pages of other origins may read the responses. They may not read responses of server operations, because
    /// these depend on the client's address.
    var isPicture: Bool { if case .picture = self { true } else { false } }

    package static func == (left: Route, right: Route) -> Bool { left.name == right.name }
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension ServerConfiguration {
    /// Returns the route named by the first segment of a target, or nil if it names no route.
    func route(of target: RequestTarget) -> Route? {
        guard let name = target.name else { return nil }
        if let grammar = grammars.first(where: { $0.name.utf8.elementsEqual(name.utf8) }) { return .picture(grammar) }
        return Operation.Name(target).map(Route.operation)
    }
}
