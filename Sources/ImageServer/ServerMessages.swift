package import HTTPCaching
import PipelineFetching
package import PipelineSupport

/// A request as far as an answer depends on it.
package struct ServerRequest: Sendable, Hashable {
    /// As sent; methods compare with their case.
    package var method: String
    /// Path and query as sent, beginning with `/`.
    package var target: String
    /// Field lines in order, values without whitespace around them.
    package var fields: [HeaderField]
    /// What came with it, where the site wants it.
    package var body: [UInt8] = []
    /// The client's address; nil if it is not known. An IPv4-mapped one becomes IPv4.
    package var client: String? { didSet { client = client.map(IPAddress.plain) } }
    /// Whether it came by the address for operators (`server.adminListen`).
    package var isAdministrative = false

    package init(method: String = "GET", target: String, fields: [HeaderField] = []) {
        self.method = method
        self.target = target
        self.fields = fields
    }

    /// Whether the answer is a head alone.
    package var isHead: Bool { method == "HEAD" }

    /// All lines of a field as one value, joined by comma; nil without one.
    func combined(_ name: String) -> String? { fields.combined(name) }
}

/// An answer before it is framed: neither `Content-Length` nor `Connection` is among the fields.
package struct ServerResponse: Sendable, Hashable {
    /// 200…999; 102…199 for an interim one.
    package var status: Int
    /// In the order they are sent.
    package var fields: [HeaderField]
    /// What a GET carries; a HEAD is answered with the same value and sent without it.
    package var body: ArraySlice<UInt8>
    /// What a GET carries where it lies in a file; `body` is empty then.
    package var file: FilePart?
    /// What the log says beside the status: how the caches dealt with it, or an error's code.
    package var note: String?
    /// The picture that it gives, for the log; nil for other answers.
    package var picture: AnswerPicture?
    /// The trace's, for the log, if a tracer has told it.
    package var traceID: String?

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

        /// Takes the first bytes away, at most so many.
        package mutating func removeFirst(_ most: Int) -> FilePart {
            let first = range.prefix(most)
            range = first.upperBound..<range.upperBound
            return FilePart(file: file, range: first)
        }
    }

    /// Bytes of what a GET carries.
    package var length: Int { file?.range.count ?? body.count }

    /// The answer with a part of what it carries.
    ///
    /// - Parameter part: within `0..<length`.
    func cut(to part: Range<Int>) -> ServerResponse {
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

    /// The first value of a field.
    subscript(name: String) -> String? { fields.first(name) }

    /// The fields of an answer that is this server's own, and of this moment.
    static func ownFields(_ type: String, now: Double) -> [HeaderField] {
        [
            HeaderField("Content-Type", type), HeaderField("Cache-Control", "no-store"),
            HeaderField("X-Content-Type-Options", "nosniff"),
            HeaderField("Date", HTTPDate.text(unixSeconds: Int(now))),
        ]
    }

    /// Whether this status ever has a body (RFC 9110 §6.4.1).
    package var mayHaveBody: Bool { status >= 200 && status != 204 && status != 304 }

    /// The head as it goes over the connection, framing included.
    ///
    /// `Content-Length` is ours (RFC 9110 §8.6): what a GET carries, for HEAD too; none where no body is possible.
    /// Line breaks inside a value would end it early and become spaces.
    ///
    /// - Parameters:
    ///   - keepsAlive: whether another request may follow.
    ///   - announcesKeepAlive: adds `Connection: keep-alive`, which HTTP/1.0 clients need.
    ///   - length: bytes of the body, if it is not here.
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
    /// Appends a field's value as it is sent. Texts hold a byte beyond ASCII as the scalar of the same number (ISO-8859-1,
    /// RFC 9110 §5.5); what would end the line becomes a space.
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

/// The words beside a status, for people.
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

    /// The registered phrase; empty for statuses without one.
    static func of(_ status: Int) -> String { phrases[status] ?? "" }
}
