import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Requests that may change things, through a running server.
    @Suite struct ServeChanges {
        private func withServer(
            _ settings: [String], _ body: (RunningServer, LoopbackOrigin) async throws -> Void
        ) async throws {
            let origin = try LoopbackOrigin { request in
                .response(200, ["Cache-Control": "max-age=3600"], body: Array(request.method.utf8))
            }
            defer { origin.stop() }
            try await RunningServer.with([#"acceptedTypes=["*/*"]"#] + settings) { try await body($0, origin) }
        }

        private func send(_ server: RunningServer, _ text: String) async throws -> [RawResponse] {
            let client = try await RawClient.connect(server.port)
            client.send(text)
            return RawResponse.all(in: await client.receivedToEnd())
        }

        @Test func `without the setting no other method reaches an origin`() async throws {
            try await withServer([#"forwardFields=["Accept"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                let refused = try await send(
                    server,
                    "POST \(target) HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
                #expect(refused.map(\.status) == [405] && refused.first?["allow"] == "GET, HEAD")
                #expect(refused.first?.problem == "method-not-allowed" && origin.requests.isEmpty)
            }
        }

        @Test func `methods of the setting reach it with their body, others and other paths do not`() async throws {
            try await withServer([#"forwardMethods=["PUT"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                _ = try await server.ask(target)
                #expect(try await server.ask(target)["cache-status"]?.contains("hit") == true)
                let put = try await send(
                    server,
                    "PUT \(target) HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nX-Own: 1\r\nCookie: a=b\r\n"
                        + "Content-Length: 3\r\nConnection: close\r\n\r\nabc")
                #expect(put.map(\.status) == [200] && put.first?.text == "PUT")
                let got = try #require(origin.requests.last)
                #expect(got.method == "PUT" && got.body == Array("abc".utf8))
                #expect(got["content-type"] == "text/plain" && got["via"] == "1.1 pipeline")
                #expect(got["x-own"] == nil && got["cookie"] == nil)
                #expect(try await server.ask(target)["cache-status"]?.hasPrefix("pipeline; fwd=uri-miss") == true)

                let post = try await server.ask(target, method: "POST")
                #expect(post.status == 405 && post["allow"] == "GET, HEAD, PUT")
                let variant = RunningServer.variant("thumbnail:10,jpeg", origin.url("/a"))
                #expect(try await server.ask(variant, method: "PUT")["allow"] == "GET, HEAD")
                #expect(try await server.ask("/health", method: "PUT").status == 405)
                #expect(origin.requests.count == 3)
            }
        }

        @Test
        func `a body in chunks, or one that waits for leave to be sent, arrives whole, and the connection goes on`()
            async throws
        {
            try await withServer([#"forwardMethods=["*"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                let client = try await RawClient.connect(server.port)
                client.send(
                    "POST \(target) HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
                _ = await client.responses(1)
                client.send("POST \(target) HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
                #expect(await client.responses(2).map(\.status) == [200, 100])
                #expect(origin.requests.count == 1)
                client.send("wxyz")
                #expect(await client.responses(3).map(\.status) == [200, 100, 200])
                client.send(RunningServer.head("/health", closes: true))
                #expect(RawResponse.all(in: await client.receivedToEnd()).map(\.status) == [200, 100, 200, 200])
                #expect(origin.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["abcde", "wxyz"])
                #expect(origin.requests.map { $0["content-length"] } == ["5", "4"])
            }
        }

        /// Every byte there is, over and over: none of them is a text in any coding.
        private static let bytes = (0..<9000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 256) }

        @Test(arguments: [true, false])
        func `bytes of a body arrive as they are, and only as many as were announced`(waits: Bool) async throws {
            try await withServer([#"forwardMethods=["*"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                let client = try await RawClient.connect(server.port)
                let expects = waits ? "Expect: 100-continue\r\n" : ""
                client.send(
                    "PUT \(target) HTTP/1.1\r\nHost: h\r\nX-A: \u{FC}\r\nContent-Length: \(Self.bytes.count)\r\n"
                        + "\(expects)\r\n")
                // The body arrives in a separate read.
                if waits { #expect(await client.responses(1).map(\.status) == [100]) }
                client.send(Self.bytes)
                client.send(RunningServer.head("/health", closes: true))
                let statuses = RawResponse.all(in: await client.receivedToEnd()).map(\.status)
                #expect(statuses == (waits ? [100, 200, 200] : [200, 200]))
                #expect(origin.requests.map(\.body) == [Self.bytes])
            }
        }

        @Test func `nothing within a body is taken for a request`() async throws {
            try await withServer([#"forwardMethods=["*"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                let hidden = RunningServer.head(RunningServer.original(origin.url("/hidden")))
                for method in ["PUT", "GET"] {
                    let client = try await RawClient.connect(server.port)
                    let body = [UInt8](repeating: 0xFF, count: hidden.utf8.count) + Array(hidden.utf8)
                    client.send(
                        "\(method) \(target) HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.count)\r\n"
                            + "Connection: close\r\n\r\n")
                    client.send(body)
                    #expect(RawResponse.all(in: await client.receivedToEnd()).map(\.status) == [200])
                }
                #expect(origin.requests.allSatisfy { $0.path == "/a" })
            }
        }

        @Test func `fields beyond ASCII right behind a body arrive as they were sent`() async throws {
            try await withServer([#"forwardMethods=["*"]"#, "forwardFields=X-Tenant"]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                let first = "POST \(target) HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n"
                let second = "x" + RunningServer.head(target, ["X-Tenant": "é"], closes: true)
                let answers = try await send(server, first + second)
                #expect(answers.map(\.status) == [200, 200])
                #expect(origin.requests.last?["x-tenant"] == "é")
            }
        }

        @Test func `what a change depends on goes with it, whatever is forwarded`() async throws {
            try await withServer([#"forwardMethods=["PUT"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                _ = try await send(
                    server,
                    "PUT \(target) HTTP/1.1\r\nHost: h\r\nIf-Match: \"v1\"\r\nContent-Range: bytes 0-2/9\r\n"
                        + "Connection: close\r\nContent-Length: 3\r\n\r\nabc")
                let got = try #require(origin.requests.last)
                #expect(got["if-match"] == "\"v1\"" && got["content-range"] == "bytes 0-2/9")
            }
        }

        @Test func `codings and methods that are not known are told so`() async throws {
            try await withServer([#"forwardMethods=["*"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                for coding in ["gzip, chunked", "chunked\r\nTransfer-Encoding: chunked", ""] {
                    let answer = try await send(
                        server, "POST \(target) HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \(coding)\r\n\r\n0\r\n\r\n")
                    #expect([400, 501].contains(answer.first?.status ?? 0) && answer.count == 1, "\(coding)")
                }
                let answer = try await send(server, "FOO \(target) HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(answer.map(\.problem) == ["malformed-request"] && answer.first?.text.contains("method") == true)
                #expect(origin.requests.isEmpty)
            }
        }

        @Test func `OPTIONS goes no further than it is to go`() async throws {
            try await withServer([#"forwardMethods=["*"]"#]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                let here = try await server.ask(target, method: "OPTIONS", ["Max-Forwards": "0"])
                #expect(here.status == 204 && here["allow"] == "GET, HEAD" && origin.requests.isEmpty)
                _ = try await server.ask(target, method: "OPTIONS", ["Max-Forwards": "5"])
                #expect(origin.requests.map { $0["max-forwards"] } == ["4"])
            }
        }

        @Test func `a body over the limit reaches no origin`() async throws {
            try await withServer([#"forwardMethods=["*"]"#, "server.bodyBytes=4"]) { server, origin in
                let target = RunningServer.original(origin.url("/a"))
                for body in [
                    "Content-Length: 5\r\n\r\nabcde", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
                ] {
                    let answer = try await send(server, "POST \(target) HTTP/1.1\r\nHost: h\r\n\(body)")
                    #expect(answer.map(\.status) == [413] && answer.first?.problem == "body-too-large")
                    #expect(answer.first?.text.contains("server.bodyBytes") == true)
                }
                #expect(origin.requests.isEmpty)
            }
        }

        @Test func `a method that cannot be passed on ends the program before it listens`() async throws {
            let folder = ScratchFolder()
            let child = try ChildProgram(
                [
                    "serve", "--listen", "127.0.0.1:0", "--cache", folder("cache"), "--set",
                    #"forwardMethods=["TRACE"]"#,
                ],
                folder: folder.path)
            let ended = await child.end
            #expect(ended.exit == 64 || ended.exit == 2, "\(ended.exit)")
            #expect(ended.errors.contains("forwardMethods") && ended.errors.contains("TRACE"))
        }
    }
}
