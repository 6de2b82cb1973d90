import HTTPCaching
package import PipelineSupport

/// The `server.fields` setting: header fields that are added to pictures, originals and descriptions.
package struct AddedFields: Sendable {
    private let fields: [HeaderField]

    /// Fields that the server sets itself, and fields that frame a message. Neither can be added.
    private static let own: Set<String> = [
        "accept-ranges", "age", "allow", "cache-control", "cache-status", "connection", "content-disposition",
        "content-encoding", "content-length", "content-location", "content-range", "content-type", "date", "etag",
        "expires", "keep-alive", "last-modified", "link", "location", "repr-digest", "retry-after", "server-timing",
        "trailer", "transfer-encoding", "upgrade", "vary", "via",
    ]

    /// - Parameter fields: Values by field name. Names must be tokens, and values visible ASCII and spaces (RFC 9110
    ///   §5.5).
    package init(_ fields: [String: String]) throws(InvalidSetting) {
        for (name, value) in fields {
            guard FieldLines.isToken(name) else {
                throw InvalidSetting("`\(name)` is not a valid name of a header field")
            }
            guard !Self.own.contains(name.lowercased()) else {
                throw InvalidSetting("`\(name)` cannot be added, because the server sets this field itself")
            }
            guard !value.isEmpty, value.trimmingSpace() == value, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { throw InvalidSetting("the value of `\(name)` must be visible ASCII, without spaces at the ends") }
        }
        self.fields = fields.sorted { $0.key < $1.key }.map { HeaderField($0.key, $0.value) }
    }

    /// Returns the response with these fields. They replace fields with the same name, for example from the origin.
    func applied(to answer: ServerResponse) -> ServerResponse {
        if fields.isEmpty || answer.status >= 400 { return answer }
        var answer = answer
        answer.fields.removeAll { field in fields.contains { FieldLines.isSameName($0.name, field.name) } }
        answer.fields += fields
        return answer
    }
}
