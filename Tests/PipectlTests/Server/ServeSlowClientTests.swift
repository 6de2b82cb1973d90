import Dispatch
import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Clients that are slow, and more of them than there are descriptors.
    @Suite struct ServeSlowClient {
        private static let field = "GET /health HTTP/1.1\r\nHost: a\r\nX: "
        private static let chunked = "POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        private static let counted = "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabcd"

        @Test(arguments: [(RunningServer.head("/health"), 200), (chunked, 405), (counted, 405)])
        func `a head that has begun behind another request is waited for as one`(
            _ first: String, _ status: Int
        ) async throws {
            try await RunningServer.with(["server.idleSeconds=1"]) { server in
                let late = try await RawClient.connect(server.port)
                late.send(first + Self.field)
                #expect(RawResponse.all(in: await late.receivedToEnd()).map(\.status) == [status, 408])

                let long = try await RawClient.connect(server.port)
                long.send(first + Self.field)
                #expect(await long.responses(1).map(\.status) == [status])
                long.send(String(repeating: "a", count: 40_000))
                #expect(RawResponse.all(in: await long.receivedToEnd()).map(\.status) == [status, 431])

                let line = try await RawClient.connect(server.port)
                line.send(first + "GET /a")
                #expect(await line.responses(1).map(\.status) == [status])
                line.send(String(repeating: "a", count: 60_000))
                #expect(RawResponse.all(in: await line.receivedToEnd()).map(\.status) == [status, 414])

                // No request has begun, so there is no error.
                let idle = try await RawClient.connect(server.port)
                idle.send(first)
                #expect(RawResponse.all(in: await idle.receivedToEnd()).map(\.status) == [status])
            }
        }

        @Test func `a head or a body that trickles in is given up once its time is over`() async throws {
            try await RunningServer.with(["server.idleSeconds=1"]) { server in
                for start in [
                    Self.field, RunningServer.head("/health") + Self.field, "GET /",
                    "POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n",
                ] {
                    let client = try await RawClient.connect(server.port)
                    client.send(start)
                    client.trickle("a")
                    let answers = RawResponse.all(in: await client.receivedToEnd())
                    #expect(answers.last?.problem == "request-timeout", "\(start)")
                }
                let chunks = try await RawClient.connect(server.port)
                chunks.send("POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                chunks.trickle("1\r\na\r\n")
                #expect(RawResponse.all(in: await chunks.receivedToEnd()).map(\.problem) == ["request-timeout"])
            }
        }

        @Test func `a client that reads its answer too slowly is disconnected`() async throws {
            let body = [UInt8](repeating: 7, count: 12_000_000)
            let origin = try LoopbackOrigin { _ in .response(200, ["Cache-Control": "max-age=100"], body: body) }
            defer { origin.stop() }
            try await RunningServer.with(["server.idleSeconds=1"]) { server in
                let client = try await RawClient.connect(server.port, reads: false)
                client.send(RunningServer.head(RunningServer.original(origin.url("/large")), closes: true))
                client.sip()
                #expect(await client.receivedToEnd().count < body.count)
            }
        }

        @Test func `clients for whom no descriptor is left wait, and the server does not spin`() async throws {
            try await RunningServer.with(["server.idleSeconds=1"], isProgram: true) { server in
                _ = try await server.ask("/health")
                let open = try #require(server.child.openFiles?.count)
                try server.child.limitOpenFiles(to: open + 4)
                let before = try #require(server.child.processorSeconds)
                // Each is answered when others have been closed for being idle.
                let answered = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<12 {
                        group.addTask {
                            let client = try await RawClient.connect(server.port)
                            client.send(RunningServer.head("/health"))
                            return RawResponse.all(in: await client.receivedToEnd()).count
                        }
                    }
                    return try await group.reduce(0, +)
                }
                #expect(answered == 12)
                let taken = try #require(server.child.processorSeconds) - before
                #expect(taken < 0.25, "\(taken) s")
                try server.child.limitOpenFiles(to: 1024)
            }
        }

        @Test func `SIGTERM does not reset a connection with requests that were not read`() async throws {
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
            client.send(RunningServer.head(RunningServer.original(origin.url("/slow"))))
            for await _ in asked { break }
            client.send(String(repeating: RunningServer.head("/health"), count: 10_000))
            server.child.signal(SIGTERM)
            #expect(RawResponse.all(in: await idle.receivedToEnd()).count == 1)
            door.signal()
            #expect(RawResponse.all(in: await client.receivedToEnd()).map(\.text) == ["at last"])
            #expect(!client.wasReset)
            #expect(await server.child.end.exit == 0)
        }
    }
}
