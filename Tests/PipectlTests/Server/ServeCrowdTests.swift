import Dispatch
import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// More connections than there are places, from one address or from many.
    @Suite struct ServeCrowd {
        private static let health = RunningServer.head("/health")

        /// Connections that were answered once and stay open.
        private static func kept(_ count: Int, _ port: Int, from address: String) async throws -> [RawClient] {
            var clients: [RawClient] = []
            for _ in 0..<count {
                let client = try await RawClient.connect(port, from: address)
                client.send(health)
                #expect(await client.responses(1).map(\.status) == [200])
                clients.append(client)
            }
            return clients
        }

        /// What a new connection from an address gets when it asks, or only waits.
        private static func asked(
            _ text: String, _ port: Int, from address: String
        ) async throws -> [RawResponse] {
            let client = try await RawClient.connect(port, from: address)
            client.send(text)
            return RawResponse.all(in: await client.receivedToEnd())
        }

        @Test func `one address has at most a quarter of the places, and others have theirs`() async throws {
            try await RunningServer.with(["server.connections=8"]) { server in
                let crowd = try await Self.kept(2, server.port, from: "127.0.0.1")
                let closing = RunningServer.head("/metrics", closes: true)
                let third = try await Self.asked(closing, server.port, from: "127.0.0.1")
                #expect(third.map(\.status) == [503] && third.first?["retry-after"] != nil)
                #expect(third.first?.text.contains("server.connectionsPerAddress") == true)
                #expect(try await Self.asked(closing, server.port, from: "127.0.0.2").map(\.status) == [200])
                // A place that is given back can be had again.
                await crowd[0].close()
                var status = 503
                while status == 503 {
                    status = try await Self.asked(closing, server.port, from: "127.0.0.1").first?.status ?? 0
                }
                #expect(status == 200)
                crowd[1].send(Self.health)
                #expect(await crowd[1].responses(2).count == 2)
                await crowd[1].close()
            }
        }

        @Test func `server.connectionsPerAddress sets the bound, and a trusted proxy has none`() async throws {
            let settings = ["server.connections=8", "server.connectionsPerAddress=3"]
            let closing = RunningServer.head("/metrics", closes: true)
            try await RunningServer.with(settings) { server in
                let crowd = try await Self.kept(3, server.port, from: "127.0.0.1")
                #expect(try await Self.asked(closing, server.port, from: "127.0.0.1").map(\.status) == [503])
                for client in crowd { await client.close() }
            }
            try await RunningServer.with(settings + [#"server.trustedProxies=["127.0.0.1"]"#]) { server in
                let crowd = try await Self.kept(7, server.port, from: "127.0.0.1")
                #expect(try await Self.asked(closing, server.port, from: "127.0.0.1").map(\.status) == [200])
                for client in crowd { await client.close() }
            }
        }

        @Test func `when all places are taken the connection that has been idle longest gives way`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let door = DispatchSemaphore(value: 0)
            let origin = try LoopbackOrigin { _ in
                asks.yield()
                door.wait()
                return .response(200, ["Content-Type": "text/plain"], body: Array("at last".utf8))
            }
            defer { origin.stop() }
            let settings = ["server.connections=4", "server.connectionsPerAddress=4", #"acceptedTypes=["*/*"]"#]
            try await RunningServer.with(settings) { server in
                // The oldest connection works; of the others, two have asked since. Often: a client has its answer a moment before
                // the server counts its connection as idle.
                let busy = try await RawClient.connect(server.port)
                busy.send(RunningServer.head(RunningServer.original(origin.url("/slow"))))
                for await _ in asked { break }
                let idle = try await Self.kept(3, server.port, from: "127.0.0.2")
                for count in 2...20 {
                    for client in [idle[0], idle[2]] {
                        client.send(Self.health)
                        #expect(await client.responses(count).count == count)
                    }
                }
                let fifth = try await Self.kept(1, server.port, from: "127.0.0.3")
                #expect(RawResponse.all(in: await idle[1].receivedToEnd()).count == 1)
                for client in [idle[0], idle[2]] + fifth {
                    client.send(RunningServer.head("/health", closes: true))
                    #expect(RawResponse.all(in: await client.receivedToEnd()).last?.status == 200)
                }
                door.signal()
                #expect(await busy.responses(1).map(\.text) == ["at last"])
                await busy.close()
            }
        }

        @Test func `health and readiness are answered when every place is taken by one that works`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let door = DispatchSemaphore(value: 0)
            let origin = try LoopbackOrigin { _ in
                asks.yield()
                door.wait()
                return .response(200, ["Content-Type": "text/plain"], body: Array("at last".utf8))
            }
            defer { origin.stop() }
            let settings = ["server.connections=2", "server.connectionsPerAddress=2", #"acceptedTypes=["*/*"]"#]
            try await RunningServer.with(settings) { server in
                var busy: [RawClient] = []
                for path in ["/a", "/b"] {
                    busy.append(try await RawClient.connect(server.port))
                    busy.last?.send(RunningServer.head(RunningServer.original(origin.url(path))))
                    for await _ in asked { break }
                }
                for address in ["127.0.0.1", "127.0.0.2"] {
                    for path in ["/health", "/ready"] {
                        let answers = try await Self.asked(RunningServer.head(path), server.port, from: address)
                        #expect(answers.map(\.status) == [200], "\(path)")
                        #expect(answers.first?["connection"] == "close")
                    }
                    // Anything else is refused, also if the client says nothing.
                    for text in [RunningServer.head("/metrics"), ""] {
                        let answers = try await Self.asked(text, server.port, from: address)
                        #expect(answers.map(\.status) == [503], "\(text)")
                    }
                }
                for _ in busy { door.signal() }
                for client in busy {
                    #expect(await client.responses(1).map(\.text) == ["at last"])
                    await client.close()
                }
            }
        }
    }
}
