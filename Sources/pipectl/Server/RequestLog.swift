import Pipeline
import Synchronization
import Variants

/// A line on stderr for each request. Written by a thread of its own: stderr may be a pipe that nobody empties, and the
/// event loops must not wait for it. Lines beyond those waiting are dropped and counted.
final class RequestLog: Sendable {
    struct Entry: Sendable {
        /// The client's address.
        var client: String
        /// nil for what was no proper request.
        var request: ServerRequest?
        var status: Int
        var bytes: Int
        var note: String?
        var milliseconds: Double
    }

    private let thread = OwnedThreads(count: 1)
    private let waiting = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)
    private static let limit = 4096

    /// Hands an entry over.
    func write(_ entry: Entry) {
        guard waiting.load(ordering: .relaxed) < Self.limit else {
            dropped.add(1, ordering: .relaxed)
            return
        }
        waiting.add(1, ordering: .relaxed)
        thread.submit { [self] in
            waiting.subtract(1, ordering: .relaxed)
            let lost = dropped.exchange(0, ordering: .relaxed)
            if lost > 0 { Console.error("pipectl: \(lost) requests were not logged: stderr is too slow") }
            Console.tell(Self.logLine(entry))
        }
    }

    /// Returns when everything handed over is written.
    func flush() async { await thread.run {} }

    static func logLine(_ entry: Entry) -> LogLine {
        LogLine(level: .info, message: line(entry)) { json in
            json.add("client", entry.client)
            json.add("method", entry.request?.method)
            json.add("target", entry.request.map { shown($0.target) })
            json.add("status", entry.status)
            json.add("bytes", entry.bytes)
            json.add("milliseconds", raw: JSONText.thousandths(entry.milliseconds))
            json.add("note", entry.note)
        }
    }

    /// `127.0.0.1 GET /variant/unsigned/thumbnail:300/http://host/a.jpg 200 15023 12.3ms pipeline; hit`.
    static func line(_ entry: Entry) -> String {
        var parts = [entry.client]
        if let request = entry.request {
            parts += [request.method, shown(request.target)]
        } else {
            parts.append("-")
        }
        parts += [String(entry.status), String(entry.bytes), JSONText.thousandths(entry.milliseconds) + "ms"]
        if let note = entry.note { parts.append(note) }
        return parts.joined(separator: " ")
    }

    /// The target with its source readable and without credentials; a source that is no URL is left out. Everything else
    /// in a target is visible ASCII, so that a line stays one line.
    static func shown(_ target: String) -> String {
        guard let route = try? Route(target) else {
            return target.split(separator: "/").first.map { "/" + $0.prefix(16) + "/…" } ?? "/"
        }
        switch route {
        case .health: return "/health"
        case .original(_, let source): return "/original/" + redacted(source)
        case .variant(_, _, let source):
            let recipe = target.split(separator: "/", omittingEmptySubsequences: false)[3]
            return "/variant/\(recipe)/" + redacted(source)
        }
    }

    private static func redacted(_ source: String) -> String { (try? SourceURL(source))?.redacted ?? "…" }
}
