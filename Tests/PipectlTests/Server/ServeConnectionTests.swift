import Dispatch
import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct ServeConnection {
        @Test func `requests on one connection are answered in order, pipelined or not`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await RunningServer.with { server in
                let client = try await RawClient.connect(server.port)
                let slow = RunningServer.head(RunningServer.variant("thumbnail:30,png", origin.url("/grey.jpg")))
                let health = RunningServer.head("/health")
                client.send(slow + health + RunningServer.head("/nope") + slow + health)
                let five = await client.responses(5)
                #expect(five.map(\.status) == [200, 200, 404, 200, 200])
                #expect(five.map { $0["content-type"] ?? "" }.first == "image/png")
                #expect(five[1].text == "ok\n" && five[3].body == five[0].body && five[4].text == "ok\n")
                client.send(health)
                #expect(await client.responses(6).count == 6)
                client.send(RunningServer.head("/health", closes: true))
                let all = await client.receivedToEnd()
                #expect(RawResponse.all(in: all).last?["connection"] == "close")
            }
        }

        @Test func `thousands of pipelined requests are all answered`() async throws {
            try await RunningServer.with { server in
                let client = try await RawClient.connect(server.port)
                let many = String(repeating: "GET /health HTTP/1.1\r\nHost: a\r\n\r\n", count: 4_000)
                client.send(many + RunningServer.head("/health", closes: true))
                let answers = RawResponse.all(in: await client.receivedToEnd())
                #expect(answers.count == 4_001 && answers.allSatisfy { $0.status == 200 })
            }
        }

        @Test func `thousands of pipelined hits are all answered`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await RunningServer.with { server in
                let target = RunningServer.variant("thumbnail:20,png", origin.url("/grey.jpg"))
                let first = try await server.ask(target)
                let client = try await RawClient.connect(server.port)
                let many = String(repeating: "GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n", count: 4_000)
                client.send(many + RunningServer.head(target, closes: true))
                let answers = RawResponse.all(in: await client.receivedToEnd())
                #expect(answers.count == 4_001 && answers.allSatisfy { $0.body == first.body })
                #expect(answers.allSatisfy { $0["cache-status"]?.contains("detail=memory") == true })
            }
        }

        @Test func `HEAD, HTTP/1.0 and absolute targets are understood`() async throws {
            try await RunningServer.with { server in
                let client = try await RawClient.connect(server.port)
                client.send(
                    RunningServer.head("/health", method: "HEAD") + RunningServer.head("/health", method: "HEAD"))
                let heads = await client.responses(2, heads: true)
                #expect(heads.map { $0["content-length"] } == ["3", "3"])
                await client.close()

                let old = try await RawClient.connect(server.port)
                old.send("GET http://anything/health HTTP/1.0\r\n\r\n")
                let closed = RawResponse.all(in: await old.receivedToEnd())
                #expect(closed.map(\.text) == ["ok\n"] && closed.first?["connection"] == "close")

                let kept = try await RawClient.connect(server.port)
                kept.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                #expect(await kept.responses(1).first?["connection"] == "keep-alive")
                kept.send("GET /health HTTP/1.0\r\n\r\n")
                #expect(RawResponse.all(in: await kept.receivedToEnd()).count == 2)
            }
        }

        @Test(arguments: [
            ("garbage\r\n\r\n", 400), ("GET /health HTTP/1.1\r\n\r\n", 400),
            ("GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET /health HTTP/2.0\r\nHost: a\r\n\r\n", 505),
            ("GET /health HTTP/1.1\r\nHost: a\r\nbad name: x\r\n\r\n", 400),
            ("GET health HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET /h\u{E9} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET /health HTTP/1.1\r\nHost: a\r\n folded: x\r\n\r\n", 400),
            ("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            ("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
            ("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
            ("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
            ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            ("GET /\(String(repeating: "a", count: 60000))", 414),
            ("GET /health HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "a", count: 40000))\r\n\r\n", 431),
            ("GET /health HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: y\r\n", count: 200))\r\n", 431),
        ])
        func `what is malformed or too large is told so, and the connection closed`(
            _ text: String, _ status: Int
        ) async throws {
            try await RunningServer.with { server in
                let client = try await RawClient.connect(server.port)
                client.send(text)
                let answers = RawResponse.all(in: await client.receivedToEnd())
                #expect(answers.map(\.status) == [status] && answers.first?.problem != nil)
                #expect(answers.first?["connection"] == "close")
                #expect(try await server.ask("/health").status == 200)
            }
        }

        @Test func `bodies of requests are read and thrown away, and what follows is a request again`() async throws {
            try await RunningServer.with { server in
                let client = try await RawClient.connect(server.port)
                client.send("GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /")
                client.send(
                    "POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
                client.send(RunningServer.head("/health"))
                #expect(await client.responses(3).map(\.status) == [200, 405, 200])
                await client.close()

                let endless = try await RawClient.connect(server.port)
                endless.send("GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                let chunk = "2000\r\n" + String(repeating: "x", count: 0x2000) + "\r\n"
                endless.send(String(repeating: chunk, count: 20))
                #expect(RawResponse.all(in: await endless.receivedToEnd()).map(\.status) == [413])

                let waiting = try await RawClient.connect(server.port)
                waiting.send("GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
                #expect(RawResponse.all(in: await waiting.receivedToEnd()).map(\.status) == [200])

                // Bytes beyond ASCII, in a head and in a body.
                let odd = try await RawClient.connect(server.port)
                odd.send(
                    "POST /health HTTP/1.1\r\nHost: a\r\nX: \u{E9}\r\nContent-Length: 4\r\n\r\n\u{E9}\u{E9}GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
                )
                #expect(await odd.responses(2).map(\.status) == [405, 200])
                await odd.close()
            }
        }

        @Test func `a head that does not end is given up, an idle connection closed`() async throws {
            try await RunningServer.with(["server.idleSeconds=1"]) { server in
                let slow = try await RawClient.connect(server.port)
                slow.send("GET /health HTTP/1.1\r\nHost: a\r\nX: ")
                let idle = try await RawClient.connect(server.port)
                let body = try await RawClient.connect(server.port)
                body.send("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
                #expect(RawResponse.all(in: await slow.receivedToEnd()).map(\.problem) == ["request-timeout"])
                #expect(await idle.receivedToEnd().isEmpty)
                #expect(RawResponse.all(in: await body.receivedToEnd()).map(\.problem) == ["request-timeout"])
                #expect(try await server.ask("/health").status == 200)
            }
        }

        @Test func `a client that leaves takes its fetch along`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let origin = try LoopbackOrigin { request in
                if request.path == "/hang" {
                    asks.yield()
                    return .hang
                }
                return .response(200, ["Content-Type": "text/plain"], body: Array("x".utf8))
            }
            defer { origin.stop() }
            let settings = [
                "fetch.slots=1", "fetch.perHost=1", "fetch.totalSeconds=1000", "fetch.stallSeconds=1000",
                "fetch.headerSeconds=1000", #"acceptedTypes=["*/*"]"#,
            ]
            try await RunningServer.with(settings) { server in
                let client = try await RawClient.connect(server.port)
                client.send(RunningServer.head(RunningServer.original(origin.url("/hang"))))
                for await _ in asked { break }
                await client.close()
                // The only slot for transfers is free again.
                #expect(try await server.ask(RunningServer.original(origin.url("/x"))).text == "x")
            }
        }

        @Test func `a large body arrives whole, and a client that does not read it is disconnected`() async throws {
            let body = (0..<8_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 5) }
            let origin = try LoopbackOrigin { _ in
                .response(200, ["Cache-Control": "max-age=100"], body: body)
            }
            defer { origin.stop() }
            try await RunningServer.with(["server.idleSeconds=1"]) { server in
                let path = RunningServer.original(origin.url("/large"))
                let answer = try await server.ask(path)
                #expect(answer.body == body)
                let lazy = try await RawClient.connect(server.port, reads: false)
                lazy.send(RunningServer.head(path, closes: true))
                let taken = await lazy.receivedToEnd().count
                #expect(taken < body.count)
            }
        }

        @Test func `SIGTERM lets an answer finish and takes no further request`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let door = DispatchSemaphore(value: 0)
            let origin = try LoopbackOrigin { _ in
                asks.yield()
                door.wait()
                return .response(200, ["Content-Type": "text/plain"], body: Array("at last".utf8))
            }
            defer { origin.stop() }
            let server = try await RunningServer.start([#"acceptedTypes=["*/*"]"#], isProgram: true)
            let idle = try await RawClient.connect(server.port)
            idle.send(RunningServer.head("/health"))
            #expect(await idle.responses(1).count == 1)
            let client = try await RawClient.connect(server.port)
            client.send(RunningServer.head(RunningServer.original(origin.url("/slow"))) + RunningServer.head("/health"))
            for await _ in asked { break }
            server.child.signal(SIGTERM)
            // The idle connection is closed once the server has stopped listening.
            #expect(RawResponse.all(in: await idle.receivedToEnd()).count == 1)
            await #expect(throws: (any Error).self) { try await RawClient.connect(server.port) }
            door.signal()
            let answers = RawResponse.all(in: await client.receivedToEnd())
            #expect(answers.map(\.text) == ["at last"] && answers.first?["connection"] == "close")
            #expect(await server.child.end.exit == 0)
        }

        @Test func `an address in use or unknown ends the program with an error message`() async throws {
            try await RunningServer.with { server in
                for listen in ["127.0.0.1:\(server.port)", "192.0.2.1:80", "nonsense"] {
                    let folder = ScratchFolder()
                    let ended = try await ChildProgram.run(
                        ["serve", "--listen", listen, "--cache", folder("cache"), "--set", "allowUnsigned=true"],
                        folder: folder.path)
                    #expect(ended.exit == 2 && ended.errors.contains(listen), "\(ended.errors)")
                }
            }
        }

        @Test func `each request is logged where that is asked for`() async throws {
            let server = try await RunningServer.start(["log.level=info"])
            _ = try await server.ask("/health")
            let ended = await server.stop()
            #expect(ended.exit == 0 && ended.errors.contains("127.0.0.1 GET /health 200 3 "), "\(ended.errors)")
        }
    }
}
