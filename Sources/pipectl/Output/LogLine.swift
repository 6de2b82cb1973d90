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
        let text = String(unsafeUninitializedCapacity: 32) { text in
            text.withMemoryRebound(to: CChar.self) { strftime($0.baseAddress, $0.count, "%Y-%m-%dT%H:%M:%S", &parts) }
        }
        let milliseconds = Int(((seconds - seconds.rounded(.down)) * 1000).rounded(.down))
        return "\(text).\(String(1000 + milliseconds).dropFirst())Z"
    }
}
