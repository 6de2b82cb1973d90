import Glibc
import HTTPCaching
import ImageServer
import Pipeline
import PipelineSupport
import Synchronization

/// The setting `server.accessLog`: a line on stdout for each request. Not on stderr, which has the program's own messages,
/// so that what reads the lines meets nothing else.
enum AccessLog: String, Sendable, CaseIterable {
    case off
    /// The combined format of NCSA's and Apache's logs.
    case combined
    /// One object a line.
    case json

    /// nil if it is off.
    var requests: RequestLog? {
        guard self != .off else { return nil }
        let output = Output()
        return RequestLog(
            write: { output.write(line($0)) },
            reportLost: { Console.error("pipectl: \($0) requests are not in the access log: stdout is too slow") })
    }

    func line(_ entry: RequestLog.Entry) -> String {
        switch self {
        case .off: ""
        case .combined: Self.combined(entry)
        case .json: Self.json(entry)
        }
    }

    private final class Output: Sendable {
        private let hasFailed = Mutex(false)

        func write(_ line: String) {
            do throws(FileError) {
                try Console.write(Array((line + "\n").utf8))
            } catch {
                // Once: the reader of the lines is gone, and every further line fails in the same way.
                let isFirst = hasFailed.withLock { hasFailed in
                    defer { hasFailed = true }
                    return !hasFailed
                }
                if isFirst { Console.error("pipectl: the access log: \(error)") }
            }
        }
    }
}

extension AccessLog {
    private static func combined(_ entry: RequestLog.Entry) -> String {
        var request = "-"
        if let asked = entry.request {
            request = [asked.method, target(asked), entry.version ?? "-"].map(escaped).joined(separator: " ")
        }
        func field(_ name: String) -> String {
            entry.request?.fields.first(name).map { escaped(shown($0)) } ?? "-"
        }
        return
            "\(escaped(entry.client)) - - [\(time(entry.time))] \"\(request)\" \(entry.answer.status) \(sent(entry)) "
            + "\"\(field("referer"))\" \"\(field("user-agent"))\""
    }

    private static func json(_ entry: RequestLog.Entry) -> String {
        var json = JSONText()
        json.add("ts", LogLine.timestamp(entry.time))
        json.add("client", entry.client)
        json.add("method", entry.request?.method)
        json.add("target", entry.request.map(target))
        json.add("protocol", entry.version)
        json.add("status", entry.answer.status)
        json.add("bytes", sent(entry))
        json.add("milliseconds", raw: JSONText.thousandths(entry.milliseconds))
        let isOfCache = entry.answer.note?.hasPrefix("pipeline") == true
        json.add(isOfCache ? "cache" : "note", entry.answer.note)
        json.add("format", entry.answer.picture?.format)
        json.add("size", entry.answer.picture?.size)
        json.add("key", entry.answer.picture?.key)
        json.add("referer", entry.request?.fields.first("referer").map { text(shown($0)) })
        json.add("userAgent", entry.request?.fields.first("user-agent").map(text))
        json.add("traceId", entry.answer.traceID ?? entry.request.flatMap { TraceContext($0.fields)?.traceID })
        return json.closed
    }

    /// As the program's log shows it: without signature and credentials.
    private static func target(_ request: ServerRequest) -> String {
        RequestLog.shown(request.target).replacing("…", with: "...")
    }

    /// A field's text without the secrets of URLs in it.
    private static func shown(_ field: String) -> String {
        SourceURL.hidingSecrets(field).replacing("…", with: "...")
    }

    /// Bytes of the body that was sent.
    private static func sent(_ entry: RequestLog.Entry) -> Int {
        entry.request?.isHead == true ? 0 : entry.answer.bytes
    }

    /// Text of a client's as nginx writes it (`ngx_http_log_escape`): no quotation mark, line break or other control
    /// character gets into a line, so that no client can forge one. A field's text has a scalar for each byte.
    static func escaped(_ text: String) -> String {
        func isPlain(_ byte: UInt8) -> Bool {
            (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
        }
        guard !text.utf8.allSatisfy(isPlain) else { return text }
        var line = ""
        for scalar in text.unicodeScalars {
            for byte in scalar.value <= 0xFF ? [UInt8(scalar.value)] : Array(String(scalar).utf8) {
                if isPlain(byte) {
                    line.unicodeScalars.append(UnicodeScalar(byte))
                } else {
                    line += (byte < 0x10 ? "\\x0" : "\\x") + String(byte, radix: 16, uppercase: true)
                }
            }
        }
        return line
    }

    /// Text of a field: its bytes as UTF-8 if they are that.
    private static func text(_ field: String) -> String {
        let bytes = field.unicodeScalars.map { UInt8(exactly: $0.value) }
        guard !bytes.contains(nil) else { return field }
        return String(validating: bytes.compactMap { $0 }, as: UTF8.self) ?? field
    }

    /// UTC: `25/Nov/2026:02:19:54 +0000`.
    private static func time(_ seconds: Double) -> String {
        // `2026-11-25T02:19:54.000Z`, whose names of months do not depend on the locale.
        let text = LogLine.timestamp(seconds)
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let date = text.prefix(10).split(separator: "-")
        guard date.count == 3, let month = Int(date[1]), names.indices.contains(month - 1) else { return "-" }
        return "\(date[2])/\(names[month - 1])/\(date[0]):\(text.dropFirst(11).prefix(8)) +0000"
    }
}
