import PipelineFetching
import PipelineSupport
import Synchronization

/// A line for each request. A thread of its own writes the lines: stderr and stdout may be pipes that their readers do not
/// empty, and the event loops must not wait for them. Lines beyond those waiting are dropped and counted.
package final class RequestLog: Sendable {
    /// The part of an answer that is recorded.
    package struct Answer: Sendable {
        package var status: Int
        package var bytes: Int
        package var note: String?
        /// The trace's identifier; nil if only the request may tell it.
        package var traceID: String?
        /// nil for answers that are no pictures.
        package var picture: AnswerPicture?

        package init(_ response: ServerResponse, isHead: Bool = false) {
            (status, bytes) = (response.status, isHead ? 0 : response.length)
            (note, traceID, picture) = (response.note, response.traceID, response.picture)
        }

        package init(_ hit: PreparedAnswer) {
            (status, bytes, note, picture) = (hit.status, hit.length, hit.note, hit.picture)
        }
    }

    package struct Entry: Sendable {
        /// The client's address.
        package var client: String
        /// nil if what came was not a valid request.
        package var request: ServerRequest?
        package var answer: Answer
        package var milliseconds: Double
        /// When the answer began, in Unix seconds.
        package var time = 0.0
        /// `HTTP/1.1`; nil if what came was not a valid request.
        package var version: String?

        package init(client: String, request: ServerRequest?, _ answer: Answer, milliseconds: Double) {
            (self.client, self.request, self.answer, self.milliseconds) = (client, request, answer, milliseconds)
        }
    }

    private let thread = OwnedThreads(count: 1)
    private let waiting = Atomic<Int>(0)
    private let dropped = Atomic<Int>(0)
    private let output: @Sendable (Entry) -> Void
    private let reportLost: @Sendable (Int) -> Void
    private static let limit = 4096

    /// - Parameters:
    ///   - write: writes one line; may block.
    ///   - reportLost: called with the number of lines that were dropped since the previous one; may block.
    package init(write: @escaping @Sendable (Entry) -> Void, reportLost: @escaping @Sendable (Int) -> Void) {
        output = write
        self.reportLost = reportLost
    }

    /// Hands an entry over.
    package func write(_ entry: Entry) {
        guard waiting.load(ordering: .relaxed) < Self.limit else {
            dropped.add(1, ordering: .relaxed)
            return
        }
        waiting.add(1, ordering: .relaxed)
        thread.submit { [self] in
            waiting.subtract(1, ordering: .relaxed)
            let lost = dropped.exchange(0, ordering: .relaxed)
            if lost > 0 { reportLost(lost) }
            output(entry)
        }
    }

    /// Returns when everything handed over is written.
    package func flush() async { await thread.run {} }

    /// `127.0.0.1 GET /variant/thumbnail:300/http://host/a.jpg 200 15023 12.3ms pipeline; hit webp 300x200 1a2b3c4d5e6f`.
    package static func line(_ entry: Entry) -> String {
        var parts = [entry.client]
        if let request = entry.request {
            parts += [request.method, shown(request.target)]
        } else {
            parts.append("-")
        }
        parts += [
            String(entry.answer.status), String(entry.answer.bytes), JSONText.thousandths(entry.milliseconds) + "ms",
        ]
        if let note = entry.answer.note { parts.append(note) }
        if let picture = entry.answer.picture { parts.append(picture.text) }
        return parts.joined(separator: " ")
    }

    /// The target with its source readable and without credentials; a source that is neither a URL, `name:path` nor a path is
    /// left out. Everything else in a target is visible ASCII, so that a line stays one line.
    package static func shown(_ target: String) -> String {
        guard let route = try? Route(target) else {
            return target.split(separator: "/").first.map { "/" + $0.prefix(16) + "/…" } ?? "/"
        }
        switch route {
        case .health: return "/health"
        case .purge: return "/purge"
        case .source(let source, _): return "/source/" + redacted(source)
        case .page: return String(target.prefix { $0 != "?" })
        case .ready: return "/ready"
        case .metrics: return "/metrics"
        case .info(_, let source): return "/info/" + redacted(source)
        case .original(_, let source): return "/original/" + redacted(source)
        case .variant(_, _, let source):
            let recipe = SourceURL.hidingSecrets(
                String(target.split(separator: "/", omittingEmptySubsequences: false)[3]))
            return "/variant/\(recipe)/" + redacted(source)
        }
    }

    private static func redacted(_ source: String) -> String {
        if let url = try? SourceURL(source) { return url.redacted }
        // A path below the default base. Both characters together may belong to credentials.
        let first = source.utf8.prefix { $0 != UInt8(ascii: "/") }
        let isPath = !first.contains(UInt8(ascii: ":")) && !(source.contains(":") && source.contains("@"))
        guard isPath || BaseURLs.mayName(source) || PageSample(source: source) != nil else { return "…" }
        let plain = source.utf8.reduce(into: "") { shown, byte in
            let isPlain = byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"")
            shown +=
                isPlain ? String(UnicodeScalar(byte)) : String(decoding: SourceURL.percentEncoded(byte), as: UTF8.self)
        }
        return SourceURL.redacting(plain)
    }
}
