import Pipeline
import TestSupport
import Testing

struct RedirectTests {
    private static func redirect(_ location: String, _ status: Int = 302) -> OriginReply {
        .response(status, ["Location": location])
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect is followed, relative ones against where they were found`(status: Int) async throws {
        try await withOrigin { request in
            switch request.path {
            case "/a/start": Self.redirect("next?x=1", status)
            default: .response(200, body: Array(request.target.utf8))
            }
        } _: { origin, transport in
            let start = try SourceURL(origin.url("/a/start"))
            let response = try await transport.fetch(FetchRequest(url: start))
            #expect(response.body == Array("/a/next?x=1".utf8))
            #expect(response.finalURL.normalized == origin.url("/a/next?x=1"))
            #expect(response.redirects == [start])
        }
    }

    @Test(arguments: [([0xC3, 0xA9], "/%C3%A9"), ([0xE9], "/%E9")] as [([UInt8], String)])
    func `bytes beyond ASCII in Location are percent-encoded as they are`(
        bytes: [UInt8], target: String
    ) async throws {
        try await withOrigin { request in
            let head = Array("HTTP/1.1 302 Away\r\nContent-Length: 0\r\nLocation: /".utf8) + bytes
            return request.path == "/a"
                ? .raw("", then: [.bytes(head + [13, 10, 13, 10])], keepsAlive: true) : .response(200)
        } _: { origin, transport in
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/a"))))
            #expect(response.finalURL.path == target && origin.requests.last?.target == target)
        }
    }

    @Test func `a loop of redirects is an error`() async throws {
        try await withOrigin { request in
            Self.redirect(request.path == "/a" ? "/b" : "/a")
        } _: { origin, transport in
            let code = try await failure(transport, origin.url("/a")).code
            #expect(code == .tooManyRedirects)
            #expect(origin.requests.count == 2)
        }
    }

    @Test func `more redirects than allowed are an error`() async throws {
        try await withOrigin {
            $0.maxRedirects = 2
        } handler: { request in
            Self.redirect(request.path + "x")
        } _: { origin, transport in
            let code = try await failure(transport, origin.url("/a")).code
            #expect(code == .tooManyRedirects)
            #expect(origin.requests.count == 3)
        }
    }

    @Test(arguments: ["ftp://127.0.0.1/a", "file:///etc/passwd", "http://", "http://a b/", "javascript:1"])
    func `a redirect to what is not fetched is an error`(location: String) async throws {
        try await withOrigin { _ in
            Self.redirect(location)
        } _: { origin, transport in
            let code = try await failure(transport, origin.url("/a")).code
            #expect(code == .badRedirect)
        }
    }

    @Test func `a redirect to a refused address is refused`() async throws {
        let inside = try LoopbackOrigin { _ in .response(200) }
        defer { inside.stop() }
        let target = inside.url("/secret")
        let origin = try LoopbackOrigin { _ in Self.redirect(target) }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = try AddressRule(["127.0.0.1:\(origin.port)"])
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        let code = try await failure(transport, origin.url("/")).code
        #expect(code == .refusedAddress)
        #expect(inside.requests.isEmpty)
    }

    @Test func `Authorization stays with its origin, other fields travel on`() async throws {
        let other = try LoopbackOrigin { _ in .response(200) }
        defer { other.stop() }
        let target = other.url("/there")
        try await withOrigin { request in
            Self.redirect(request.path == "/a" ? "/b" : target)
        } _: { origin, transport in
            let fields = [HeaderField("Authorization", "Basic eA=="), HeaderField("X-Kept", "1")]
            _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/a")), fields: fields))
            #expect(origin.requests.map { $0["authorization"] } == ["Basic eA==", "Basic eA=="])
            #expect(other.requests.map { $0["authorization"] } == [nil])
            #expect(other.requests.map { $0["x-kept"] } == ["1"])
        }
    }

    @Test func `a redirect status without Location is a response`() async throws {
        try await withOrigin { _ in
            .response(302)
        } _: { origin, transport in
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            #expect(response.status == 302)
        }
    }
}
