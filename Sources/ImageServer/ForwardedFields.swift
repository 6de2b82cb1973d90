import HTTPCaching

/// The client's request fields that go to the origin: the setting `forwardFields`.
package struct ForwardedFields: Sendable, Hashable {
    private let all: Bool
    private let names: Set<String>

    /// Never sent upstream, in lower case: they speak of this connection or of the body of this request.
    private static let kept: Set<String> = ["host", "content-length", "expect", "max-forwards"]
    /// They ask for less than a whole response, or for a coding of it, and speak of the one this server gives. Codings
    /// are never undone, and a compressed picture is none.
    private static let own: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range", "accept-encoding",
    ]

    /// - Parameter names: field names in any case, or `*` for all.
    package init(_ names: [String]) {
        all = names.contains("*")
        self.names = Set(names.map { $0.lowercased() })
    }

    /// What says which change is meant, and under which conditions: without it the origin would make another one
    /// (RFC 9110 §13.2.1, §14.5).
    private static let change: Set<String> = [
        "content-type", "content-encoding", "content-language", "content-location", "content-range", "content-digest",
        "digest", "content-md5", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
        "range",
    ]

    /// Whether every field is sent on.
    var areAll: Bool { all }

    /// Whether the client's field of this name has a say.
    func contains(_ name: String) -> Bool { all || names.contains(name.lowercased()) }

    /// Whether none has.
    package var isEmpty: Bool { !all && names.isEmpty }

    /// What is sent to the origin, in order, with this server's `Via` after the client's (RFC 9110 §7.6.3); nothing
    /// where nothing is forwarded, so that such requests share one fetch.
    ///
    /// - Parameters:
    ///   - isOriginal: whether the origin's response itself is asked for. For a picture that is made of it, conditions,
    ///     ranges and content codings of the client stay here: they speak of this server's answer.
    ///   - changes: whether the request may change things: what it depends on goes with it.
    func upstream(_ fields: [HeaderField], isOriginal: Bool, changes: Bool = false) -> [HeaderField] {
        guard !isEmpty || changes else { return [] }
        let sent = fields.endToEnd().filter { field in
            let name = field.name.lowercased()
            return (contains(name) || (changes && Self.change.contains(name))) && !Self.kept.contains(name)
                && (isOriginal || !Self.own.contains(name))
        }
        return sent + [HeaderField("Via", "1.1 pipeline")]
    }

    /// The request as the stored response is to be looked at: only the fields that have a say.
    func visible(_ fields: [HeaderField]) -> [HeaderField] { fields.filter { contains($0.name) } }
}
