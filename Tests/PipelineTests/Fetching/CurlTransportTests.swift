import Glibc
import Pipeline
import Synchronization
import TestSupport
import Testing

/// Runs `body` with an origin on loopback and a transport that may reach it; both are gone afterwards.
func withOrigin(
    _ configure: (inout FetchConfiguration) -> Void = { _ in },
    handler: @escaping @Sendable (OriginRequest) -> OriginReply,
    _ body: (LoopbackOrigin, CurlTransport) async throws -> Void
) async throws {
    let origin = try LoopbackOrigin(handler: handler)
    defer { origin.stop() }
    var configuration = FetchConfiguration()
    configuration.allowPrivateAddresses = .all
    // Deadlines that a busy machine does not exceed. Tests of a deadline set their own.
    configuration.connectTimeout = .seconds(120)
    configuration.headTimeout = .seconds(120)
    configuration.stallTimeout = .seconds(120)
    configuration.totalTimeout = .seconds(120)
    configure(&configuration)
    let transport = CurlTransport(configuration)
    defer { transport.shutdown() }
    try await body(origin, transport)
}

/// The error of a fetch that must fail.
func failure(_ transport: any Transport, _ url: String, fields: [HeaderField] = []) async throws -> FetchError {
    let request = FetchRequest(url: try SourceURL(url), fields: fields)
    return try #require(await #expect(throws: FetchError.self) { _ = try await transport.fetch(request) })
}

struct CurlTransportTests {
    @Test func `a response comes with status, end-to-end fields, body and times`() async throws {
        try await withOrigin { _ in
            .response(
                200,
                [
                    "ETag": "\"a\"", "X-Twice": "one", "x-twice": "two", "Connection": "keep-alive, X-Hop",
                    "X-Hop": "gone", "Keep-Alive": "timeout=5",
                ], body: Array("hello".utf8))
        } _: { origin, transport in
            let url = try SourceURL(origin.url("/a?b=%7e"))
            let response = try await transport.fetch(FetchRequest(url: url, fields: [HeaderField("X-Asked", "yes")]))
            #expect(response.status == 200)
            #expect(response.body == Array("hello".utf8))
            #expect(response.fields.map(\.name) == ["ETag", "X-Twice", "x-twice", "Date", "Content-Length"])
            #expect(response.finalURL == url)
            #expect(response.redirects.isEmpty)
            #expect(response.requestTime <= response.responseTime)
            let request = try #require(origin.requests.first)
            #expect(request.target == "/a?b=%7e")
            #expect(request["x-asked"] == "yes")
            #expect(request["accept-encoding"] == nil)
            #expect(request["user-agent"] == "image-pipeline")
        }
    }

    @Test(arguments: [204, 304, 404, 410, 429, 500, 503, 599])
    func `every final status is a value`(status: Int) async throws {
        try await withOrigin { _ in
            .response(status)
        } _: { origin, transport in
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            #expect(response.status == status)
        }
    }

    @Test func `interim responses are skipped`() async throws {
        try await withOrigin { _ in
            .raw(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\n\r\nok"
            )
        } _: { origin, transport in
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            #expect(response.status == 200)
            #expect(response.fields == [HeaderField("Content-Length", "2"), HeaderField("X-A", "1")])
        }
    }

    @Test func `chunks are joined, the content coding is kept, trailers are left out`() async throws {
        try await withOrigin { _ in
            .raw(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
                    + "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Late: 1\r\n\r\n")
        } _: { origin, transport in
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            #expect(response.body == Array("abcde".utf8))
            #expect(response.fields == [HeaderField("Content-Encoding", "gzip")])
        }
    }

