package import HTTPCaching
import PipelineFetching
package import PipelineSupport

/// The parts of a request that a response depends on.
package struct ServerRequest: Sendable, Hashable {
    /// The method as sent. Methods are case-sensitive.
    package var method: String
    /// Path and query as sent, beginning with `/`.
    package var target: String
    /// The field lines in order. Values have no whitespace around them.
    package var fields: [HeaderField]
    /// The body. It is empty unless the site reads it.
    package var body: [UInt8] = []
    /// The decision about the body, which is made before the body is read. If nil, the site makes it when it responds.
    package var intake: BodyIntake?
    /// The client's address, or nil if it is unknown. IPv4-mapped IPv6 addresses are converted to IPv4.
    package var client: String? { didSet { client = client.map(IPAddress.plain) } }
    /// Whether the request arrived at the operators' address (`server.adminListen`).
    package var isAdministrative = false
    /// Whether the client used https, according to a trusted proxy or the embedding application.
    package var isSecure = false

    package init(method: String = "GET", target: String, fields: [HeaderField] = []) {
        self.method = method
        self.target = target
        self.fields = fields
    }

    /// Whether the response consists only of headers.
    package var isHead: Bool { method == "HEAD" }

    /// Returns all lines of a field joined with commas, or nil if the request has no such field.
    func combined(_ name: String) -> String? { fields.combined(name) }
}

/// A response before it is framed, without `Content-Length` and `Connection` fields.
package struct ServerResponse: Sendable, Hashable {
    /// The status code: 200…999, or 102…199 for an interim response.
    package var status: Int
    /// The header fields, in the order in which they are sent.
    package var fields: [HeaderField]
    /// The body of a GET. A response to HEAD has the same value, but the body is not sent.
    package var body: ArraySlice<UInt8>
    /// The body of a GET, if it is in a file. In that case, `body` is empty.
    package var file: FilePart?
    /// The note that the log shows after the status: how the caches handled the request, or an error code.
    package var note: String?
    /// The picture in the response, for the log, or nil if the response has no picture.
    package var picture: AnswerPicture?
    /// The trace identifier for the log, if a tracer has provided one.
    package var traceID: String?
    /// The route of the request, or nil if the path belongs to no route.
    package var route: Route?

    package init(status: Int, fields: [HeaderField] = [], body: some Collection<UInt8> = [UInt8](), note: String? = nil)
    {
        self.status = status
        self.fields = fields
        self.body = body as? ArraySlice<UInt8> ?? ArraySlice(body)
        self.note = note
    }

    /// A part of a file, read while it is sent.
    package struct FilePart: Sendable, Hashable {
        package let file: SpooledBody
        package var range: Range<Int>

        /// Removes and returns a part with at most `most` bytes from the beginning.
        package mutating func removeFirst(_ most: Int) -> FilePart {
            let first = range.prefix(most)
            range = first.upperBound..<range.upperBound
            return FilePart(file: file, range: first)
        }
    }

    /// The length of a GET's body, in bytes.
    package var length: Int { file?.range.count ?? body.count }

    /// Returns the response with a part of its body.
    ///
    /// - Parameter part: The byte range. Must be within `0..<length`.
    func limited(to part: Range<Int>) -> ServerResponse {
        var answer = self
        if let file {
            let start = file.range.lowerBound
            answer.file?.range = (start + part.lowerBound)..<(start + part.upperBound)
        } else {
            let start = body.startIndex
            answer.body = body[(start + part.lowerBound)..<(start + part.upperBound)]
        }
        return answer
    }

    /// The value of the first field with a name.
    subscript(name: String) -> String? { fields.first(name) }

    /// Returns the header fields of a response that this server generates now.
    static func ownFields(_ type: String, now: Double) -> [HeaderField] {
        [
            HeaderField("Content-Type", type), HeaderField("Cache-Control", "no-store"),
            HeaderField("X-Content-Type-Options", "nosniff"), .date(now),
        ]
    }

    /// Whether responses with this status can have a body (RFC 9110 §6.4.1).
    package var mayHaveBody: Bool { status >= 200 && status != 204 && status != 304 }

    /// Returns the serialized status line and header fields, including framing.
    ///
    /// `Content-Length` is set by this server (RFC 9110 §8.6). It is the length of a GET's body, even for HEAD, and is
    /// omitted if the status cannot have a body. Line breaks in a value would end the field early and are replaced with
    /// spaces.
    ///
    /// - Parameters:
    ///   - keepsAlive: Whether another request may follow on the connection.
    ///   - announcesKeepAlive: Whether to add `Connection: keep-alive`, which HTTP/1.0 clients require.
    ///   - length: The length of the body in bytes, if the response does not contain the body.
    package func headBytes(keepsAlive: Bool, announcesKeepAlive: Bool = false, length: Int? = nil) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(512)
        text += "HTTP/1.1 \(status) \(ReasonPhrase.of(status))\r\n".utf8
        for field in fields {
            text += field.name.utf8
            text += ": ".utf8
            Self.append(field.value, to: &text)
            text += "\r\n".utf8
        }
        if mayHaveBody { text += "Content-Length: \(length ?? self.length)\r\n".utf8 }
        if !keepsAlive {
            text += "Connection: close\r\n".utf8
        } else if announcesKeepAlive {
            text += "Connection: keep-alive\r\n".utf8
        }
        text += "\r\n".utf8
        return text
    }
}

extension ServerResponse {
    /// Appends a serialized field value. In strings, a byte outside ASCII is represented by the Unicode scalar with the
    /// same number (ISO-8859-1, RFC 9110 §5.5). A character that would end the line is replaced with a space.
    static func append(_ value: String, to bytes: inout [UInt8]) {
        for scalar in value.unicodeScalars {
            switch scalar.value {
            case 0, 10, 13: bytes.append(0x20)
            case ...0xFF: bytes.append(UInt8(scalar.value))
            default: bytes += UTF8.encode(scalar).map(Array.init) ?? []
            }
        }
    }
}

extension HeaderField {
    /// Returns a `Date` field for a time in Unix seconds.
    static func date(_ now: Double) -> HeaderField { HeaderField("Date", HTTPDate.text(unixSeconds: Int(now))) }
}

/// The reason phrases of status codes.
enum ReasonPhrase {
    private static let phrases: [Int: String] = [
        102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted",
        203: "Non-Authoritative Information", 204: "No Content",
        205: "Reset Content", 206: "Partial Content", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found",
        303: "See Other", 304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect",
        400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
        406: "Not Acceptable", 408: "Request Timeout", 409: "Conflict", 410: "Gone", 412: "Precondition Failed",
        413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
        417: "Expectation Failed", 421: "Misdirected Request", 422: "Unprocessable Content", 429: "Too Many Requests",
        431: "Request Header Fields Too Large", 500: "Internal Server Error", 501: "Not Implemented",
        502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
        508: "Loop Detected",
    ]

    /// Returns the registered phrase, or an empty string if the status has none.
    static func of(_ status: Int) -> String { phrases[status] ?? "" }
}
