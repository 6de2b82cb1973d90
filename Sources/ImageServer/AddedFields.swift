import HTTPCaching

/// The setting `server.fields`: fields that pictures, originals and descriptions carry besides the server's own.
public struct AddedFields: Sendable, Hashable {
    /// Why a field cannot be added.
    public struct Refusal: Error {
        public let text: String
    }

    private let fields: [HeaderField]

    /// Values by name.
    package var texts: [String: String] { Dictionary(fields.map { ($0.name, $0.value) }) { first, _ in first } }

    /// No fields.
    public static let none = AddedFields()

    private init() { fields = [] }

    /// What the server writes itself, or what frames a message.
    private static let own: Set<String> = [
        "accept-ranges", "age", "allow", "cache-control", "cache-status", "connection", "content-disposition",
        "content-encoding", "content-length", "content-location", "content-range", "content-type", "date", "etag",
        "expires", "keep-alive", "last-modified", "link", "location", "repr-digest", "retry-after", "server-timing",
        "trailer", "transfer-encoding", "upgrade", "vary", "via",
    ]

    /// - Parameter fields: values by name; names are tokens, values visible ASCII and spaces (RFC 9110 §5.5).
    public init(_ fields: [String: String]) throws(Refusal) {
        for (name, value) in fields {
            guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte) else {
                throw Refusal(text: "`\(name)` cannot name a field")
            }
            guard !Self.own.contains(name.lowercased()) else {
                throw Refusal(text: "the server writes `\(name)` itself")
            }
            guard !value.isEmpty, value.trimmingSpace() == value, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { throw Refusal(text: "the value of `\(name)` is not visible ASCII") }
        }
        self.fields = fields.sorted { $0.key < $1.key }.map { HeaderField($0.key, $0.value) }
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// The answer with these fields in place of any that it has, such as the origin's.
    func applied(to answer: ServerResponse) -> ServerResponse {
        if fields.isEmpty || answer.status >= 400 { return answer }
        var answer = answer
        answer.fields.removeAll { field in fields.contains { FieldLines.isSameName($0.name, field.name) } }
        answer.fields += fields
        return answer
    }
}
