import Glibc
import Synchronization
import TestSupport

@testable import pipectl

/// Carries out exchanges, each on a separate resource, with one server and one origin.
final class Conversation: Sendable {
    /// One that went otherwise than its table says.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Fields of every request of the client: fields that browsers and libraries send, and unknown directives, which
    /// must do no harm (RFC 9111 §5.2.3).
    private static let always: Lines = [
        "Accept": "*/*", "Accept-Language": "*", "Accept-Encoding": "gzip, deflate", "User-Agent": "conformance",
        "Sec-Fetch-Mode": "cors", "Pragma": "some-extension", "Cache-Control": "some-extension",
        "Described-As": "`max-age=\"1\"` (\\, %20; =\u{C3}\u{BC}), ",
    ]
    /// Not passed on, in lower case (RFC 9110 §7.6.1), with what `Connection` names.
    private static let hopByHop: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]
    private static let patience = Duration.seconds(30)

    private struct State {
        /// Unix seconds at which each exchange began.
        var starts: [Int: Int] = [:]
        /// The origin's requests, by exchange and request.
        var asked: [[Int]: [OriginRequest]] = [:]
    }

    private let exchanges: [Exchange]
    private let state: SharedState

    private final class SharedState: Sendable {
        let state = Mutex(State())
    }

    init(_ exchanges: [Exchange]) {
        self.exchanges = exchanges
        state = SharedState()
    }

    /// Carries out all exchanges, several at once if they cannot disturb each other.
    ///
    /// - Returns: the failures, in order.
    func failures(server: RunningServer) async throws -> [Failure] {
        let origin = try LoopbackOrigin { [exchanges, state] in Self.reply(to: $0, exchanges, state) }
        defer { origin.stop() }
        // An invalidation voids what is being stored in memory at that moment, of other resources too: requests that may
        // change something come last, one at a time.
        let changes = exchanges.indices.filter { index in
            exchanges[index].requests.contains { !["GET", "HEAD"].contains($0.method) }
        }
        let found = await failures(of: exchanges.indices.filter { !changes.contains($0) }, atOnce: 24, server, origin)
        return (found + (await failures(of: changes, atOnce: 1, server, origin))).sorted { $0.0 < $1.0 }.map(\.1)
    }

    private func failures(
        of indices: [Int], atOnce most: Int, _ server: RunningServer, _ origin: LoopbackOrigin
    ) async -> [(Int, Failure)] {
        await withTaskGroup(of: (Int, Failure?).self) { group in
            var found: [(Int, Failure)] = []
            for (place, index) in indices.enumerated() {
                if place >= most, case (let done, let failure?)? = await group.next() { found.append((done, failure)) }
                group.addTask {
                    do {
                        try await self.hold(index, server, origin)
                        return (index, nil)
                    } catch {
                        return (index, error as? Failure ?? Failure(description: "\(error)"))
                    }
                }
            }
            for await case (let done, let failure?) in group { found.append((done, failure)) }
            return found
        }
    }

    // MARK: The client

    private func hold(_ index: Int, _ server: RunningServer, _ origin: LoopbackOrigin) async throws {
        let exchange = exchanges[index]
        let start = Int(time(nil))
        state.state.withLock { $0.starts[index] = start }
        var held: [Int: [(name: String, value: String)]] = [:]
        for (place, request) in exchange.requests.enumerated() {
            let number = place + 1
            let target = RunningServer.original(origin.url("/\(index)\(request.path)"))
            let head = Self.head(target, request, number, start)
            let deadline = ContinuousClock.now + Self.patience
            var wrong: [String] = []
            var came: [RawResponse] = []
            while true {
                let client = try await RawClient.connect(server.port)
                client.send(head)
                came = RawResponse.all(in: await client.receivedToEnd(), heads: request.method == "HEAD")
                if case .reusedMeanwhile = request.outcome {
                    while asked(index, number).isEmpty, ContinuousClock.now < deadline { await Task.yield() }
                }
                wrong = mismatches(came, index, number, start, held)
                guard case .reusedSoon = request.outcome, !wrong.isEmpty, ContinuousClock.now < deadline else { break }
                await Task.yield()
            }
            guard wrong.isEmpty else { throw failure(wrong, came, index, number) }
            remember(request, number, start, &held)
        }
        for (place, request) in exchange.requests.enumerated() {
            guard let times = request.outcome.timesAsked, asked(index, place + 1).count != times else { continue }
            throw failure(["the origin was asked \(times) times in the end"], [], index, place + 1)
        }
    }

    private static func head(_ target: String, _ request: Request, _ number: Int, _ start: Int) -> [UInt8] {
        let own = text(request.sends, start)
        var lines = request.isBare ? [] : text(always, start)
        lines.removeAll { line in
            line.name != "Cache-Control" && own.contains { $0.name.lowercased() == line.name.lowercased() }
        }
        lines += [("Request", "\(number)")] + own
        let fields = lines.map { "\($0.name): \($0.value)\r\n" }.joined()
        let framing = ["GET", "HEAD"].contains(request.method) ? "" : "Content-Length: 3\r\n"
        let head = "\(request.method) \(target) HTTP/1.1\r\nHost: test\r\n\(fields)\(framing)Connection: close\r\n\r\n"
        return bytes(head + (framing.isEmpty ? "" : "abc"))
    }

    // MARK: What must come

    private func mismatches(
        _ came: [RawResponse], _ index: Int, _ number: Int, _ start: Int,
        _ held: [Int: [(name: String, value: String)]]
    ) -> [String] {
        let exchange = exchanges[index]
        let request = exchange.requests[number - 1]
        guard let answer = came.last, answer.status >= 200 else { return ["an answer"] }
        var wrong: [String] = []
        func expect(_ holds: Bool, _ text: @autoclosure () -> String) { if !holds { wrong.append(text()) } }

        let asked = asked(index, number)
        if let times = request.outcome.timesAsked {
            expect(asked.count == times, times == 0 ? "no request to the origin" : "\(times) request to the origin")
        }
        for asked in asked {
            for (name, value) in Self.text(request.asks, start) {
                expect(asked[name] == value, "a request to the origin with \(name): \(value)")
            }
            for name in request.asksNot { expect(asked[name] == nil, "a request to the origin without \(name)") }
            if case .confirmed(let earlier) = request.outcome {
                let conditions = Self.conditions(exchange.requests[earlier - 1].answer, start)
                for (name, value) in conditions {
                    expect(asked[name] == value, "a request to the origin with \(name): \(value)")
                }
            }
        }
        let source = request.outcome.answer ?? number
        var expected = held[source] ?? []
        if case .refused(let status, _) = request.outcome {
            expect(answer.status == status, "status \(status)")
            for name in ["answer", "etag", "last-modified"] { expect(answer[name] == nil, "no \(name)") }
            return wrong
        }
        if case .fresh = request.outcome { expected = Self.lines(request.answer, number, start) }
        if case .confirmed = request.outcome {
            expected = Self.merged(expected, Self.lines(request.answer, number, start))
        }
        let status = request.status ?? exchange.requests[source - 1].answer.status
        expect(answer.status == status, "status \(status)")
        if ![204, 304].contains(status), request.method != "HEAD" {
            let body = request.body ?? Self.body(exchange, index, source)
            expect(answer.text == body, "the body ‘\(body)’")
        }
        if ![206, 304, 416].contains(status) {
            for (name, values) in Self.visible(expected)
            where !request.hides.contains(where: { $0.lowercased() == name }) {
                expect(answer.values(name) == values, "\(name): \(values.joined(separator: " | "))")
            }
        }
        for (name, value) in Self.text(request.shows, start) {
            expect(answer.values(name).contains(value), "\(name): \(value)")
        }
        for name in request.hides { expect(answer[name] == nil, "no \(name)") }
        if let age = request.age {
            expect(answer["age"].flatMap { Int($0) }.map { $0 >= age } ?? false, "Age of at least \(age)")
        }
        let interim = came.dropLast()
        expect(interim.map(\.status) == request.interim.map(\.status), "interim \(request.interim.map(\.status))")
        for (received, wanted) in zip(interim, request.interim) {
            for (name, value) in Self.text(wanted.fields, start) {
                expect(received[name] == value, "interim \(wanted.status) with \(name): \(value)")
            }
        }
        return wrong
    }

    private func failure(_ wrong: [String], _ came: [RawResponse], _ index: Int, _ number: Int) -> Failure {
        let exchange = exchanges[index]
        let got = came.last.map { answer in
            "\(came.map { "\($0.status)" }.joined(separator: ", ")) with "
                + answer.lines.map { "\($0.name): \($0.value)" }.joined(separator: "; ") + "; body ‘\(answer.text)’"
        }
        let requests = asked(index, number).map { request in
            "\(request.method) with " + request.lines.map { "\($0.name): \($0.value)" }.joined(separator: "; ")
        }
        return Failure(
            description: """
                ‘\(exchange.name)’ (\(exchange.weight.name), RFC \(exchange.clause)), \
                request \(number) of \(exchange.requests.count), expected to be \
                \(exchange.requests[number - 1].outcome): expected \(wrong.joined(separator: ", ")).
                Came: \(got ?? "nothing").
                The origin was asked: \(requests.isEmpty ? "nothing" : requests.joined(separator: " / ")).
                """)
    }

    private func remember(
        _ request: Request, _ number: Int, _ start: Int, _ held: inout [Int: [(name: String, value: String)]]
    ) {
        let lines = Self.lines(request.answer, number, start)
        switch request.outcome {
        // The origin answers this one too, after the client was answered.
        case .fresh, .reusedMeanwhile: held[number] = lines
        case .confirmed(let earlier): held[earlier] = Self.merged(held[earlier] ?? [], lines)
        case .reused, .reusedSoon, .standsIn, .refused: break
        }
    }

    /// The conditions that an answer's validators make.
    private static func conditions(_ answer: OriginResponse, _ start: Int) -> [(name: String, value: String)] {
        text(answer.fields, start).compactMap { name, value in
            switch name.lowercased() {
            case "etag": ("if-none-match", value)
            case "last-modified": ("if-modified-since", value)
            default: nil
            }
        }
    }

    /// The stored answer after a 304 (RFC 9111 §3.2).
    private static func merged(
        _ stored: [(name: String, value: String)], _ new: [(name: String, value: String)]
    ) -> [(name: String, value: String)] {
        let changed = new.filter {
            !["content-length", "content-type", "content-encoding", "content-range"].contains($0.name.lowercased())
        }
        let names = Set(changed.map { $0.name.lowercased() })
        return stored.filter { !names.contains($0.name.lowercased()) } + changed
    }

    /// Values by lower-case name, for the fields that a client sees unchanged.
    private static func visible(_ lines: [(name: String, value: String)]) -> [String: [String]] {
        var values: [String: [String]] = [:]
        for line in lines { values[line.name.lowercased(), default: []].append(line.value) }
        let named = (values["connection"] ?? []).flatMap {
            $0.lowercased().split(whereSeparator: { ", ".contains($0) })
        }
        let left = hopByHop.union(named.map(String.init)).union(["age", "via", "content-length"])
        return values.filter { !left.contains($0.key) }
    }

    private func asked(_ index: Int, _ number: Int) -> [OriginRequest] {
        state.state.withLock { $0.asked[[index, number]] ?? [] }
    }

    // MARK: The origin

    private static func reply(to request: OriginRequest, _ exchanges: [Exchange], _ state: SharedState) -> OriginReply {
        let digits = request.target.dropFirst().prefix { $0.isNumber }
        guard let index = Int(digits), exchanges.indices.contains(index),
            let number = request["request"].flatMap({ Int($0) }),
            exchanges[index].requests.indices.contains(number - 1)
        else { return .response(500, [:], body: Array("no such exchange".utf8)) }
        let start = state.state.withLock { state in
            state.asked[[index, number], default: []].append(request)
            return state.starts[index] ?? 0
        }
        let exchange = exchanges[index]
        var answer = exchange.requests[number - 1].answer
        if answer.isMissing { return .close }
        if case .confirmed(let earlier) = exchange.requests[number - 1].outcome {
            let conditions = conditions(exchange.requests[earlier - 1].answer, start)
            if !conditions.contains(where: { request[$0.name] == $0.value }) {
                answer = OriginResponse(999, body: "there was no condition that this could be said of")
            }
        }
        let body = [204, 304].contains(answer.status) ? "" : answer.body ?? Self.body(exchange, index, number)
        var head = answer.interim.map { interim in
            "HTTP/1.1 \(interim.status) Interim\r\n" + written(text(interim.fields, start)) + "\r\n"
        }.joined()
        head += "HTTP/1.1 \(answer.status) Whatever\r\n" + written(lines(answer, number, start))
        let names = Set(answer.fields.all.map { $0.name.lowercased() })
        let hasFraming = names.contains("content-length") || names.contains("transfer-encoding")
        if hasFraming {
            // The table's length may differ from the body's. Other requests must not read the rest.
            head += "Connection: close\r\n"
        } else if ![204, 304].contains(answer.status) {
            head += "Content-Length: \(bytes(body).count)\r\n"
        }
        let sent = request.method == "HEAD" ? "" : body
        return OriginReply(parts: [.bytes(bytes(head + "\r\n" + sent))], keepsAlive: !hasFraming)
    }

    /// An answer's fields as the origin sends them, but for the framing.
    private static func lines(_ answer: OriginResponse, _ number: Int, _ start: Int) -> [(name: String, value: String)]
    {
        var lines = text(answer.fields, start) + [("Answer", "\(number)")]
        if !lines.contains(where: { $0.name.lowercased() == "date" }) { lines.append(("Date", OriginDate.text(start))) }
        return lines
    }

    private static func body(_ exchange: Exchange, _ index: Int, _ number: Int) -> String {
        exchange.requests[number - 1].answer.body ?? "answer \(number) of exchange \(index)"
    }

    // MARK: Text

    private static func text(_ lines: Lines, _ start: Int) -> [(name: String, value: String)] {
        lines.all.map { line in
            switch line.value {
            case .text(let text): (line.name, text)
            case .at(let seconds): (line.name, OriginDate.text(start + seconds))
            case .at850(let seconds): (line.name, OriginDate.text850(start + seconds))
            }
        }
    }

    private static func written(_ lines: [(name: String, value: String)]) -> String {
        lines.map { "\($0.name): \($0.value)\r\n" }.joined()
    }

    /// A scalar a byte.
    private static func bytes(_ text: String) -> [UInt8] {
        text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}

extension Request.Outcome {
    /// The number of requests to the origin; nil if it depends on the time.
    fileprivate var timesAsked: Int? {
        switch self {
        case .fresh, .confirmed, .standsIn, .reusedMeanwhile: 1
        case .reused: 0
        case .reusedSoon: nil
        case .refused(_, let times): times
        }
    }

    /// The answer that comes; nil for the request's own and for none.
    fileprivate var answer: Int? {
        switch self {
        case .reused(let answer), .confirmed(let answer), .standsIn(let answer), .reusedMeanwhile(let answer),
            .reusedSoon(let answer):
            answer
        case .fresh, .refused: nil
        }
    }
}
