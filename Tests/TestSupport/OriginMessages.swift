import Glibc

/// A request as the origin received it.
public struct OriginRequest: Sendable, Hashable {
    /// `GET`, `HEAD`, …
    public let method: String
    /// Path and query, as sent.
    public let target: String
    /// Field lines in order: lower-case name and value.
    public let lines: [Line]
    /// What came with it.
    public internal(set) var body: [UInt8] = []

    /// One field line.
    public struct Line: Sendable, Hashable {
        /// Lower-case name.
        public let name: String
        /// Value without whitespace around it.
        public let value: String
    }

    /// The target without its query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The first value of a field, by name in any case.
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

/// What the origin answers, in parts sent one after the other.
public struct OriginReply: Sendable {
    /// One thing to do.
    public enum Part: Sendable {
        /// Send these bytes.
        case bytes([UInt8])
        /// Send these bytes over and over until the client is gone.
        case endless([UInt8])
        /// Send these bytes, then wait so many milliseconds or until the client is gone; over and over.
        case slowly([UInt8], milliseconds: Int32)
        /// Break the connection off with a reset. What was sent may or may not arrive.
        case reset
        /// Send nothing more until the client is gone or the origin is stopped.
        case hang
    }

    /// What to send.
    public var parts: [Part]
    /// Whether the connection takes another request afterwards.
    public var keepsAlive: Bool

    /// Does these things, then takes another request on the connection or closes it.
    public init(parts: [Part], keepsAlive: Bool) {
        self.parts = parts
        self.keepsAlive = keepsAlive
    }

    /// Bytes as they are, head included.
    public static func raw(_ text: String, then parts: [Part] = [], keepsAlive: Bool = false) -> OriginReply {
        OriginReply(parts: [.bytes(Array(text.utf8))] + parts, keepsAlive: keepsAlive)
    }

    /// Nothing: the connection is closed without an answer.
    public static let close = OriginReply(parts: [], keepsAlive: false)

    /// No answer until the client is gone or the origin is stopped.
    public static let hang = OriginReply(parts: [.hang], keepsAlive: false)

    /// A proper response. `Content-Length` and `Date` are added where `fields` has none.
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

/// Dates as an origin writes them.
public enum OriginDate {
    /// IMF-fixdate of a time in Unix seconds.
    public static func text(_ seconds: Int) -> String { text(seconds, "%a, %d %b %Y %H:%M:%S GMT") }

    /// The same as RFC 850 wrote dates.
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

/// Why an origin cannot start.
public struct OriginError: Error, Sendable, CustomStringConvertible {
    /// What failed, with the system's reason.
    public let message: String
    init(_ what: String, _ code: Int32) { message = "\(what): \(String(cString: strerror(code)))" }
    public var description: String { message }
}
