import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct ServeOriginal {
        /// The settings an independent conformance suite is driven with.
        private static let open = [#"acceptedTypes=["*/*"]"#, #"forwardFields=["*"]"#]

        /// Names that this server adds, in lower case.
        private static let added: Set<String> = [
            "cache-status", "via", "age", "content-length", "connection", "content-disposition",
            "content-security-policy",
            "x-content-type-options",
        ]

        private static func head(_ status: Int, _ fields: [(String, String)], body: String = "") -> OriginReply {
            let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
            let length = status == 204 || status == 304 ? "" : "Content-Length: \(body.utf8.count)\r\n"
            return .raw("HTTP/1.1 \(status) Whatever\r\n\(lines)\(length)\r\n\(body)", keepsAlive: true)
        }

        @Test(arguments: [200, 203, 204, 299, 301, 302, 304, 400, 404, 410, 499, 501, 503, 599, 999])
        func `status, fields and body come back as the origin sent them`(_ status: Int) async throws {
            let fields = [
                ("date", OriginDate.text(Self.time)), ("Set-Cookie", "a=1"), ("X-Test", "one"), ("Set-Cookie", "b=2"),
                ("Content-Encoding", "nonsense"), ("x-test", "two"), ("Location", "/elsewhere"),
                ("Content-Range", "bytes 0-1/2"), ("Vary", "X-Other"), ("Via", "1.0 before"),
            ]
            let body = status == 204 || status == 304 ? "" : "\u{1F}\u{8B} not gzip at all"
            let origin = try LoopbackOrigin { _ in Self.head(status, fields, body: body) }
            defer { origin.stop() }
            try await RunningServer.with(Self.open) { server in
                // A 304 comes through where the client asked for it.
                let answer = try await server.ask(
                    RunningServer.original(origin.url("/x")), status == 304 ? ["If-None-Match": "\"a\""] : [:])
                #expect(answer.status == status && answer.text == body)
                let theirs = answer.lines.filter { !Self.added.contains($0.name.lowercased()) }
                let sent = fields.filter { $0.0 != "Via" }
                #expect(theirs.map { "\($0.name): \($0.value)" } == sent.map { "\($0.0): \($0.1)" })
                #expect(answer.values("via") == ["1.0 before", "1.1 pipeline"])
                #expect(answer.values("cache-status").count == 1 && answer["age"] == nil)
                #expect(answer["content-length"] == (status == 204 || status == 304 ? nil : "\(body.utf8.count)"))
                #expect(origin.requests.count == 1)
            }
        }

        @Test func `the second answer is the first one, older`() async throws {
            let origin = try LoopbackOrigin { _ in
                Self.head(200, [("Cache-Control", "max-age=1000"), ("Age", "30"), ("X", "\u{E9}")], body: "hello")
            }
            defer { origin.stop() }
            try await RunningServer.with(Self.open) { server in
                let path = RunningServer.original(origin.url("/x"))
                let first = try await server.ask(path)
                #expect(first.values("age") == ["30"])
                #expect(first["cache-status"]?.contains("fwd=uri-miss") == true && first["date"] != nil)
                let second = try await server.ask(path)
                let age = try #require(second["age"].flatMap { Int($0) })
                #expect(second.values("age").count == 1 && age >= 30 && age < 200)
                #expect(second["cache-status"]?.hasPrefix("pipeline; hit; ttl=") == true)
                #expect(second.text == "hello" && second["date"] == first["date"] && second["x"] == first["x"])
                let head = try await server.ask(path, method: "HEAD")
                #expect(head.status == 200 && head["content-length"] == "5")
                #expect(origin.requests.count == 1)
            }
        }

        @Test func `the client's fields reach the origin where they are forwarded`() async throws {
            let origin = try LoopbackOrigin { _ in Self.head(200, [("Cache-Control", "no-store")], body: "x") }
            defer { origin.stop() }
            let fields: KeyValuePairs = [
                "Test-ID": "7", "Pragma": "foo", "Cache-Control": "nothing-to-see-here", "Connection": "x-hop",
                "X-Hop": "1", "TE": "trailers", "Authorization": "Basic eDp5",
            ]
            try await RunningServer.with(Self.open) { server in
                _ = try await server.ask(RunningServer.original(origin.url("/all")), fields)
            }
            try await RunningServer.with([#"acceptedTypes=["*/*"]"#, "forwardFields=test-id"]) { server in
                _ = try await server.ask(RunningServer.original(origin.url("/one")), fields)
            }
            try await RunningServer.with([#"acceptedTypes=["*/*"]"#]) { server in
                _ = try await server.ask(RunningServer.original(origin.url("/none")), fields)
            }
            let (all, one, none) = (origin.requests[0], origin.requests[1], origin.requests[2])
            #expect(all["test-id"] == "7" && all["pragma"] == "foo" && all["cache-control"] == "nothing-to-see-here")
            #expect(all["authorization"] == "Basic eDp5" && all["via"] == "1.1 pipeline")
            #expect(all["x-hop"] == nil && all["te"] == nil && all["host"] == "127.0.0.1:\(origin.port)")
            #expect(one["test-id"] == "7" && one["pragma"] == nil && one["authorization"] == nil)
            #expect(none["test-id"] == nil && none["via"] == nil)
        }

        @Test func `conditions and ranges act on what is stored, directives where they are forwarded`() async throws {
            let origin = try LoopbackOrigin { _ in
                Self.head(
                    200, [("Cache-Control", "max-age=1000"), ("ETag", "\"abc\""), ("Content-Type", "text/plain")],
                    body: "0123456789")
            }
            defer { origin.stop() }
            let path = RunningServer.original(origin.url("/x"))
            try await RunningServer.with(Self.open) { server in
                _ = try await server.ask(path)
                for tags in ["\"abc\"", "W/\"abc\"", "\"a\", \"abc\"", "*"] {
                    let same = try await server.ask(path, ["If-None-Match": tags])
                    #expect(same.status == 304 && same["etag"] == "\"abc\"" && same["age"] != nil)
                    #expect(same["cache-control"] == "max-age=1000")
                }
                let part = try await server.ask(path, ["Range": "bytes=1-2"])
                #expect(part.status == 206 && part.text == "12" && part["content-range"] == "bytes 1-2/10")
                #expect(part["etag"] == "\"abc\"" && part["content-type"] == "text/plain")
                #expect(try await server.ask(path, ["Range": "bytes=20-"]).status == 416)
                let cached = try await server.ask(path, ["Cache-Control": "only-if-cached"])
                #expect(cached.status == 200)
                let missing = try await server.ask(
                    RunningServer.original(origin.url("/y")), ["Cache-Control": "only-if-cached"])
                #expect(missing.status == 504 && missing.problem == "not-cached")
                #expect(origin.requests.count == 1)
                _ = try await server.ask(path, ["Cache-Control": "no-cache"])
                #expect(origin.requests.count == 2 && origin.requests.last?["if-none-match"] == "\"abc\"")
            }
            try await RunningServer.with([#"acceptedTypes=["*/*"]"#]) { server in
                _ = try await server.ask(path)
                // They cost the origin nothing.
                for _ in 0..<2 {
                    #expect(try await server.ask(path, ["If-None-Match": "\"abc\""]).status == 304)
                    #expect(try await server.ask(path, ["If-None-Match": "\"b\""]).status == 200)
                    let part = try await server.ask(path, ["Range": "bytes=1-2"])
                    #expect(part.status == 206 && part.text == "12")
                }
                _ = try await server.ask(path, ["Cache-Control": "no-cache"])
                #expect(origin.requests.count == 3)
            }
        }

        @Test func `a tag beyond ASCII goes there and back unharmed if it is UTF-8, and else is a 400`() async throws {
            let tag = Array("\"é\u{FF}\"".utf8)
            let origin = try LoopbackOrigin { _ in
                .raw(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nETag: ",
                    then: [.bytes(tag + Array("\r\nContent-Length: 1\r\n\r\nx".utf8))], keepsAlive: true)
            }
            defer { origin.stop() }
            try await RunningServer.with(Self.open) { server in
                let path = RunningServer.original(origin.url("/x"))
                let answer = try await server.ask(path)
                #expect(answer["etag"]?.unicodeScalars.map(\.value) == tag.map(UInt32.init))
                let client = try await RawClient.connect(server.port)
                let head = "GET \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIf-None-Match: "
                client.send(Array(head.utf8) + tag + Array("\r\n\r\n".utf8))
                #expect(RawResponse.all(in: await client.receivedToEnd()).map(\.status) == [304])
                let other = try await RawClient.connect(server.port)
                other.send(Array(head.utf8) + [0x22, 0xE9, 0x22] + Array("\r\n\r\n".utf8))
                let refused = try #require(RawResponse.all(in: await other.receivedToEnd()).first)
                #expect(
                    refused.problem == "malformed-request"
                        && refused.text.contains("`If-None-Match` is not valid UTF-8"))
            }
        }

        @Test func `interim responses come through once, and only to those who know them`() async throws {
            let origin = try LoopbackOrigin { _ in
                .raw(
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
                        + "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 2\r\n\r\nhi",
                    keepsAlive: true)
            }
            defer { origin.stop() }
            try await RunningServer.with(Self.open) { server in
                let path = RunningServer.original(origin.url("/x"))
                let client = try await RawClient.connect(server.port)
                client.send(RunningServer.head(path) + RunningServer.head(path, closes: true))
                let answers = RawResponse.all(in: await client.receivedToEnd())
                #expect(answers.map(\.status) == [103, 200, 200])
                #expect(answers.map { $0["link"] } == ["</a.css>", nil, nil])
                #expect(answers.map(\.text) == ["", "hi", "hi"])
                let old = try await RawClient.connect(server.port)
                old.send("GET \(RunningServer.original(origin.url("/y"))) HTTP/1.0\r\n\r\n")
                #expect(RawResponse.all(in: await old.receivedToEnd()).map(\.status) == [200])
            }
        }

        @Test func `fields about the server's own host stay behind, those of interim responses too`() async throws {
            let host = [
                "Set-Cookie: a=1", "Clear-Site-Data: \"*\"", "X-Accel-Redirect: /etc/passwd",
                "Access-Control-Allow-Origin: *",
            ].map { $0 + "\r\n" }.joined()
            let origin = try LoopbackOrigin { _ in
                .raw(
                    "HTTP/1.1 103 Early Hints\r\n\(host)Content-Language: de\r\n\r\nHTTP/1.1 200 OK\r\n\(host)Content-Language: en\r\n"
                        + "Cache-Control: max-age=100\r\nContent-Length: 2\r\n\r\nhi",
                    keepsAlive: true)
            }
            defer { origin.stop() }
            try await RunningServer.with { server in
                let path = RunningServer.original(origin.url("/x"))
                let client = try await RawClient.connect(server.port)
                client.send(RunningServer.head(path) + RunningServer.head(path, closes: true))
                let answers = RawResponse.all(in: await client.receivedToEnd())
                #expect(answers.map(\.status) == [103, 200, 200])
                #expect(answers.map { $0["content-language"] } == ["de", "en", "en"])
                for name in ["set-cookie", "clear-site-data", "x-accel-redirect", "access-control-allow-origin"] {
                    #expect(answers.allSatisfy { $0[name] == nil }, "\(name)")
                }
                #expect(answers.last?["content-disposition"] == "attachment")
            }
        }

        @Test func `nothing usable is 502 or 504 and holds nothing that was stored`() async throws {
            let origin = try LoopbackOrigin { request in
                if request.path == "/hang" { return .hang }
                let isFirst = request["if-none-match"] == nil && request.path == "/stale"
                return isFirst
                    ? Self.head(
                        200, [("Cache-Control", "max-age=0, must-revalidate"), ("ETag", "\"a\""), ("X-Secret", "s")],
                        body: "x") : .close
            }
            defer { origin.stop() }
            try await RunningServer.with(Self.open + ["fetch.totalSeconds=2"]) { server in
                let path = RunningServer.original(origin.url("/stale"))
                #expect(try await server.ask(path).status == 200)
                for (target, status) in [(path, 502), (RunningServer.original(origin.url("/hang")), 504)] {
                    let answer = try await server.ask(target)
                    #expect(answer.status == status && answer["etag"] == nil && answer["x-secret"] == nil)
                    #expect(answer["cache-control"] == "no-store")
                }
            }
        }

        private static let time = 784_111_777
    }
}
