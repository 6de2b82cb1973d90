package import HTTPCaching
package import PipelineSupport

/// The origins whose scripts may read responses: the `server.cors` setting (CORS protocol of the Fetch standard). Pages
/// of every origin may show pictures.
package enum CrossOriginRule: Sendable, Hashable {
    /// No origins. Responses have no CORS header fields. This is the default.
    case none
    /// Every origin.
    case all
    /// These origins, in lowercase, for example `https://example.org`.
    case list([String])

    /// - Parameter texts: Origins, or `*` for every origin.
    /// - Throws: if a string is not an origin. The error names the first such string.
    package init(_ texts: [String]) throws(InvalidSetting) {
        for text in texts where text != "*" && !Self.isOrigin(text) {
            throw InvalidSetting("`\(text)` is neither an origin such as https://example.org nor *")
        }
        self = texts.isEmpty ? .none : texts.contains("*") ? .all : .list(texts.map { $0.lowercased() })
    }

    /// Returns the client's origin if the list contains it. The CORS header fields then depend on the origin.
    func selected(_ origin: String?) -> String? {
        guard case .list(let origins) = self, let origin = origin?.lowercased(), origins.contains(origin) else {
            return nil
        }
        return origin
    }

    /// Returns the response with this rule's header fields. They replace CORS fields that the response already has, for
    /// example from the origin server.
    ///
    /// - Parameter origin: The client's `Origin`, or the value that `selected` returned for it.
    package func applied(to answer: ServerResponse, origin: String?) -> ServerResponse {
        if self == .none { return answer }
        var answer = answer
        answer.fields.removeAll(where: Self.isOwn)
        var allowed: String?
        switch self {
        case .none: break
        case .all: allowed = "*"
        case .list:
            allowed = selected(origin)
            if !answer.fields.contains(HeaderField("Vary", "Origin")) {
                answer.fields.append(HeaderField("Vary", "Origin"))
            }
        }
        if let allowed {
            answer.fields += [
                HeaderField("Access-Control-Allow-Origin", allowed),
                // Scripts may read every header field, because no response depends on cookies.
                HeaderField("Access-Control-Expose-Headers", "*"),
                // Lets scripts read `Server-Timing` and the transfer times (W3C Resource Timing §4.5).
                HeaderField("Timing-Allow-Origin", allowed),
            ]
        }
        return answer
    }

    /// Whether a header field says which pages may read a response.
    package static func isOwn(_ field: HeaderField) -> Bool {
        let name = FieldLines.lowercased(field.name)
        return name.hasPrefix("access-control-") || name == "timing-allow-origin"
    }

    /// Returns the response to a CORS preflight request, or nil if `request` is not a preflight request.
    ///
    /// - Parameters:
    ///   - methods: The methods that scripts may use.
    ///   - isAny: Whether every OPTIONS request counts as a preflight request.
    func preflight(
        _ request: ServerRequest, _ methods: [String] = RoutedRequest.methods, isAny: Bool = false, now: Double
    ) -> ServerResponse? {
        guard self != .none, request.method == "OPTIONS",
            isAny || request.combined("origin") != nil && request.combined("access-control-request-method") != nil
        else { return nil }
        var answer = applied(
            to: ServerResponse(status: 204, fields: [.date(now)]), origin: request.combined("origin"))
        guard answer["access-control-allow-origin"] != nil else { return answer }
        answer.fields += [
            HeaderField("Access-Control-Allow-Methods", methods.joined(separator: ", ")),
            HeaderField("Access-Control-Allow-Headers", "*"), HeaderField("Access-Control-Max-Age", "86400"),
        ]
        return answer
    }

    /// Whether the string is `scheme://host[:port]` with nothing after it.
    private static func isOrigin(_ text: String) -> Bool {
        guard let mark = text.firstRange(of: "://") else { return false }
        let scheme = text[..<mark.lowerBound]
        let host = text[mark.upperBound...]
        return !scheme.isEmpty && scheme.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A } && !host.isEmpty
            && RequestAdmission.isHost(String(host)) && !host.contains("*")
    }
}
