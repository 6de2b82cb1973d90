import Glibc
import HTTPCaching
import ImageServer
import Pipeline
import PipelineSupport
import Synchronization

/// The `server.accessLog` setting: a line per request on stdout. The program's own messages are written to stderr, so
/// stdout contains only the access log.
enum AccessLog: String, Sendable, CaseIterable {
    case off
    /// The combined log format of NCSA and Apache.
    case combined
    /// One JSON object per line.
    case json

    /// Returns the log that writes the lines, or nil if the access log is off.
    func requests(_ console: Console) -> RequestLog? {
        guard self != .off else { return nil }
        let output = Output(console)
        return RequestLog(
            write: { output.write(line($0)) },
            reportLost: {
                console.error(
                    "pipectl: \($0) requests are missing from the access log, because standard output is too slow")
            })
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
        private let console: Console

        init(_ console: Console) { self.console = console }

        func write(_ line: String) {
            do throws(FileError) {
                try console.write(Array((line + "\n").utf8))
            } catch {
                // The error is reported once, because the reader of the lines has exited and every further line fails
                // in the same way.
                let isFirst = hasFailed.withLock { hasFailed in
                    defer { hasFailed = true }
                    return !hasFailed
                }
                if isFirst { console.error("pipectl: the access log cannot be written: \(error)") }
            }
        }
    }
}

extension AccessLog {
    private static func combined(_ entry: RequestLog.Entry) -> String {
        var request = "-"
        if let asked = entry.request {
            request = [asked.method, target(asked, entry.answer.route), entry.version ?? "-"].map(escaped).joined(
                separator: " ")
        }
        func field(_ name: String) -> String {
            entry.request?.fields.first(name).map { escaped(shown($0)) } ?? "-"
        }
        return
            "\(escaped(entry.client)) - - [\(time(entry.time))] \"\(request)\" \(entry.answer.status) \(sent(entry)) "
            + "\"\(field("referer"))\" \"\(field("user-agent"))\""
    }

    private static func json(_ entry: RequestLog.Entry) -> String {
        let (request, answer) = (entry.request, entry.answer)
        let isOfCache = answer.note?.hasPrefix("pipeline") == true
        return JSONText([
            "ts": LogLine.timestamp(entry.time), "client": entry.client, "method": request?.method,
            "target": request.map { target($0, answer.route) }, "protocol": entry.version, "status": answer.status,
            "bytes": sent(entry), "milliseconds": entry.milliseconds, (isOfCache ? "cache" : "note"): answer.note,
            "format": answer.picture?.format, "size": answer.picture?.size, "key": answer.picture?.key,
            "referer": request?.fields.first("referer").map { text(shown($0)) },
            "userAgent": request?.fields.first("user-agent").map(text),
            "traceId": answer.traceID ?? request.flatMap { TraceContext($0.fields)?.traceID },
        ]).json
    }

    /// Returns the request target without the signature and credentials, as in the program's log.
    private static func target(_ request: ServerRequest, _ route: Route?) -> String {
        RequestLog.shown(request.target, route).replacing("…", with: "...")
    }

    /// Returns the value of a header field without secrets in URLs.
    private static func shown(_ field: String) -> String {
        SourceURL.hidingSecrets(field).replacing("…", with: "...")
    }

    /// Returns the length of the body that was sent, in bytes.
    private static func sent(_ entry: RequestLog.Entry) -> Int {
        entry.request?.isHead == true ? 0 : entry.answer.bytes
    }

    /// Returns a string from a client with the same escaping as in nginx (`ngx_http_log_escape`). Quotation marks, line
    /// breaks and other control characters are escaped, so that a client cannot forge a line. The string contains one
    /// Unicode scalar per byte.
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

    /// Returns the value of a header field, decoded as UTF-8 if its bytes are valid UTF-8.
    private static func text(_ field: String) -> String {
        let bytes = field.unicodeScalars.map { UInt8(exactly: $0.value) }
        guard !bytes.contains(nil) else { return field }
        return String(validating: bytes.compactMap { $0 }, as: UTF8.self) ?? field
    }

    /// Returns a time in UTC, for example `25/Nov/2026:02:19:54 +0000`.
    private static func time(_ seconds: Double) -> String {
        // Parses `2026-11-25T02:19:54.000Z`, so that the names of months do not depend on the locale.
        let text = LogLine.timestamp(seconds)
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let date = text.prefix(10).split(separator: "-")
        guard date.count == 3, let month = Int(date[1]), names.indices.contains(month - 1) else { return "-" }
        return "\(date[2])/\(names[month - 1])/\(date[0]):\(text.dropFirst(11).prefix(8)) +0000"
    }
}
