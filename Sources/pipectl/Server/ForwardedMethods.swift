import NIOHTTP1
import Pipeline

/// The methods besides GET and HEAD that `/original` passes on: the setting `forwardMethods`.
struct ForwardedMethods: Sendable, Hashable {
    private let all: Bool
    private let names: [String]

    /// Whoever passes every field on is a proxy, and a proxy passes every method on.
    ///
    /// - Parameters:
    ///   - names: methods with their case, or `*` for all; nil where the setting is not set.
    ///   - fields: what is sent with them.
    /// - Throws: `Refusal` for what is no method, or none that can be passed on.
    init(_ names: [String]?, fields: ForwardedFields) throws(Refusal) {
        all = names.map { $0.contains("*") } ?? fields.areAll
        let named = (names ?? []).filter { $0 != "*" }
        for name in named {
            if Self.unfit.contains(name) {
                throw Refusal(text: "`\(name)` is for proxies on the way, and not passed on")
            }
            guard Self.isKnown(name) else {
                throw Refusal(
                    text: "`\(name)` is no method known here; write for example [POST, PUT], or [\"*\"] for all")
            }
        }
        var seen = Set(Route.methods)
        self.names = named.filter { seen.insert($0).inserted }
    }

    /// No other methods.
    static let none = ForwardedMethods()

    private init() { (all, names) = (false, []) }

    /// Why a setting cannot be followed.
    struct Refusal: Error {
        let text: String
    }

    /// Not for the origin, or with nothing to wait for.
    private static let unfit: Set<String> = ["CONNECT", "TRACE"]

    /// Whether a request is to be passed on.
    ///
    /// - Parameter signature: the path's. One that was made for somebody to see a picture gives no leave to change it,
    ///   so only unsigned paths, where those are served, take other methods.
    func contains(_ method: String, signature: String) -> Bool {
        guard signature == Signature.unsigned, !Route.methods.contains(method), !Self.unfit.contains(method) else {
            return false
        }
        return all || names.contains(method)
    }

    /// What a path takes, as `Allow` says it; methods beyond those named cannot be listed.
    func allowed(signature: String) -> [String] {
        Route.methods + names.filter { contains($0, signature: signature) }
    }

    /// Whether the parser reads it; others never get this far.
    private static func isKnown(_ name: String) -> Bool {
        if name == "M-SEARCH" { return true }
        if case .RAW = HTTPMethod(rawValue: name) { return false }
        return name != "MSEARCH"
    }
}
