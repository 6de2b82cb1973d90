import Glibc

/// A request as the origin received it.
public struct OriginRequest: Sendable, Hashable {
    /// The method, for example `GET`.
    public let method: String
    /// Path and query as sent.
    public let target: String
    /// The field lines, in order.
    public let lines: [Line]
    /// The request's body.
    public internal(set) var body: [UInt8] = []

    /// One field line.
    public struct Line: Sendable, Hashable {
        /// The name in lowercase.
        public let name: String
        /// The value without leading spaces.
        public let value: String
    }

    /// The target without its query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The first value of a field. The name is case-insensitive.
    public subscript(name: String) -> String? {
        let wanted = name.lowercased()
        return lines.first { $0.name == wanted }?.value
    }

    init?(head: [UInt8]) {
        var texts = String(decoding: head, as: UTF8.self).replacing("\r\n", with: "\n").split(separator: "\n")
        guard !texts.isEmpty else { return nil }
        let first = texts.removeFirst().split(separator: " ")
        guard first.count == 3 else { return nil }
        method = String(first[0])
        target = String(first[1])
        lines = texts.compactMap { text in
            guard let colon = text.firstIndex(of: ":") else { return nil }
            let value = text[text.index(after: colon)...].drop { $0 == " " }
            return Line(name: text[..<colon].lowercased(), value: String(value))
        }
    }
}

/// An origin's response, as parts that are sent in order.
public struct OriginReply: Sendable {
    /// One action of the origin.
    public enum Part: Sendable {
        /// Send these bytes.
        case bytes([UInt8])
        /// Send these bytes repeatedly until the client disconnects.
        case endless([UInt8])
        /// Repeatedly send these bytes and wait the given milliseconds, until the client sends something or
        /// disconnects.
        case slowly([UInt8], milliseconds: Int32)
        /// Reset the connection. Bytes sent earlier may or may not arrive.
        case reset
        /// Send nothing more until the client disconnects or the origin is stopped.
        case hang
        /// Send nothing more until the test opens the gate, which it must do before it stops the origin.
        case wait(BlockingGate)
    }

    /// The actions, in order.
    public var parts: [Part]
    /// Whether the connection accepts another request afterward.
    public var keepsAlive: Bool

    /// Creates a response that performs these actions and then accepts another request on the connection or closes it.
    public init(parts: [Part], keepsAlive: Bool) {
        self.parts = parts
        self.keepsAlive = keepsAlive
    }

    /// Returns a response given as raw bytes, including its header section.
    public static func raw(_ text: String, then parts: [Part] = [], keepsAlive: Bool = false) -> OriginReply {
        OriginReply(parts: [.bytes(Array(text.utf8))] + parts, keepsAlive: keepsAlive)
    }

    /// Closes the connection without a response.
    public static let close = OriginReply(parts: [], keepsAlive: false)

    /// Sends no response until the client disconnects or the origin is stopped.
    public static let hang = OriginReply(parts: [.hang], keepsAlive: false)

    /// Returns a well-formed response. `Content-Length` and `Date` are added if `fields` does not contain them.
    public static func response(
        _ status: Int, _ fields: KeyValuePairs<String, String> = [:], body: [UInt8] = [], sendsDate: Bool = true
    ) -> OriginReply {
        response(status, Array(fields), body: body, sendsDate: sendsDate)
    }

    static func response(
        _ status: Int, _ fields: [(key: String, value: String)], body: [UInt8], sendsDate: Bool = true,
        sendsBody: Bool = true
    ) -> OriginReply {
        let names = Set(fields.map { $0.key.lowercased() })
        var head = "HTTP/1.1 \(status) \(status == 200 ? "OK" : "Status")\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if sendsDate, !names.contains("date") { head += "Date: \(OriginDate.text(time(nil)))\r\n" }
        let hasBody = status >= 200 && status != 204 && status != 304
        if hasBody, !names.contains("content-length"), !names.contains("transfer-encoding") {
            head += "Content-Length: \(body.count)\r\n"
        }
        let sent = hasBody && sendsBody ? body : []
        return OriginReply(parts: [.bytes(Array((head + "\r\n").utf8) + sent)], keepsAlive: true)
    }
}

/// Formats dates for HTTP header fields.
public enum OriginDate {
    /// Formats a time in Unix seconds as an IMF-fixdate.
    public static func text(_ seconds: Int) -> String { text(seconds, "%a, %d %b %Y %H:%M:%S GMT") }

    /// Formats a time in Unix seconds in the obsolete RFC 850 format.
    public static func text850(_ seconds: Int) -> String { text(seconds, "%A, %d-%b-%y %H:%M:%S GMT") }

    private static func text(_ seconds: Int, _ format: String) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        var buffer = [CChar](repeating: 0, count: 64)
        let length = strftime(&buffer, buffer.count, format, &parts)
        return String(decoding: buffer[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// The error for an origin that cannot start.
public struct OriginError: Error, Sendable, CustomStringConvertible {
    /// A description of the failure, including the system's reason.
    public let message: String
    init(_ what: String, _ code: Int32) { message = "\(what): \(String(cString: strerror(code)))" }
    public var description: String { message }
}
