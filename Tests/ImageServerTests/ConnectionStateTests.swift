import HTTPCaching
import NIOCore
import NIOHTTP1
import Testing

@testable import ImageServer
@testable import ImageServerNIO

@Suite struct ConnectionStateTests {
    /// A connection, what it asked for, and what a server does about it at once.
    private struct Bench {
        var state = ConnectionState()
        var log: [String] = []
        var wantsBody = false
        /// Targets that are answered at once.
        var hits: Set<String> = []
        var bodies: [[UInt8]] = []

        mutating func advance(_ action: ConnectionState.Action?) {
            if let action { perform(action) }
            while let action = state.next() { perform(action) }
        }

        private mutating func perform(_ action: ConnectionState.Action) {
            switch action {
            case .begin(let head):
                if hits.contains(head.uri) {
                    log.append("hit \(head.uri)")
                    return state.sends()
                }
                do {
                    let admission = try RequestAdmission(
                        method: head.method.rawValue, target: head.uri, version: (1, 1),
                        fields: head.headers.map { .init($0.name, $0.value) }, bodyLimit: 100)
                    let action = state.receive(admission, isBodyWanted: wantsBody, bodyLimit: 100)
                    if let action { perform(action) }
                } catch {
                    perform(state.refuse(error, isHead: head.method == .HEAD))
                }
            case .answer(let request, let number):
                log.append("answer \(number) \(request.target)")
                bodies.append(request.body)
            case .refuse(let problem, let isHead): log.append("refuse \(problem.kind.status)\(isHead ? " HEAD" : "")")
            case .rest: log.append("rest")
            case .read: log.append("read")
            case .linger: log.append("linger")
            case .close: log.append("close")
            case .abort: log.append("abort")
            }
        }

        mutating func receive(_ part: HTTPServerRequestPart) { advance(state.received(.part(part))) }

        /// A whole request.
        mutating func request(
            _ target: String, _ fields: HTTPHeaders = [:], method: HTTPMethod = .GET, body: [Int] = []
        ) {
            head(target, fields, method: method)
            for count in body { receive(.body(ByteBuffer(repeating: 7, count: count))) }
            receive(.end(nil))
        }

        mutating func head(_ target: String, _ fields: HTTPHeaders = [:], method: HTTPMethod = .GET) {
            var fields = fields
            fields.add(name: "Host", value: "a")
            receive(.head(HTTPRequestHead(version: .http1_1, method: method, uri: target, headers: fields)))
        }

        /// The channel asks for bytes.
        mutating func read() { if state.mayRead() { log.append("read") } }

        /// The site answers and the client takes it.
        mutating func answer() {
            guard let (_, keepsAlive) = state.answered() else { return }
            log.append(keepsAlive ? "sent" : "sent last")
            advance(state.sent())
        }
    }

    @Test func `pipelined requests are answered one at a time and in order`() {
        var bench = Bench()
        bench.hits = ["/hit"]
        for target in ["/1", "/hit", "/2"] { bench.request(target) }
        #expect(bench.log == ["answer 1 /1"])
        bench.answer()
        #expect(bench.log.dropFirst() == ["sent", "rest", "hit /hit"])
        bench.advance(bench.state.sent())
        #expect(bench.log.suffix(2) == ["rest", "answer 2 /2"])
        bench.answer()
        #expect(bench.log.suffix(2) == ["sent", "rest"])
    }

    @Test func `nothing is read while a request is answered`() {
        var bench = Bench()
        bench.read()
        bench.request("/1")
        bench.read()
        bench.request("/2")
        #expect(bench.log == ["read", "answer 1 /1"])
        bench.answer()
        #expect(bench.log.dropFirst(2) == ["sent", "rest", "answer 2 /2"])
        bench.answer()
        bench.advance(nil)
        #expect(bench.log.dropFirst(5) == ["sent", "rest", "read"])
    }

    @Test func `a client that pipelines without end is disconnected`() {
        var bench = Bench()
        bench.request("/1")
        for _ in 0..<ConnectionState.queueLimit / 2 { bench.request("/2") }
        #expect(bench.log == ["answer 1 /1"])
        bench.head("/2")
        #expect(bench.log.last == "close")
    }

    @Test func `a connection ends after the answer to a request that says so`() {
        var bench = Bench()
        bench.request("/1", ["Connection": "close"])
        bench.request("/2")
        bench.answer()
        #expect(bench.log == ["answer 1 /1", "sent last", "linger"])
        // Our side is closed. Requests that the client still sends are read and dropped.
        bench.request("/3")
        bench.read()
        bench.advance(bench.state.timeIsUp(isHeadBegun: true, idleSeconds: 60))
        #expect(bench.log.dropFirst(3) == ["read", "close"])
    }

