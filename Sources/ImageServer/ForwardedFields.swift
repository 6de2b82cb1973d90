import HTTPCaching

/// The client's header fields that are forwarded to the origin: the `forwardFields` setting.
struct ForwardedFields: Sendable, Hashable {
    private let all: Bool
    /// Field names in lowercase.
    private let names: Set<String>

    /// Fields that are never forwarded, in lowercase, because they concern this connection or the body of this request.
    private static let neverForwarded: Set<String> = ["host", "content-length", "expect", "max-forwards"]
    /// Fields that request a part or a content coding of this server's response. A compressed response could not be
    /// decoded as a picture, because the server never decodes content codings.
    private static let own: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range", "accept-encoding",
    ]

    /// - Parameter texts: Field names (case-insensitive), or `*` for all.
    init(_ texts: [String]) {
        all = texts.contains("*")
        names = Set(texts.map { $0.lowercased() })
    }

    /// Fields that specify a change and its conditions. If they were not forwarded, the origin would make a different
    /// change (RFC 9110 §13.2.1, §14.5).
    private static let change: Set<String> = [
        "content-type", "content-encoding", "content-language", "content-location", "content-range", "content-digest",
        "digest", "content-md5", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
        "range",
    ]

    /// Whether every field is forwarded.
    var areAll: Bool { all }

    /// Whether the field with this name is forwarded.
    func contains(_ name: String) -> Bool { all || names.contains(name.lowercased()) }

    /// Whether no field is forwarded.
    var isEmpty: Bool { !all && names.isEmpty }

    /// Returns the fields to send to the origin, in order, with this server's `Via` after the client's (RFC 9110
    /// §7.6.3). Returns only `CDN-Loop` if no field is forwarded, so that such requests share one fetch.
    ///
    /// - Parameters:
    ///   - isOriginal: Whether the client requests the origin's response itself. If a picture is rendered from the
    ///     response, the client's conditions, ranges and content codings are not forwarded, because they apply to this
    ///     server's response.
    ///   - changes: Whether the request may change the resource. If so, fields that specify the change are also
    ///     forwarded.
    func upstream(_ fields: [HeaderField], isOriginal: Bool, changes: Bool = false) -> [HeaderField] {
        let loop = areAll || contains("cdn-loop") ? [] : LoopGuard.passedOn(fields)
        guard !isEmpty || changes else { return loop }
        let sent = fields.endToEnd().filter { field in
            let name = field.name.lowercased()
            return (contains(name) || (changes && Self.change.contains(name))) && !Self.neverForwarded.contains(name)
                && (isOriginal || !Self.own.contains(name))
        }
        return sent + [HeaderField("Via", "1.1 pipeline")] + loop
    }

    /// Returns the fields of a request that select a stored response.
    func visible(_ fields: [HeaderField]) -> [HeaderField] { fields.filter { contains($0.name) } }
}
