import Glibc
import Synchronization
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Requests that no well-behaved client sends: each is answered with an error or not at all, and none reaches an
    /// origin.
    @Suite struct ServeAbuse {
        /// A server, and an origin that must not be asked.
        private static func with(
            _ settings: [String] = [], _ body: (RunningServer, LoopbackOrigin) async throws -> Void
        ) async throws {
            let picture = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            let origin = try LoopbackOrigin { _ in
                .response(200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=1000"], body: picture)
            }
            defer { origin.stop() }
            try await RunningServer.with(["server.idleSeconds=2"] + settings) { server in
                try await body(server, origin)
                #expect(try await server.ask("/health").status == 200)
            }
        }

        /// Sends each text on a new connection, and expects at most one answer, an error, and the end.
        private static func expectRefused(
            _ texts: [(String, String)], _ server: RunningServer, _ origin: LoopbackOrigin
        ) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (name, text) in texts {
                    group.addTask {
                        let client = try await RawClient.connect(server.port)
                        // A scalar a byte, so that any byte can be sent.
                        client.send(text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) })
                        let answers = RawResponse.all(in: await client.receivedToEnd())
                        #expect(answers.count <= 1, "\(name)")
                        if let answer = answers.first {
                            // An unknown coding or version has a separate status; the connection is closed.
                            let isRefused = (400..<500).contains(answer.status) || [501, 505].contains(answer.status)
                            #expect(isRefused && answer.problem != nil, "\(name): \(answer.status)")
                            #expect(answer["connection"] == "close", "\(name)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(origin.requests.isEmpty)
        }

        /// A request that must not be found within another one's bytes.
        private static func hidden(_ origin: LoopbackOrigin) -> String {
            RunningServer.head(RunningServer.original(origin.url("/hidden")), closes: true)
        }

        @Test func `a body whose length can be read in two ways is refused, with what follows`() async throws {
            try await Self.with { server, origin in
                let hidden = Self.hidden(origin)
                let lengths = [
                    "Content-Length: 6\r\nTransfer-Encoding: chunked",
                    "Transfer-Encoding: chunked\r\nContent-Length: 6",
                    "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 0\r\nContent-Length: 44",
                    "Content-Length: 5, 6", "Content-Length: +5", "Content-Length: -5", "Content-Length: 0x5",
                    "Content-Length: 5 5", "Content-Length: 5a", "Content-Length: 1e1", "Content-Length:",
                    "Content-Length: 99999999999999999999999", "Content-Length: 18446744073709551617",
                    "Content-Length : 5", "Content-Length\t: 5", " Content-Length: 5", "Content-\0Length: 5",
                    "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked, identity",
                    "Transfer-Encoding: identity, chunked", "Transfer-Encoding: gzip, chunked",
                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
                    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding : chunked",
                    "Transfer-Encoding: \"chunked\"", "Transfer-Encoding: chunked;q=1", "Transfer-Encoding: ch\0unked",
                    "Transfer-Encoding:\u{B}chunked", "Transfer-Encoding: chunked\u{A0}",
                    "X: y\rTransfer-Encoding: chunked", "Transfer-Encoding\r\n: chunked",
                ]
                try await Self.expectRefused(
                    lengths.map { ($0, "POST /health HTTP/1.1\r\nHost: a\r\n\($0)\r\n\r\n0\r\n\r\n" + hidden) }, server,
                    origin)
            }
        }

        @Test func `chunks that are malformed are refused, with what follows`() async throws {
            try await Self.with { server, origin in
                let hidden = Self.hidden(origin)
                let chunks = [
                    "-1\r\n", "0x5\r\nabcde\r\n0\r\n\r\n", "5 5\r\nabcde\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n",
                    "10000000000000000\r\n", "5\r\nabcdefg\r\n0\r\n\r\n", "5\r\nabcde0\r\n\r\n", "\r\n0\r\n\r\n",
                    "g\r\n", "5\rabcde\r\n0\r\n\r\n", "5;a=\0\r\nabcde\r\n0\r\n\r\n",
                ]
                try await Self.expectRefused(
                    chunks.map {
                        ($0, "POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\($0)" + hidden)
                    },
                    server, origin)
            }
        }

        @Test func `malformed and huge request lines and heads are refused`() async throws {
            try await Self.with { server, origin in
                let target = RunningServer.original(origin.url("/a.jpg"))
                let long = String(repeating: "a", count: 70_000)
                let lines = [
                    "GET \(target)\r\n\r\n", "GET\t\(target)\tHTTP/1.1",
                    "get \(target) HTTP/1.1",
                    "GET \(target) HTTP/1.1 x", "GET \(target) HTTP/1.", "GET \(target) HTTP/11.1",
                    "GET \(target) HTTP/3.0",
                    "GET \(target) http/1.1", "GET \(target) HTTP/1.1\0", "GET \(target)\0 HTTP/1.1",
                    "GET \(target)#x HTTP/1.1",
                    "GET \(target)\u{7F} HTTP/1.1", "GET \(target) x HTTP/1.1", " GET \(target) HTTP/1.1", "\(target)",
                    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0",
                    "GET / HTTP/1.1\r\nHost: a\r\n\(long)",
                    "G\(long)", "GET /\(long) HTTP/1.1", "GET \(target)\(long) HTTP/1.1", "GET \(long)",
                    "GET \(target) HTTP/1.1\r\n\(long): x", "GET \(target) HTTP/1.1\r\nX: \(long)",
                    "GET \(target) HTTP/1.1\r\n" + String(repeating: "X: y\r\n", count: 101),
                    "GET \(target) HTTP/1.1\r\n"
                        + String(repeating: "\(long.prefix(1000)): \(long.prefix(1000))\r\n", count: 20),
                    "GET \(target) HTTP/1.1\r\nX\0: y", "GET \(target) HTTP/1.1\r\nX: a\0b",
                    "GET \(target) HTTP/1.1\r\nX y: z",
                    "GET \(target) HTTP/1.1\r\n: y", "GET \(target) HTTP/1.1\r\nX: y\r\n z",
                    "GET \(target) HTTP/1.1\r\nX",
                    "GET \(target) HTTP/1.1\r\nHost: b", "GET \(target) HTTP/1.1\r\nX: y\r\rZ: a",
                    "GET \(target) HTTP/1.1\r\n\u{E9}: y",
                ]
                try await Self.expectRefused(
                    lines.map { ($0.prefix(80).description, "\($0)\r\nHost: a\r\n\r\n") }, server, origin)
                let hosts = ["a b", "a/b", "a@b", "a, b", "a\tb", "\u{E9}", "a?b", "a#b", "a\"b"]
                try await Self.expectRefused(
                    hosts.map { ($0, "GET \(target) HTTP/1.1\r\nHost: \($0)\r\nConnection: close\r\n\r\n") }, server,
                    origin)
            }
        }

        @Test func `targets that are no path, or lead out of a segment, are refused`() async throws {
            try await Self.with { server, origin in
                let url = origin.url("/a.jpg")
                let source = RunningServer.encoded(url)
                let twice = RunningServer.encoded(source)
                let targets = [
                    // Authority, asterisk and other forms.
                    "127.0.0.1:80", "*", "http://", "http:///health/x", "ftp://h/health", url, "//127.0.0.1/" + source,
                    // Merged and mixed separators, traversal and their encodings.
                    "/original/unsigned/" + url.replacing("//", with: "/"), "/original/unsigned/\(url)/../a.jpg",
                    "/original/unsigned/\(url)%2Fa.jpg/b", "/original/unsigned/../" + source,
                    "/original/unsigned/%2e%2e/" + source,
                    "/original/unsigned/..%2F" + source, "/original/unsigned%2F" + source,
                    "/original%2Funsigned%2F" + source,
                    "/./original/unsigned/" + source, "//original/unsigned/" + source, "/original//" + source,
                    "/variant/unsigned/..%2F..%2Fthumbnail:20/" + source,
                    "/original/unsigned/\(source)/..", "/original/unsigned/\(source)?x",
                    "/original/unsigned/\(source)%3",
                    "/original/unsigned/" + twice, "/original/unsigned/" + RunningServer.encoded(twice),
                    "/variant/unsigned/thumbnail%253A20/" + source, "/%6friginal/unsigned/" + source,
                    "/original/unsigned/file%3A%2F%2F%2Fetc%2Fpasswd", "/original/unsigned/%2Fetc%2Fpasswd",
                    "/original/unsigned/gopher%3A%2F%2F127.0.0.1%3A\(origin.port)%2F", "/original/unsigned/data%3A,x",
                    // NUL, line ends, spaces and bytes that are no UTF-8.
                    "/original/unsigned/\(source)%00", "/original/unsigned/%00\(source)",
                    "/original/unsigned/\(source)%0d%0aX:%20y",
                    "/original/unsigned/\(source)%0a",
                    "/original/unsigned/\(source)%ff",
                    "/original/unsigned/http%3A%C0%AF%C0%AF127.0.0.1%3A\(origin.port)%C0%AFa",
                    "/original/unsigned/\(source)%ed%a0%80",
                    "/variant/unsigned/thumbnail:20%00/" + source, "/variant/unsigned/thumbnail:20%0d%0aX:y/" + source,
                    "/original/unsigned/b64:" + source, "/original/unsigned/b64:aHR0cDovL2EAYg",
                    "/original/unsigned%00/" + source, "/original/Unsigned/" + source,
                    "/original/unsigned%20/" + source,
                    "/original/unsigned/http%3A%2F%2F127.0.0.1%5C%40127.0.0.1%3A\(origin.port)%2Fa",
                    "/original/unsigned/http%3A%2F%2F127.0.0.1%3A\(origin.port)%0d%0a%2Fa",
                ]
                try await Self.expectRefused(
                    targets.map { ($0, "GET \($0) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }, server, origin)
                try await Self.expectRefused(
                    ["127.0.0.1:\(origin.port)", url, "*"].map {
                        ("CONNECT \($0)", "CONNECT \($0) HTTP/1.1\r\nHost: a\r\n\r\n" + Self.hidden(origin))
                    } + [
                        (
                            "TRACE",
                            "TRACE \(RunningServer.original(url)) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                        )
                    ],
                    server, origin)
                // An absolute target is this server's, whatever its authority says.
                let client = try await RawClient.connect(server.port)
                client.send("GET \(origin.url("/health")) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                #expect(RawResponse.all(in: await client.receivedToEnd()).map(\.text) == ["ok\n"])
                #expect(origin.requests.isEmpty)
            }
        }

        @Test func `nothing of a source or of a field gets a line of its own in an answer`() async throws {
            try await Self.with(["server.cors=https://a"]) { server, origin in
                let names = ["%250d%250aX-Evil:%2520y.jpg", "%250aX-Evil:y", "a%2522%250d%250a%250d%250aX-Evil: y"]
                for name in names {
                    let target =
                        "/variant/unsigned/thumbnail:8,png/" + RunningServer.encoded(origin.url("/"))
                        + name.replacing(" ", with: "%20")
                    for _ in 0..<2 {
                        let answer = try await server.ask(target, ["Origin": "https://a", "Accept": "image/webp"])
                        #expect(answer.status == 200 && answer["content-disposition"] != nil, "\(name)")
                        #expect(
                            answer["x-evil"] == nil && answer["access-control-allow-origin"] == "https://a", "\(name)")
                    }
                }
            }
        }

        @Test func `an upgrade is not taken up, and what follows it is not read`() async throws {
            try await Self.with { server, origin in
                for upgrade in ["h2c", "websocket", "TLS/1.0"] {
                    let client = try await RawClient.connect(server.port)
                    client.send(
                        RunningServer.head(
                            "/health",
                            ["Connection": "Upgrade, HTTP2-Settings", "Upgrade": upgrade, "HTTP2-Settings": "AAMAAABk"])
                            + Self.hidden(origin))
                    #expect(RawResponse.all(in: await client.receivedToEnd()).map(\.status) == [200], "\(upgrade)")
                }
                #expect(origin.requests.isEmpty)
            }
        }

        @Test func `a server that is its own source, or is led back to itself, ends the loop at once`() async throws {
            let own = Mutex(0)
            let asked = Mutex(0)
            let origin = try LoopbackOrigin { request in
                // Each time another URL, so that no request waits for one before it.
                let count = asked.withLock { count in
                    count += 1
                    return count
                }
                let next =
                    "http://127.0.0.1:\(request.lines.first { $0.name == "host" }?.value.split(separator: ":").last ?? "")/\(count)"
                let target = RunningServer.variant("png", next)
                return .response(302, ["Location": "http://127.0.0.1:\(own.withLock { $0 })\(target)"], body: [])
            }
            defer { origin.stop() }
            try await RunningServer.with(["fetch.breaker=false", #"acceptedTypes=["*/*"]"#]) { server in
                own.withLock { $0 = server.port }
                let base = "http://127.0.0.1:\(server.port)"
                #expect(try await server.ask(RunningServer.variant("png", origin.url("/0"))).problem == "origin-failed")
                #expect(origin.requests.count == 1)
                let through = try await server.ask(
                    RunningServer.variant("png", base + RunningServer.variant("png", origin.url("/0"))))
                #expect(through.problem == "origin-failed")
                let shown = try await server.ask(RunningServer.original(base + "/health"))
                #expect(shown.status == 508 && shown.problem == "loop-detected")
                #expect(origin.requests.count == 1)
                // Other caches on the way are not a loop, unless there are too many of them.
                let row = Array(repeating: "image-pipeline;id=00", count: 8)
                #expect(
                    try await server.ask("/health", ["CDN-Loop": "a.example, " + row[1...].joined(separator: ",")])
                        .status == 200)
                #expect(try await server.ask("/health", ["CDN-Loop": row.joined(separator: ",")]).status == 508)
            }
        }

        @Test(arguments: 1...4 as ClosedRange<UInt64>)
        func `no Accept makes a server error`(_ seed: UInt64) async throws {
            try await Self.with { server, origin in
                var random = SeededGenerator(seed)
                let client = try await RawClient.connect(server.port)
                let target = RunningServer.variant("thumbnail:8", origin.url("/a.jpg"))
                let count = 400
                for _ in 0..<count {
                    let head = Array("GET \(target) HTTP/1.1\r\nHost: a\r\nAccept: ".utf8)
                    client.send(head + Self.accept(&random) + Array("\r\n\r\n".utf8))
                }
                let answers = await client.responses(count)
                #expect(answers.count == count)
                #expect(answers.allSatisfy { $0.status == 200 && $0["content-type"]?.hasPrefix("image/") == true })
            }
        }

        /// A value of `Accept`: known parts in any order, and any UTF-8 that a field may have.
        private static func accept(_ random: inout SeededGenerator) -> [UInt8] {
            let parts = [
                "image/webp", "image/jxl", "image/avif", "image/*", "*/*", "*", "/", ",", ";", " ", "\t", "q=", "q=0",
                "q=1.000",
                "q=0.5", "q=-1", "q=1e9", "q=nan", "q=0.0000000001", "Q=1", "=", "\"", "\\", "\"a,b\"", ";;", "image",
                "webp", "(", ")",
                "99999999999999999999", "é", String(repeating: "a", count: 300),
            ]
            return (0..<Int.random(in: 0...14, using: &random)).flatMap { _ -> [UInt8] in
                if Int.random(in: 0..<6, using: &random) == 0 {
                    let byte = UInt8.random(in: 0x21...0xFF, using: &random)
                    return byte == 0x7F ? [] : Array(String(UnicodeScalar(byte)).utf8)
                }
                return Array(parts[Int.random(in: 0..<parts.count, using: &random)].utf8)
            }
        }
    }
}

/// Numbers that are the same for the same seed (SplitMix64).
private struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
