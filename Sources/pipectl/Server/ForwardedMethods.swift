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
            guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte) else {
                throw Refusal(text: "`\(name)` is no method; write for example POST or PUT")
            }
        }
        self.names = named.filter { !Route.methods.contains($0) }
    }

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

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