    @Test(arguments: [
        ("a short body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"),
        ("a chunk cut off", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
        ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        ("no number as length", "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nabc"),
        ("a part nobody asked for", "HTTP/1.1 206 Partial\r\nContent-Length: 1\r\n\r\na"),
        ("switched protocols", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        ("no HTTP at all", "hello there, this is not HTTP\r\n"),
    ])
    func `an origin that breaks the protocol is an error`(name: String, text: String) async throws {
        try await withOrigin { _ in
            .raw(text)
        } _: { origin, transport in
            let error = try await failure(transport, origin.url("/"))
            #expect([.protocolViolation, .truncated].contains(error.code), "\(name): \(error)")
            #expect(error.message.contains(origin.url("/")))
        }
    }

    @Test func `a closed connection without an answer is an error`() async throws {
        try await withOrigin { _ in
            .close
        } _: { origin, transport in
            let code = try await failure(transport, origin.url("/")).code
            #expect(code == .transport)
        }
    }

    @Test func `an endless chunked body ends at the byte limit`() async throws {
        try await withOrigin {
            $0.byteLimit = 100_000
        } handler: { _ in
            let chunk = Array("1000\r\n".utf8) + [UInt8](repeating: 65, count: 4096) + Array("\r\n".utf8)
            return .raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", then: [.endless(chunk)])
        } _: { origin, transport in
            let error = try await failure(transport, origin.url("/"))
            #expect(error.code == .tooLarge)
            #expect(error.message.contains("100000"))
        }
    }

    @Test func `an announced length over the limit ends the transfer before its body`() async throws {
        try await withOrigin {
            $0.byteLimit = 10
        } handler: { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", then: [.hang])
        } _: { origin, transport in
            let code = try await failure(transport, origin.url("/")).code
            #expect(code == .tooLarge)
        }
    }

    @Test func `a body that stops arriving is stalled`() async throws {
        try await withOrigin {
            $0.stallTimeout = .seconds(0.2)
        } handler: { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nabc", then: [.hang])
        } _: { origin, transport in
            let code = try await failure(transport, origin.url("/")).code
            #expect(code == .stalled)
        }
    }

    @Test func `a head that does not come, and a fetch over its total, time out`() async throws {
        try await withOrigin {
            $0.headTimeout = .seconds(0.2)
        } handler: { _ in
            .hang
        } _: { origin, transport in
            let error = try await failure(transport, origin.url("/"))
            #expect(error.code == .timeout)
            #expect(error.message.contains("fetch.headerSeconds"))
        }
        try await withOrigin {
            $0.totalTimeout = .seconds(0.2)
        } handler: { _ in
            .hang
        } _: { origin, transport in
            let message = try await failure(transport, origin.url("/")).message
            #expect(message.contains("fetch.totalSeconds"))
        }
    }

    @Test func `loopback is refused by default, whatever its spelling`() async throws {
        let origin = try LoopbackOrigin { _ in .response(200) }
        defer { origin.stop() }
        let transport = CurlTransport()
        defer { transport.shutdown() }
        for host in ["127.0.0.1", "localhost", "0x7f000001", "2130706433", "0177.1", "[::ffff:127.0.0.1]", "0"] {
            let error = try await failure(transport, "http://\(host):\(origin.port)/")
            #expect(error.code == .refusedAddress, "\(host): \(error)")
        }
        #expect(origin.requests.isEmpty)
    }

    @Test func `a listed address and port is reached, another port is not`() async throws {
        let origin = try LoopbackOrigin { _ in .response(200) }
        defer { origin.stop() }
        let other = try LoopbackOrigin { _ in .response(200) }
        defer { other.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = try AddressRule(["127.0.0.1:\(origin.port)"])
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
        #expect(response.status == 200)
        let code = try await failure(transport, other.url("/")).code
        #expect(code == .refusedAddress)
    }

    @Test func `an origin that is down is unreachable, a name without address unresolvable`() async throws {
        let port = try RefusingPort()
        defer { withExtendedLifetime(port) {} }
        let url = port.url("/")
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        let code = try await failure(transport, url).code
        #expect(code == .unreachable)
        let error = try await failure(transport, "http://user:secret@nowhere.invalid/")
        #expect([.unresolvable, .connectTimeout].contains(error.code))
        #expect(!error.message.contains("secret"))
    }

    @Test func `credentials in the URL are sent as Basic, not shown`() async throws {
        try await withOrigin { _ in
            .response(200)
        } _: { origin, transport in
            let url = try SourceURL("http://us%65r:p%40ss@127.0.0.1:\(origin.port)/")
            let response = try await transport.fetch(FetchRequest(url: url))
            #expect(origin.requests.first?["authorization"] == "Basic dXNlcjpwQHNz")
            #expect(!"\(response.finalURL)".contains("p%40ss"))
        }
    }

    @Test func `a failed TLS handshake is an error of its own`() async throws {
        try await withOrigin { _ in
            .response(200)
        } _: { origin, transport in
            let error = try await failure(transport, "https://127.0.0.1:\(origin.port)/")
            #expect(error.code == .tls, "\(error)")
        }
    }

    @Test func `connections are reused`() async throws {
        let ports = Mutex(0)
        try await withOrigin { _ in
            ports.withLock { $0 += 1 }
            return .response(200, body: Array("x".utf8))
        } _: { origin, transport in
            for _ in 0..<5 { _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/")))) }
            #expect(ports.withLock { $0 } == 5)
            // libcurl opens a new one for what lay idle for two minutes, as on a very busy machine.
            #expect(origin.connections < 5)
        }
    }

    @Test func `many transfers keep to the limit per origin and all end`() async throws {
        let current = Mutex((now: 0, most: 0))
        try await withOrigin {
            $0.maxConcurrentTransfersPerHost = 3
        } handler: { _ in
            current.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            sched_yield()
            current.withLock { $0.now -= 1 }
            return .response(200, body: [1, 2, 3])
        } _: { origin, transport in
            let url = try SourceURL(origin.url("/"))
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<100 { group.addTask { try await transport.fetch(FetchRequest(url: url)).body.count } }
                var total = 0
                for try await count in group { total += count }
                #expect(total == 300)
            }
            #expect(current.withLock { $0.most } <= 3)
            #expect(origin.connections <= 3)
        }
    }

    @Test func `progress tells what has arrived of how much`() async throws {
        let seen = Mutex<[Int]>([])
        try await withOrigin { _ in
            .response(200, body: [UInt8](repeating: 1, count: 300_000))
        } _: {
            origin, transport in
            _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/")))) { received, expected in
                seen.withLock { $0.append(received) }
                #expect(expected == 300_000)
            }
        }
        let values = seen.withLock { $0 }
        #expect(values == values.sorted())
        #expect(values.last == 300_000)
        #expect(values.count > 2)
    }

    @Test func `cancelling a task ends its transfer`() async throws {
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
        try await withOrigin { _ in
            arrived.yield()
            return .hang
        } _: { origin, transport in
            let url = try SourceURL(origin.url("/"))
            let task = Task { try await transport.fetch(FetchRequest(url: url)) }
            for await _ in arrivals { break }
            task.cancel()
            let error = await #expect(throws: FetchError.self) { _ = try await task.value }
            #expect(error?.code == .cancelled)
        }
    }

    @Test func `shutting down ends transfers under way and refuses later ones`() async throws {
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
        try await withOrigin { _ in
            arrived.yield()
            return .hang
        } _: { origin, transport in
            let url = try SourceURL(origin.url("/"))
            let task = Task { try await transport.fetch(FetchRequest(url: url)) }
            for await _ in arrivals { break }
            transport.shutdown()
            let error = await #expect(throws: FetchError.self) { _ = try await task.value }
            #expect(error?.code == .cancelled)
            let code = try await failure(transport, origin.url("/")).code
            #expect(code == .cancelled)
        }
    }

    @Test func `a request field with a line break is refused`() async throws {
        try await withOrigin { _ in
            .response(200)
        } _: { origin, transport in
            let error = try await failure(transport, origin.url("/"), fields: [HeaderField("X-A", "a\r\nX-B: b")])
            #expect(error.code == .protocolViolation)
            #expect(origin.requests.isEmpty)
        }
    }
}
