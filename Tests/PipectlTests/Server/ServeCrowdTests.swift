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

        /// The answer to a new connection from an address that asks, or only waits.
        private static func asked(
            _ text: String, _ port: Int, from address: String
        ) async throws -> [RawResponse] {
            let client = try await RawClient.connect(port, from: address)
            client.send(text)
            return RawResponse.all(in: await client.receivedToEnd())
        }

        /// An origin that keeps its requests waiting, and a stream of their arrivals.
        private static func slowOrigin(_ door: DispatchSemaphore) throws -> (LoopbackOrigin, AsyncStream<Void>) {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let origin = try LoopbackOrigin { _ in
                asks.yield()
                door.wait()
                return .response(200, ["Content-Type": "text/plain"], body: Array("at last".utf8))
            }
            return (origin, asked)
        }

        /// Connections with a request each that the origin has.
        private static func busy(
            _ count: Int, _ port: Int, _ origin: LoopbackOrigin, _ asked: AsyncStream<Void>
        ) async throws -> [RawClient] {
            var clients: [RawClient] = []
            for number in 0..<count {
                let client = try await RawClient.connect(port)
                client.send(RunningServer.head(RunningServer.original(origin.url("/\(number)"))))
                for await _ in asked { break }
                clients.append(client)
            }
            return clients
        }

        private static let closing = RunningServer.head("/metrics", closes: true)

        @Test func `idle connections do not count as an address's share`() async throws {
            try await RunningServer.with(["server.connections=8"]) { server in
                let crowd = try await Self.kept(7, server.port, from: "127.0.0.1")
                #expect(try await Self.asked(Self.closing, server.port, from: "127.0.0.1").map(\.status) == [200])
                for client in crowd {
                    client.send(Self.health)
                    #expect(await client.responses(2).map(\.status) == [200, 200])
                    await client.close()
                }
            }
        }

        @Test func `one address has at most a quarter of the places in progress, and others have theirs`() async throws
        {
            let door = DispatchSemaphore(value: 0)
            let (origin, asked) = try Self.slowOrigin(door)
            defer { origin.stop() }
            try await RunningServer.with(["server.connections=8", #"acceptedTypes=["*/*"]"#]) { server in
                let idle = try await Self.kept(1, server.port, from: "127.0.0.1")
                let busy = try await Self.busy(2, server.port, origin, asked)
                let third = try await Self.asked(Self.closing, server.port, from: "127.0.0.1")
                #expect(third.map(\.status) == [503] && third.first?["retry-after"] != nil)
                #expect(third.first?.text.contains("server.connectionsPerAddress") == true)
                #expect(try await Self.asked(Self.closing, server.port, from: "127.0.0.2").map(\.status) == [200])
                // The probes of an orchestrator may come from the address that the clients seem to have.
                for path in ["/health", "/ready"] {
                    let probe = RunningServer.head(path, closes: true)
                    #expect(try await Self.asked(probe, server.port, from: "127.0.0.1").map(\.status) == [200])
                }
                idle[0].send(Self.closing)
                #expect(RawResponse.all(in: await idle[0].receivedToEnd()).map(\.status) == [200, 503])
                // A request that is answered makes room for another one.
                for _ in busy { door.signal() }
                for client in busy {
                    #expect(await client.responses(1).map(\.text) == ["at last"])
                    client.send(Self.closing)
                    #expect(RawResponse.all(in: await client.receivedToEnd()).last?.status == 200)
                }
            }
        }

        @Test func `a refused client that does not close its connection keeps no place from another`() async throws {
            let door = DispatchSemaphore(value: 0)
            let (origin, asked) = try Self.slowOrigin(door)
            defer { origin.stop() }
            let settings = ["server.connections=2", "server.connectionsPerAddress=1", #"acceptedTypes=["*/*"]"#]
            try await RunningServer.with(settings) { server in
                let busy = try await Self.busy(1, server.port, origin, asked)[0]
                let refused = try await RawClient.connect(server.port)
                refused.send(RunningServer.head("/metrics"))
                #expect(await refused.responses(1).map(\.status) == [503])
                #expect(try await Self.asked(Self.closing, server.port, from: "127.0.0.2").map(\.status) == [200])
                door.signal()
                #expect(await busy.responses(1).map(\.text) == ["at last"])
                for client in [busy, refused] { await client.close() }
            }
        }

        @Test func `server.connectionsPerAddress sets the bound, and a trusted proxy has none`() async throws {
            let settings = ["server.connections=8", "server.connectionsPerAddress=3", #"acceptedTypes=["*/*"]"#]
            for (proxies, count, status) in [("[]", 3, 503), (#"["127.0.0.1"]"#, 7, 200)] {
                let door = DispatchSemaphore(value: 0)
                let (origin, asked) = try Self.slowOrigin(door)
                defer { origin.stop() }
                let all = settings + ["server.trustedProxies=\(proxies)", "fetch.perHost=16"]
                try await RunningServer.with(all) { server in
                    let busy = try await Self.busy(count, server.port, origin, asked)
                    #expect(
                        try await Self.asked(Self.closing, server.port, from: "127.0.0.1").map(\.status) == [status])
                    for _ in busy { door.signal() }
                    for client in busy {
                        #expect(await client.responses(1).map(\.text) == ["at last"])
                        await client.close()
                    }
                }
            }
        }

        @Test func `the longest idle connection of the same address gives way before one of another`() async throws {
            try await RunningServer.with(["server.connections=4"]) { server in
                let others = try await Self.kept(2, server.port, from: "127.0.0.2")
                let own = try await Self.kept(2, server.port, from: "127.0.0.1")
                let fifth = try await Self.kept(1, server.port, from: "127.0.0.1")
                #expect(RawResponse.all(in: await own[0].receivedToEnd()).count == 1)
                for client in others + [own[1]] + fifth {
                    client.send(Self.health)
                    #expect(await client.responses(2).count == 2)
                    await client.close()
                }
            }
        }

        @Test func `health is answered beside a crowd without places that says nothing`() async throws {
            let door = DispatchSemaphore(value: 0)
            let (origin, asked) = try Self.slowOrigin(door)
            defer { origin.stop() }
            let settings = ["server.connections=2", "server.connectionsPerAddress=2", #"acceptedTypes=["*/*"]"#]
            try await RunningServer.with(settings) { server in
                let busy = try await Self.busy(2, server.port, origin, asked)
                var silent: [RawClient] = []
                for _ in 0..<300 { silent.append(try await RawClient.connect(server.port)) }
                let probe = RunningServer.head("/health", closes: true)
                #expect(try await Self.asked(probe, server.port, from: "127.0.0.1").map(\.status) == [200])
                for _ in busy { door.signal() }
                for client in busy + silent { await client.close() }
            }
        }

        @Test func `when all places are taken the connection that has been idle longest gives way`() async throws {
            let door = DispatchSemaphore(value: 0)
            let (origin, asked) = try Self.slowOrigin(door)
            defer { origin.stop() }
            let settings = ["server.connections=4", "server.connectionsPerAddress=4", #"acceptedTypes=["*/*"]"#]
            try await RunningServer.with(settings) { server in
                // The oldest connection works; of the others, two have asked since. Often: a client has its answer a moment before
                // the server counts its connection as idle.
                let busy = try await Self.busy(1, server.port, origin, asked)[0]
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
            let door = DispatchSemaphore(value: 0)
            let (origin, asked) = try Self.slowOrigin(door)
            defer { origin.stop() }
            let settings = ["server.connections=2", "server.connectionsPerAddress=2", #"acceptedTypes=["*/*"]"#]
            try await RunningServer.with(settings) { server in
                let busy = try await Self.busy(2, server.port, origin, asked)
                for address in ["127.0.0.1", "127.0.0.2"] {
                    for path in ["/health", "/ready"] {
                        let answers = try await Self.asked(RunningServer.head(path), server.port, from: address)
                        #expect(answers.map(\.status) == [200], "\(path)")
                        #expect(answers.first?["connection"] == "close")
                    }
                    // Other requests are refused, even if the client sends no bytes.
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
