/// The methods besides GET and HEAD that `/original` passes on: the setting `forwardMethods`.
package struct ForwardedMethods: Sendable, Hashable {
    private let all: Bool
    private let names: [String]

    /// A server that forwards every field is a proxy, and a proxy forwards every method.
    ///
    /// - Parameters:
    ///   - names: methods with their case, or `*` for all; nil if the setting is not set.
    ///   - fields: what is sent with them.
    ///   - isKnown: whether the server's parser reads a method; requests with others never get this far.
    /// - Throws: `Refusal` for what is no method, or none that can be passed on.
    package init(
        _ names: [String]?, fields: ForwardedFields, isKnown: (String) -> Bool
    ) throws(Refusal) {
        all = names.map { $0.contains("*") } ?? fields.areAll
        let named = (names ?? []).filter { $0 != "*" }
        for name in named {
            if Self.unfit.contains(name) {
                throw Refusal(text: "`\(name)` is for proxies on the way, and not passed on")
            }
            guard isKnown(name) else {
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
    package struct Refusal: Error {
        package let text: String
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
}