    @Test func `a body is collected if it is wanted, and else dropped`() {
        var bench = Bench()
        bench.request("/1", ["Content-Length": "5"], method: .PUT, body: [2, 3])
        bench.answer()
        bench.wantsBody = true
        bench.head("/2", ["Content-Length": "5"], method: .PUT)
        bench.receive(.body(ByteBuffer(repeating: 7, count: 5)))
        bench.read()
        bench.receive(.end(nil))
        bench.answer()
        bench.request("/3")
        #expect(bench.bodies == [[], [7, 7, 7, 7, 7], []])
        #expect(bench.log.dropFirst(3) == ["read", "answer 2 /2", "sent", "rest", "answer 3 /3"])
    }

    @Test func `a body above the limit is refused, and nothing behind it is answered`() {
        var bench = Bench()
        bench.request("/1", ["Transfer-Encoding": "chunked"], method: .PUT, body: [60, 40])
        bench.answer()
        #expect(bench.log == ["answer 1 /1", "sent", "rest"])
        bench.request("/2", ["Transfer-Encoding": "chunked"], method: .PUT, body: [60, 41])
        bench.request("/3")
        #expect(bench.log.dropFirst(3) == ["refuse 413"])
        bench.advance(bench.state.sent())
        #expect(bench.log.last == "linger")
    }

    @Test func `what is no request is refused after the answers before it`() {
        var bench = Bench()
        bench.request("/1")
        bench.advance(bench.state.received(.refusal(Problem(.malformedRequest))))
        bench.request("/2")
        #expect(bench.log == ["answer 1 /1"])
        bench.answer()
        #expect(bench.log.dropFirst() == ["sent", "rest", "refuse 400"])
        var head = Bench()
        head.head("no path", method: .HEAD)
        #expect(head.log == ["refuse 400 HEAD"])
    }

    @Test func `a client that goes away ends everything`() {
        var bench = Bench()
        bench.request("/1")
        bench.request("/2")
        bench.state.closed()
        bench.answer()
        bench.request("/3")
        bench.advance(bench.state.timeIsUp(isHeadBegun: false, idleSeconds: 60))
        bench.advance(bench.state.drain(isHeadBegun: false))
        #expect(bench.log == ["answer 1 /1"])
        // In the middle of an answer.
        var sending = Bench()
        sending.hits = ["/hit"]
        sending.request("/hit")
        sending.state.closed()
        sending.advance(sending.state.sent())
        #expect(sending.log == ["hit /hit"])
    }

    @Test func `interim responses belong to the request that is being answered`() {
        var bench = Bench()
        bench.request("/1")
        #expect(bench.state.takesInterim(103, of: 1) && !bench.state.takesInterim(101, of: 1))
        #expect(!bench.state.takesInterim(200, of: 1))
        bench.answer()
        #expect(!bench.state.takesInterim(103, of: 1))
        bench.request("/2")
        #expect(!bench.state.takesInterim(103, of: 1) && bench.state.takesInterim(103, of: 2))
    }

    @Test func `time ends what the client does not end itself`() {
        func outcome(isHeadBegun: Bool = false, _ prepare: (inout Bench) -> Void) -> String? {
            var bench = Bench()
            bench.hits = ["/hit"]
            prepare(&bench)
            let before = bench.log.count
            bench.advance(bench.state.timeIsUp(isHeadBegun: isHeadBegun, idleSeconds: 60))
            return bench.log.count > before ? bench.log.last : nil
        }
        #expect(outcome { _ in } == "close")
        #expect(outcome(isHeadBegun: true) { _ in } == "refuse 408")
        #expect(outcome { $0.head("/1", ["Content-Length": "5"], method: .PUT) } == "refuse 408")
        #expect(outcome { $0.request("/1") } == nil)
        #expect(outcome { $0.request("/hit") } == "abort")
        #expect(outcome { $0.state = ConnectionState(refusal: Problem(.overloaded)) } == "refuse 503")
    }

    @Test func `a server that stops ends connections after the answer that they are giving`() {
        var idle = Bench()
        idle.advance(idle.state.drain(isHeadBegun: false))
        #expect(idle.log == ["rest"])
        // A request that was on its way is answered.
        idle.request("/1")
        idle.answer()
        #expect(idle.log.dropFirst() == ["answer 1 /1", "sent last", "linger"])

        var silent = Bench()
        silent.advance(silent.state.drain(isHeadBegun: false))
        silent.advance(silent.state.timeIsUp(isHeadBegun: false, idleSeconds: 60))
        #expect(silent.log == ["rest", "linger"])

        var arriving = Bench()
        arriving.advance(arriving.state.drain(isHeadBegun: true))
        #expect(arriving.log == [])

        var busy = Bench()
        busy.request("/1")
        busy.request("/2")
        busy.advance(busy.state.drain(isHeadBegun: false))
        busy.answer()
        #expect(busy.log == ["answer 1 /1", "sent last", "linger"])
    }

    @Test func `a connection without a place ends after one answer`() {
        var bench = Bench()
        bench.state = ConnectionState(refusal: Problem(.overloaded))
        bench.request("/health")
        bench.request("/health")
        bench.answer()
        #expect(bench.log == ["answer 1 /health", "sent last", "linger"])
    }
}
