/// The methods other than GET and HEAD that `/original` forwards: the `forwardMethods` setting.
package struct ForwardedMethods: Sendable, Hashable {
    private let all: Bool
    private let names: [String]

    /// Creates the list of methods. If the setting is not set, a server that forwards every field also forwards every
    /// method, as a proxy does.
    ///
    /// - Parameters:
    ///   - names: The methods (case-sensitive), or `*` for all. The value is nil if the setting is not set.
    ///   - fields: The header fields that are forwarded with them.
    init(_ names: [String]?, fields: ForwardedFields) {
        all = names.map { $0.contains("*") } ?? fields.areAll
        var seen = Set(RoutedRequest.methods + ["*"])
        self.names = (names ?? []).filter { seen.insert($0).inserted }
    }

    /// Returns the reason why the setting may not contain a method, or nil if it may.
    ///
    /// - Parameter isKnown: Whether the server's parser accepts a method. Requests with other methods are rejected
    ///   earlier.
    package static func fault(of name: String, isKnown: (String) -> Bool) -> String? {
        if neverForwarded.contains(name) {
            return "`\(name)` cannot be forwarded, because it applies to a single connection"
        }
        if name == "*" || isKnown(name) { return nil }
        return "`\(name)` is not a known method; expected for example [POST, PUT], or [\"*\"] for all"
    }

    /// Methods that are never forwarded, because they are meant for proxies rather than for the origin.
    private static let neverForwarded: Set<String> = ["CONNECT", "TRACE"]

    /// Whether a request is forwarded.
    ///
    /// - Parameter isSigned: Whether the path has a signature. A signature permits reading a picture, not changing it,
    ///   so other methods are forwarded only on unsigned paths, if those are served.
    func contains(_ method: String, isSigned: Bool) -> Bool {
        guard !isSigned, !RoutedRequest.methods.contains(method), !Self.neverForwarded.contains(method) else {
            return false
        }
        return all || names.contains(method)
    }

    /// Returns the methods that a path allows, for `Allow`. Methods allowed by a wildcard cannot be listed.
    func allowed(isSigned: Bool) -> [String] {
        RoutedRequest.methods + names.filter { contains($0, isSigned: isSigned) }
    }
}
