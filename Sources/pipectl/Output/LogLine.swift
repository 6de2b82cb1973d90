import Glibc
import PipelineSupport
import Synchronization

/// The format of the server's log lines. One-shot commands write plain messages.
enum LogFormat: String, Sendable, CaseIterable {
    /// The time, then the message.
    case text
    /// One JSON object per line: `time`, `level`, `message`, and members specific to the line.
    case json
}

struct LogLine: Sendable {
    enum Level: String, Sendable { case info, warning, error }

    /// What the server logs (setting `log.level`): a line for each request below `warning`.
    enum Threshold: String, Sendable, CaseIterable {
        case trace, debug, info, warning, error

        var includesRequests: Bool { self != .warning && self != .error }
    }

    var level: Level
    var message: String
    /// Adds the line's own members to the JSON form; in the text form, the message contains that information.
    var members: @Sendable (inout JSONText) -> Void = { _ in }

    /// - Parameter time: Unix seconds.
    func text(_ format: LogFormat, time: Double) -> String {
        switch format {
        case .text: return Self.timestamp(time) + " " + message
        case .json:
            var json = JSONText()
            json.add("time", Self.timestamp(time))
            json.add("level", level.rawValue)
            json.add("message", message)
            members(&json)
            return json.closed
        }
    }

    /// UTC with milliseconds (RFC 3339): `2026-11-23T14:05:09.042Z`.
    static func timestamp(_ seconds: Double) -> String {
        var whole = time_t(seconds.rounded(.down))
        var parts = tm()
        gmtime_r(&whole, &parts)
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let milliseconds = Int(((seconds - seconds.rounded(.down)) * 1000).rounded(.down))
        return
            "\(digits(Int(parts.tm_year) + 1900, 4))-\(digits(Int(parts.tm_mon) + 1, 2))-\(digits(Int(parts.tm_mday), 2))"
            + "T\(digits(Int(parts.tm_hour), 2)):\(digits(Int(parts.tm_min), 2)):\(digits(Int(parts.tm_sec), 2))"
            + ".\(digits(milliseconds, 3))Z"
    }
}
