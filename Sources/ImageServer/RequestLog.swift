import PipelineFetching
import PipelineSupport
import Synchronization

/// Writes one line per request on a separate thread. stderr and stdout may be pipes with slow readers, and the event
/// loops must not wait for them. Lines that exceed the limit of the queue are dropped and counted.
package final class RequestLog: Sendable {
    /// The part of a response that is logged.
    package struct Response: Sendable {
        package var status: Int
        package var bytes: Int
        package var note: String?
        /// The trace identifier, or nil if the identifier must be taken from the request.
        package var traceID: String?
        /// The picture, or nil if the response is not a picture.
        package var picture: AnswerPicture?
        /// The route of the request, or nil if the path belongs to no route.
        package var route: Route?

        package init(_ response: ServerResponse, isHead: Bool = false) {
            (status, bytes) = (response.status, isHead ? 0 : response.length)
            (note, traceID, picture, route) = (response.note, response.traceID, response.picture, response.route)
        }

        package init(_ hit: PreparedAnswer) {
            (status, bytes, note) = (hit.status, hit.length, hit.note)
            (picture, route) = (hit.picture, hit.route)
        }
    }

    package struct Entry: Sendable {
        /// The client's address.
        package var client: String
        /// The request, or nil if the bytes received were not a valid request.
        package var request: ServerRequest?
        package var answer: Response
        package var milliseconds: Double
        /// The time when the response began, in Unix seconds.
        package var time = 0.0
        /// The HTTP version, for example `HTTP/1.1`, or nil if the bytes received were not a valid request.
        package var version: String?

        package init(client: String, request: ServerRequest?, _ answer: Response, milliseconds: Double) {
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
    ///   - write: A closure that writes one line. May block.
    ///   - reportLost: A closure that is called with the number of lines dropped since the previous line. May block.
    package init(write: @escaping @Sendable (Entry) -> Void, reportLost: @escaping @Sendable (Int) -> Void) {
        output = write
        self.reportLost = reportLost
    }

    /// Queues an entry for writing.
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

    /// Waits until all queued entries have been written.
    package func flush() async { await thread.run {} }

    /// Returns the line of an entry, for example `127.0.0.1 GET /variant/thumbnail:300/http://host/a.jpg 200 15023
    /// 12.3ms pipeline; hit webp 300x200 1a2b3c4d5e6f`.
    package static func line(_ entry: Entry) -> String {
        var parts = [entry.client]
        if let request = entry.request {
            parts += [request.method, shown(request.target, entry.answer.route)]
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

    /// Returns a target with its source decoded and without credentials. A source that is not a URL, `name:path` or a
    /// path is omitted. Everything else in a target is visible ASCII, so the result contains no line breaks.
    package static func shown(_ target: String, _ route: Route?) -> String {
        let target = RequestTarget(AccessToken.split(target)?.target ?? target)
        return switch route {
        case .picture(let grammar): grammar.shown(target)
        case .operation(let name): name.shown(target) ?? hidden(target)
        case nil: hidden(target)
        }
    }

    /// Returns the beginning of a target that cannot be parsed.
    static func hidden(_ target: RequestTarget) -> String {
        target.text.split(separator: "/").first.map { "/" + $0.prefix(16) + "/…" } ?? "/"
    }

    static func redacted(_ source: String) -> String {
        if let url = try? SourceURL(source) { return url.redacted }
        // A path relative to the default base. A source that contains both `:` and `@` may contain credentials.
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
