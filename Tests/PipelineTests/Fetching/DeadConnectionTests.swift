@testable import PipelineFetching
import Glibc
import TestSupport
import Testing

@testable import Pipeline

/// HTTP/2 connections that have died without being closed.
struct DeadConnectionTests {
    /// A transport to an HTTP/2 origin that is reached over a wire that can be cut.
    private func withWire(
        piece: Int = 65_536, pause: Int32 = 0, _ configure: (inout FetchConfiguration) -> Void,
        _ body: (DeadWire, CurlTransport, FetchRequest) async throws -> Void
    ) async throws {
        let authority = try TestAuthority()
        _ = try HelperProgram(["truncate", "-s", "3000000", authority.folder + "/page"]).waitForEnd()
        let origin = try TLSOrigin(try authority.issue("good"), folder: authority.folder, http2: true)
        let wire = try DeadWire(to: origin.port, piece: piece, pause: pause)
        defer { wire.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        configuration.breaker = nil
        configuration.authoritiesFile = authority.certificate
        // Deadlines that a busy machine does not exceed; each test sets the one that it is about.
        configuration.connectTimeout = .seconds(120)
        configuration.headTimeout = .seconds(120)
        configuration.stallTimeout = .seconds(120)
        configuration.totalTimeout = .seconds(120)
        configure(&configuration)
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        let request = FetchRequest(url: try SourceURL("https://127.0.0.1:\(wire.port)/page"))
        let first = try await transport.fetch(request)
        #expect(first.status == 200)
        try await body(wire, transport, request)
    }

    @Test func `after a time-out without a byte the next transfer takes a new connection, and the old one is closed`()
        async throws
    {
        try await withWire {
            $0.headTimeout = .seconds(2)
        } _: { wire, transport, request in
            wire.cut()
            let error = try await failure(transport, request.url.normalized)
            #expect(error.code == .timeout, "\(error)")
            let response = try await transport.fetch(request)
            #expect(response.status == 200 && wire.connections == 2)
            try await waitWhile { wire.openConnections > 1 }
        }
    }

    @Test func `transfers that still wait on a dead connection do not keep it in use`() async throws {
        try await withWire { _ in
        } _: { wire, transport, request in
            wire.cut()
            let waiting = Task { try await transport.fetch(request).status }
            try await waitWhile { wire.swallowed == 0 }
            var short = request
            short.timeout = .seconds(2)
            await #expect(throws: FetchError.self) { _ = try await transport.fetch(short) }
            let began = ContinuousClock.now
            let response = try await transport.fetch(request)
            #expect(response.status == 200)
            // It ends with the dead connection, or is repeated on a new one.
            _ = await waiting.result
            #expect(began.duration(to: .now) < .seconds(60))
        }
    }

    @Test func `a connection over which bytes arrive is kept when one of its transfers runs out of time`()
        async throws
    {
        // 3 MB take two seconds and more.
        try await withWire(piece: 16_384, pause: 10) { _ in
        } _: { wire, transport, request in
            let other = Task { try await transport.fetch(request).body.count }
            var short = request
            short.timeout = .seconds(1)
            await #expect(throws: FetchError.self) { _ = try await transport.fetch(short) }
            let count = try await other.value
            #expect(count == 3_000_000 && wire.connections == 1)
        }
    }

    @Test func `connections have keep-alive probes and a bound on unacknowledged data`() async throws {
        try await withOrigin {
            $0.headTimeout = .seconds(7)
            $0.totalTimeout = .seconds(0)
        } handler: { _ in
            .response(200)
        } _: { origin, transport in
            _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            var found = 0
            for descriptor in Int32(3)..<1024 where peerPort(descriptor) == origin.port {
                found += 1
                #expect(option(descriptor, SOL_SOCKET, SO_KEEPALIVE) == 1)
                #expect(option(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE) == 30)
                #expect(option(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT) == 7_000)
            }
            #expect(found == 1)
        }
    }

    private func option(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int32 {
        var (value, length) = (Int32(-1), socklen_t(4))
        return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : -1
    }

    private func peerPort(_ descriptor: Int32) -> Int? {
        var (address, length) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
        }
        return isConnected && address.sin_family == sa_family_t(AF_INET)
            ? Int(UInt16(bigEndian: address.sin_port)) : nil
    }
}
