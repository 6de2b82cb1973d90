import Pipeline
import TestSupport
import Testing

/// Fetches through a proxy (`FetchConfiguration.proxy`).
struct ProxyTests {
    /// Runs `body` with a server on loopback that is the proxy of a transport, which may reach public addresses only.
    private static func withProxy(
        _ userinfo: String = "", handler: @escaping @Sendable (OriginRequest) -> OriginReply,
        _ body: (LoopbackOrigin, CurlTransport) async throws -> Void
    ) async throws {
        try await withOrigin(handler: handler) { proxy, _ in
            var configuration = FetchConfiguration()
            configuration.proxy = try FetchProxy("http://\(userinfo)127.0.0.1:\(proxy.port)")
            (configuration.connectTimeout, configuration.headTimeout, configuration.totalTimeout) = (
                .seconds(120), .seconds(120), .seconds(120)
            )
            let transport = CurlTransport(configuration)
            defer { transport.shutdown() }
            try await body(proxy, transport)
        }
    }

    @Test func `the proxy gets the whole URL, user and password`() async throws {
        try await Self.withProxy("us:p%40w@") { request in
            .response(200, body: Array(request.target.utf8))
        } _: { proxy, transport in
            for _ in 0..<2 {
                let response = try await transport.fetch(FetchRequest(url: SourceURL("http://pictures.test/a?b=1")))
                #expect(response.body == Array("http://pictures.test/a?b=1".utf8))
            }
            // `us:p@w`
            #expect(proxy.requests.map { $0["proxy-authorization"] } == ["Basic dXM6cEB3", "Basic dXM6cEB3"])
            #expect(proxy.connections == 1)
        }
    }

    @Test func `addresses that a URL names are checked, at first and after a redirect`() async throws {
        try await Self.withProxy { request in
            request.target == "http://pictures.test/away"
                ? .response(302, ["Location": "http://192.168.0.1/"]) : .response(200)
        } _: { proxy, transport in
            for url in [
                "http://127.0.0.1/", "http://localhost/", "http://a.localhost/", "http://localhost./",
                "http://10.0.0.1:8080/",
                "http://[::1]/", "http://169.254.169.254/latest", "http://2130706433/", "https://[::ffff:10.0.0.1]/",
            ] {
                let error = try await failure(transport, url)
                #expect(error.code == .refusedAddress && error.message.contains("allowPrivateAddresses"), "\(error)")
            }
            #expect(proxy.requests.isEmpty)
            #expect(try await failure(transport, "http://pictures.test/away").code == .refusedAddress)
            #expect(proxy.requests.count == 1)
        }
    }

    @Test func `a proxy that refuses is named, without its password`() async throws {
        try await Self.withProxy("us:geheim@") { _ in
            .response(407)
        } _: { proxy, transport in
            for url in ["http://pictures.test/", "https://pictures.test/"] {
                let error = try await failure(transport, url)
                #expect(error.code == .unreachable, "\(error)")
                #expect(error.message.contains("the proxy http://127.0.0.1:\(proxy.port) answered 407"), "\(error)")
                #expect(!"\(error) \(transport.configuration)".contains("geheim"))
            }
            #expect(proxy.requests.map(\.method) == ["GET", "CONNECT"])
        }
    }

    @Test func `a proxy that is down is named`() async throws {
        let port = try RefusingPort()
        defer { withExtendedLifetime(port) {} }
        var configuration = FetchConfiguration()
        configuration.proxy = try FetchProxy(port.url(""))
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        let error = try await failure(transport, "http://pictures.test/")
        #expect(error.code == .unreachable && error.message.contains("`fetch.proxy`"), "\(error)")
    }

    /// Answers `CONNECT` and passes bytes on between the client and 127.0.0.1, whatever host the client named.
    private static let tunnel = """
        import select, socket, sys
        listener = socket.create_server(("127.0.0.1", 0))
        print("port", listener.getsockname()[1], flush=True)
        client, _ = listener.accept()
        head = b""
        while not head.endswith(b"\\r\\n\\r\\n"): head += client.recv(1)
        print(head.split(b"\\r\\n")[0].decode(), flush=True)
        origin = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        client.sendall(b"HTTP/1.1 200 Connection established\\r\\nX-Proxy: yes\\r\\n\\r\\n")
        while True:
            for end in select.select([client, origin], [], [])[0]:
                data = end.recv(65536)
                if not data: sys.exit()
                (origin if end is client else client).sendall(data)
        """

    @Test func `TLS goes through a tunnel, and the origin's certificate is checked`() async throws {
        let authority = try TestAuthority()
        let folder = authority.folder
        let writer = try HelperProgram(
            ["sh", "-c", #"printf 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok' > a"#], folder: folder)
        #expect(writer.waitForEnd() == 0)
        let origin = try TLSOrigin(authority.issue("origin", names: "DNS:pictures.test"), folder: folder)
        for names in [[authority.certificate], []] {
            let proxy = try HelperProgram(["python3", "-c", Self.tunnel, String(origin.port)])
            defer { proxy.stop() }
            let port = try #require(proxy.line(after: "port ")).prefix { $0.isNumber }
            var configuration = FetchConfiguration()
            configuration.proxy = try FetchProxy("http://127.0.0.1:\(port)")
            configuration.authoritiesFile = names.first
            let transport = CurlTransport(configuration)
            defer { transport.shutdown() }
            let url = "https://pictures.test:\(origin.port)/a"
            if names.isEmpty {
                #expect(try await failure(transport, url).code == .tls)
            } else {
                let response = try await transport.fetch(FetchRequest(url: SourceURL(url)))
                #expect(response.status == 200 && response.body == Array("ok".utf8))
                #expect(response.fields.first("x-proxy") == nil)
            }
            #expect(proxy.line(startingWith: "CONNECT pictures.test:\(origin.port)") != nil)
        }
    }

    @Test(arguments: [
        "https://p.test:1", "p.test:3128", "http://p.test/x", "http://p.test?x", "http://", "socks5://p.test:1",
    ])
    func `other URLs name no proxy`(_ text: String) { #expect(throws: InvalidSetting.self) { try FetchProxy(text) } }
}
