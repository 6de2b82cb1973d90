@testable import HTTPCaching
@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// Requests with another method than GET, over a real connection.
struct ChangingRequestsTests {
    private func request(_ method: String, _ url: String, _ fields: [HeaderField] = [], body: String = "") throws
        -> FetchRequest
    {
        var request = FetchRequest(url: try SourceURL(url), fields: fields)
        request.method = method
        request.body = Array(body.utf8)
        return request
    }

    @Test(arguments: [
        ("POST", "abc"), ("PUT", "abc\0\r\nå"), ("DELETE", ""), ("POST", ""), ("PATCH", "x"), ("M-SEARCH", "q"),
        ("OPTIONS", ""), ("PUT", String(repeating: "0123456789abcdef", count: 20_000)),
    ])
    func `method and body arrive, with nothing added that describes the body`(method: String, body: String) async throws
    {
        try await withOrigin {
            .response(200, body: Array($0.method.utf8))
        } _: { origin, transport in
            let response = try await transport.fetch(request(method, origin.url("/a"), body: body))
            #expect(response.body == Array(method.utf8))
            let got = try #require(origin.requests.first)
            #expect(got.body == Array(body.utf8))
            let announces = !body.isEmpty || ["POST", "PUT", "PATCH"].contains(method)
            #expect(got["content-length"] == (announces ? String(body.utf8.count) : nil))
            #expect(got["content-type"] == nil && got["expect"] == nil && got["transfer-encoding"] == nil)
            // The handle is one for everybody afterwards.
            _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/b"))))
            let last = try #require(origin.requests.last)
            #expect(last.method == "GET" && last.body.isEmpty && last["content-length"] == nil)
            #expect(last["accept"] == "image/*, */*;q=0.5")
        }
    }

    @Test func `a change is sent once, on a connection of its own`() async throws {
        let isFirst = Atomic(true)
        try await withOrigin {
            $0.maxRetries = 3
        } handler: { request in
            if request.method == "GET" { return .response(200) }
            return isFirst.exchange(false, ordering: .relaxed) ? .close : .response(503)
        } _: { origin, transport in
            let retrying = RetryingTransport(transport, configuration: transport.configuration) { _ in }
            _ = try await retrying.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            await #expect(throws: FetchError.self) {
                try await retrying.fetch(request("POST", origin.url("/"), body: "1"))
            }
            let second = try await retrying.fetch(request("POST", origin.url("/"), body: "2"))
            #expect(second.status == 503)
            #expect(origin.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["", "1", "2"])
            #expect(origin.connections == 3)
        }
    }

    @Test func `what an origin says of a change does not open the breaker`() async throws {
        try await withOrigin {
            $0.breaker?.failures = 2
        } handler: { request in
            .response(request.method == "GET" ? 200 : 500)
        } _: { origin, transport in
            for _ in 0..<3 {
                let response = try await transport.fetch(request("POST", origin.url("/"), body: "1"))
                #expect(response.status == 500)
            }
            let after = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            #expect(after.status == 200)
        }
    }

    @Test func `it follows no redirect`() async throws {
        try await withOrigin { _ in
            .response(307, ["Location": "/elsewhere"])
        } _: { origin, transport in
            let response = try await transport.fetch(request("POST", origin.url("/"), body: "1"))
            #expect(response.status == 307)
            #expect(origin.requests.count == 1)
        }
    }

    @Test func `who changes something speaks for themselves: the origin's own fields and credentials stay here`()
        async throws
    {
        let origin = try LoopbackOrigin { _ in .response(200) }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        var settings = HostSettings()
        settings.authorization = "Bearer t"
        settings.fields = [HeaderField("X-Key", "k")]
        configuration.hosts[try HostOrigin("http://127.0.0.1:\(origin.port)")] = settings
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        _ = try await transport.fetch(request("PUT", origin.url("/"), [HeaderField("Content-Type", "text/plain")]))
        _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
        #expect(origin.requests.map { $0["authorization"] } == [nil, "Bearer t"])
        #expect(origin.requests.map { $0["x-key"] } == [nil, "k"])
        #expect(origin.requests.map { $0["content-type"] } == ["text/plain", nil])
    }

    @Test func `no address is reached that GET would not reach`() async throws {
        let origin = try LoopbackOrigin { _ in .response(200) }
        defer { origin.stop() }
        let transport = CurlTransport()
        defer { transport.shutdown() }
        let error = await #expect(throws: FetchError.self) {
            try await transport.fetch(request("POST", origin.url("/"), body: "1"))
        }
        #expect(error?.code == .refusedAddress && origin.connections == 0)
    }

    @Test(arguments: ["CONNECT", "TRACE", "HEAD", "two words", "GET\r\nX: y", ""])
    func `what is no method for an origin reaches none`(method: String) async throws {
        try await withOrigin { _ in
            .response(200)
        } _: { origin, transport in
            let error = await #expect(throws: FetchError.self) {
                try await transport.fetch(request(method, origin.url("/")))
            }
            #expect(error?.code == .protocolViolation && origin.requests.isEmpty)
        }
    }
}
