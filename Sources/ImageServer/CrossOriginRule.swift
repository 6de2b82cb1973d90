import HTTPCaching

/// Which web pages of other origins may read answers with scripts (setting `server.cors`; the Fetch standard's CORS
/// protocol). Pages may show pictures without it.
package enum CrossOriginRule: Sendable, Hashable {
    /// None: answers say nothing about it.
    case none
    /// Every page.
    case all
    /// Pages of these origins, `https://example.org`, in lower case.
    case list([String])

    /// - Parameter texts: origins, or `*` for all.
    /// - Throws: `Malformed`, with the first text that is no origin.
    package init(_ texts: [String]) throws(Malformed) {
        for text in texts where text != "*" && !Self.isOrigin(text) { throw Malformed(text: text) }
        self = texts.isEmpty ? .none : texts.contains("*") ? .all : .list(texts.map { $0.lowercased() })
    }

    package struct Malformed: Error { package let text: String }

    /// As given to `init`.
    package var texts: [String] {
        switch self {
        case .none: []
        case .all: ["*"]
        case .list(let origins): origins
        }
    }

    /// The origin that an answer's fields depend on: the client's, if it is in the list.
    func selected(_ origin: String?) -> String? {
        guard case .list(let origins) = self, let origin = origin?.lowercased(), origins.contains(origin) else {
            return nil
        }
        return origin
    }

    /// The answer with this rule's fields in place of any that it has, such as the origin's.
    ///
    /// - Parameter origin: the client's `Origin`, or what `selected` made of it.
    func applied(to answer: ServerResponse, origin: String?) -> ServerResponse {
        if self == .none { return answer }
        var answer = answer
        answer.fields.removeAll { field in
            let name = FieldLines.lowercased(field.name)
            return name.hasPrefix("access-control-") || name == "timing-allow-origin"
        }
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
                // Scripts may read every field; no answer here depends on cookies.
                HeaderField("Access-Control-Expose-Headers", "*"),
                // Of `Server-Timing` and the times of the transfer (W3C Resource Timing §4.5).
                HeaderField("Timing-Allow-Origin", allowed),
            ]
        }
        return answer
    }

    /// The answer to a browser that asks whether a page may make a request; nil for other requests.
    func preflight(_ request: ServerRequest, now: Double) -> ServerResponse? {
        guard self != .none, request.method == "OPTIONS", request.combined("origin") != nil,
            request.combined("access-control-request-method") != nil
        else { return nil }
        var answer = applied(
            to: ServerResponse(
                status: 204, fields: [HeaderField("Date", HTTPDate.text(unixSeconds: Int(now)))]),
            origin: request.combined("origin"))
        guard answer["access-control-allow-origin"] != nil else { return answer }
        answer.fields += [
            HeaderField("Access-Control-Allow-Methods", Route.methods.joined(separator: ", ")),
            HeaderField("Access-Control-Allow-Headers", "*"), HeaderField("Access-Control-Max-Age", "86400"),
        ]
        return answer
    }

    /// `scheme://host[:port]` and nothing behind it.
    private static func isOrigin(_ text: String) -> Bool {
        guard let mark = text.firstRange(of: "://") else { return false }
        let scheme = text[..<mark.lowerBound]
        let host = text[mark.upperBound...]
        return !scheme.isEmpty && scheme.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A } && !host.isEmpty
            && RequestAdmission.isHost(String(host)) && !host.contains("*")
    }
}
