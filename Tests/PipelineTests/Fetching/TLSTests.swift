@testable import PipelineFetching
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// A transport to `origin` with separate settings, removed afterwards.
private func withTransport(
    to origin: TLSOrigin, hooks: TransportHooks = TransportHooks(),
    _ configure: (inout FetchConfiguration, inout HostSettings) -> Void,
    _ body: (CurlTransport) async throws -> Void
) async throws {
    var configuration = FetchConfiguration()
    configuration.allowPrivateAddresses = .all
    configuration.breaker = nil
    configuration.connectTimeout = .seconds(30)
    configuration.headTimeout = .seconds(30)
    configuration.totalTimeout = .seconds(60)
    var settings = HostSettings()
    configure(&configuration, &settings)
    configuration.hosts[try HostOrigin("127.0.0.1:\(origin.port)")] = settings
    let transport = CurlTransport(configuration, hooks: hooks)
    defer { transport.shutdown() }
    try await body(transport)
}

private let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: image/jpeg\r\n\r\nhello"

struct TLSTests {
    @Test func `a certificate of a configured authority is trusted, of an unknown one it is not`() async throws {
        let authority = try TestAuthority()
        authority.files.write(page, to: "page")
        let origin = try TLSOrigin(try authority.issue("good"), folder: authority.folder)
        let request = FetchRequest(url: try SourceURL(origin.url("page")))
        try await withTransport(to: origin) {
            $1.authoritiesFile = authority.certificate
        } _: { transport in
            let response = try await transport.fetch(request)
            #expect(response.status == 200 && response.body == Array("hello".utf8))
        }
        try await withTransport(to: origin) { configuration, _ in
            configuration.authoritiesFile = authority.certificate
        } _: { transport in
            let response = try await transport.fetch(request)
            #expect(response.status == 200)
        }
        try await withTransport(to: origin) { _, _ in
        } _: { transport in
            let error = try await failure(transport, origin.url("page"))
            #expect(error.code == .tls, "\(error)")
        }
        try await withTransport(to: origin) {
            $1.authoritiesFile = authority.folder + "/absent.pem"
        } _: { transport in
            let error = try await failure(transport, origin.url("page"))
            #expect(error.code == .tls, "\(error)")
        }
    }

    @Test(arguments: [("IP:127.0.0.2,DNS:other.example", 2), ("IP:127.0.0.1", -1)])
    func `a certificate for another host or past its end is refused unless the host is insecure`(
        names: String, days: Int
    ) async throws {
        let authority = try TestAuthority()
        authority.files.write(page, to: "page")
        let origin = try TLSOrigin(try authority.issue("bad", names: names, days: days), folder: authority.folder)
        try await withTransport(to: origin) {
            $1.authoritiesFile = authority.certificate
        } _: { transport in
            let error = try await failure(transport, origin.url("page"))
            #expect(error.code == .tls, "\(error)")
        }
        try await withTransport(to: origin) {
            $1.isInsecure = true
        } _: { transport in
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("page"))))
            #expect(response.status == 200)
        }
        let other = try TLSOrigin(try authority.issue("other", names: names, days: days), folder: authority.folder)
        try await withTransport(to: origin) {
            $1.isInsecure = true
        } _: { transport in
            let error = try await failure(transport, other.url("page"))
            #expect(error.code == .tls, "insecure holds for one origin only: \(error)")
        }
    }

    @Test func `a redirect from https to http is not followed`() async throws {
        let plain = try LoopbackOrigin { _ in .response(200) }
        defer { plain.stop() }
        let authority = try TestAuthority()
        authority.files.write(
            "HTTP/1.1 302 Away\r\nLocation: \(plain.url("/"))\r\nContent-Length: 0\r\n\r\n",
            to: "page")
        let origin = try TLSOrigin(try authority.issue("good"), folder: authority.folder)
        try await withTransport(to: origin) {
            $1.authoritiesFile = authority.certificate
        } _: { transport in
            let error = try await failure(transport, origin.url("page"))
            #expect(error.code == .badRedirect)
            #expect(plain.requests.isEmpty)
        }
    }

    @Test func `HTTP/2 carries many transfers on one connection`() async throws {
        let authority = try TestAuthority()
        authority.files.write("over HTTP/2", to: "page")
        let origin = try TLSOrigin(try authority.issue("good"), folder: authority.folder, http2: true)
        let request = FetchRequest(url: try SourceURL(origin.url("page")))
        let connections = Atomic(0)
        var hooks = TransportHooks()
        hooks.dials = { _, _ in
            connections.add(1, ordering: .relaxed)
            return true
        }
        try await withTransport(to: origin, hooks: hooks) {
            $1.authoritiesFile = authority.certificate
        } _: { transport in
            try await withThrowingTaskGroup(of: FetchedResponse.self) { group in
                for _ in 0..<20 { group.addTask { try await transport.fetch(request) } }
                for try await response in group {
                    #expect(response.status == 200 && response.body == Array("over HTTP/2".utf8))
                }
            }
            let missing = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("absent"))))
            #expect(missing.status == 404)
            #expect(connections.load(ordering: .relaxed) == 1)
        }
        try await withTransport(to: origin) { configuration, settings in
            settings.authoritiesFile = authority.certificate
            configuration.http2 = false
        } _: { transport in
            // The server speaks nothing else.
            await #expect(throws: FetchError.self) { _ = try await transport.fetch(request) }
        }
    }
}
