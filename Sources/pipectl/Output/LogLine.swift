import Glibc
import PipelineSupport
import Synchronization

/// The format of the server's log lines. One-shot commands write plain messages.
enum LogFormat: String, Sendable, CaseIterable {
    /// The time, followed by the message.
    case text
    /// One JSON object per line: `time`, `level`, `message`, and members specific to the line.
    case json
}

struct LogLine: Sendable {
    enum Level: String, Sendable { case info, warning, error }

    /// The level from which the server logs messages (the `log.level` setting). Below `warning`, the log includes a
    /// line per request.
    enum Threshold: String, Sendable, CaseIterable {
        case trace, debug, info, warning, error

        var includesRequests: Bool { self != .warning && self != .error }
    }

    var level: Level
    var message: String
    /// Whether the message may show the access token. In all other lines, secrets in URLs are hidden.
    var showsToken = false
    /// Adds members specific to the line to the JSON form. In the text form, the message contains this information.
    var members: @Sendable (inout JSONText) -> Void = { _ in }

    /// Returns the line in a format.
    ///
    /// - Parameter time: The time in Unix seconds.
    func text(_ format: LogFormat, time: Double) -> String {
        switch format {
        case .text: return Self.timestamp(time) + " " + message
        case .json:
            var json = JSONText(["time": Self.timestamp(time), "level": level.rawValue, "message": message])
            members(&json)
            return json.json
        }
    }

    /// Returns a time in UTC with milliseconds (RFC 3339), for example `2026-11-23T14:05:09.042Z`.
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
