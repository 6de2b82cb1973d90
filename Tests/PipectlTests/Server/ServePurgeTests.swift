import Glibc
import Pipeline
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Purges of a running server: over HTTP, by the command, and of a cache in front of it.
    @Suite struct ServePurge {
        private static let token = "0123456789abcdef0123456789abcdef"
        private static let authorization: KeyValuePairs<String, String> = ["Authorization": "Bearer " + token]
        /// A secret, which is never on a command line.
        private static let environment = ["PIPECTL_ADMIN_TOKEN=" + token]

        private static func origin(_ fields: KeyValuePairs<String, String> = [:]) throws -> LoopbackOrigin {
            let lines = fields.map { "\($0.key): \($0.value)\r\n" }.joined()
            return try LoopbackOrigin { request in
                let name = request.path == "/a.jpg" ? "night-tiny.jpg" : "meadow-small.jpg"
                let body = ScratchFolder.bytes(at: Samples.original(name)) ?? []
                return .raw(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: image/jpeg\r\n\(lines)"
                        + "Date: \(OriginDate.text(time(nil)))\r\nContent-Length: \(body.count)\r\n\r\n",
                    then: [.bytes(body)], keepsAlive: true)
            }
        }

        private static func source(_ source: String) -> String { "/source/" + RunningServer.encoded(source) }

        private static func post(_ json: String, to server: RunningServer) async throws -> RawResponse? {
            let client = try await RawClient.connect(server.port)
            let fields: KeyValuePairs = ["Authorization": "Bearer " + token, "Content-Length": "\(json.utf8.count)"]
            client.send(RunningServer.head("/purge", method: "POST", fields, closes: true) + json)
            return RawResponse.all(in: await client.receivedToEnd(), heads: false).first
        }

        @Test func `one picture's many URLs are one to requests, purges, tags and the cache command`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let folder = ScratchFolder()
            let mirror = "http://localhost:\(origin.port)/a.jpg?sig="
            let own = origin.url("/a.jpg?sig=")
            let hosts =
                #"hosts={"\#(origin.url(""))":{"ignoreQuery":["sig"]},"http://localhost:\#(origin.port)":{"aliasOf":"#
                + #""\#(origin.url(""))"}}"#
            let settings = [hosts, "tags=cache-tag"]
            try await RunningServer.with(settings, folder: folder, environment: Self.environment) { server in
                for purged in [own + "7", mirror + "8"] {
                    for (index, url) in [own + "1", own + "2", mirror + "3"].enumerated() {
                        let answer = try await server.ask(RunningServer.variant("thumbnail:20,png", url))
                        let handling = try #require(answer["cache-status"])
                        #expect(answer.status == 200 && handling.contains("hit") == (index > 0), "\(url): \(handling)")
                    }
                    let answer = try await server.ask(Self.source(purged), method: "DELETE", Self.authorization)
                    #expect(answer.text.contains(#""records":1,"#), "\(answer.text)")
                }
                #expect(origin.requests.map(\.target) == ["/a.jpg?sig=1", "/a.jpg?sig=1"])
                _ = try await server.ask(RunningServer.variant("thumbnail:20,png", mirror + "9"))
            }
            func cache(_ words: String...) async throws -> ChildProgram.Ended {
                try await ChildProgram.run(
                    ["cache"] + words + ["--cache", folder("cache"), "--set", hosts], folder: folder.path)
            }
            let listed = try await cache("list", "--json")
            #expect(listed.text.contains(#""source":"\#(origin.url("/a.jpg"))""#), "\(listed.text)")
            let inspected = try await cache("inspect", mirror + "10")
            #expect(inspected.exit == 0 && inspected.text.contains(origin.url("/a.jpg")), "\(inspected.errors)")
            let purged = try await cache("purge", own + "11")
            #expect(purged.text.contains("1 record, "), "\(purged.text) \(purged.errors)")
        }

        @Test func `a hard purge takes original and variants from both processes on the folder`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let folder = ScratchFolder()
            try await RunningServer.with(folder: folder, environment: Self.environment) { one in
                try await RunningServer.with(folder: folder, environment: Self.environment) { two in
                    let (a, b) = (origin.url("/a.jpg"), origin.url("/b.jpg"))
                    let targets = ["thumbnail:20,png", "thumbnail:30,png"].map { RunningServer.variant($0, a) }
                    let all = targets + [RunningServer.original(a), RunningServer.variant("thumbnail:20,png", b)]
                    for server in [one, two, one, two] { for target in all { _ = try await server.ask(target) } }
                    for server in [one, two] {
                        for target in all {
                            #expect(try await server.ask(target)["cache-status"]?.contains("detail=memory") == true)
                        }
                    }
                    #expect(origin.requests.count == 2)
                    #expect(try await one.ask(Self.source(a), method: "DELETE").status == 401)
                    let purged = try await one.ask(Self.source(a), method: "DELETE", Self.authorization)
                    let told = String(decoding: purged.body, as: UTF8.self)
                    #expect(
                        purged.status == 200 && told.contains(#""records":1,"originals":1,"variants":2,"#), "\(told)")
                    #expect(try await two.ask(all[3])["cache-status"]?.contains("detail=memory") == true)
                    let gone = try await two.ask(all[2])
                    #expect(gone["cache-status"]?.contains("fwd=uri-miss") == true)
                    for server in [one, two] {
                        for target in targets {
                            let again = try await server.ask(target)
                            #expect(again["cache-status"]?.contains("detail=memory") == false)
                        }
                    }
                    #expect(origin.requests.count == 3)
                }
            }
        }

        @Test func `a purge by tag over HTTP or by the command is soft if asked, and needs the token`() async throws {
            let origin = try Self.origin(["Cache-Tag": "product-17"])
            defer { origin.stop() }
            try await RunningServer.with(environment: Self.environment) { server in
                let target = RunningServer.variant("thumbnail:20,png", origin.url("/a.jpg"))
                _ = try await server.ask(target)
                #expect(try await server.ask(target)["cache-status"]?.contains("detail=memory") == true)
                let soft = try #require(try await Self.post(#"{"tags":["product-17"]}"#, to: server))
                #expect(
                    String(decoding: soft.body, as: UTF8.self).hasPrefix(#"{"mode":"soft","sources":1,"records":1"#))
                #expect(try await server.ask(target)["cache-control"] == "max-age=0")
                // The validation behind the answer ends with the second request.
                try await waitWhile { origin.requests.count < 2 }
                let command = ["cache", "purge", "--tag", "product-17", "--cache", server.folder("cache")]
                let again = try await ChildProgram.run(command + ["--soft", "--json"], folder: server.folder.path)
                #expect(again.text.contains(#""tag":"product-17","mode":"soft","sources":1,"records":1"#), "\(again)")
                let hard = try await ChildProgram.run(command, folder: server.folder.path)
                #expect(hard.exit == 0 && hard.text.hasPrefix("removed 1 source: 1 record, 1 body and "), "\(hard)")
                #expect(try await server.ask(target)["cache-status"]?.contains("fwd=uri-miss") == true)
            }
        }

        @Test func `a short token is an error at the start that does not show it`() async throws {
            let folder = ScratchFolder()
            let child = try await ChildProgram(
                ["serve", "--listen", "127.0.0.1:0", "--cache", folder("cache")], folder: folder.path,
                environment: ["PIPECTL_ADMIN_TOKEN=tooshort"]
            ).end
            #expect(child.exit == 2 && child.errors.contains("`adminToken`") && !child.errors.contains("tooshort"))
        }

        /// Debian's Varnish in front of a server.
        private struct Varnish {
            let folder = ScratchFolder()
            let program: HelperProgram
            let port: Int

            static var isInstalled: Bool { access("/usr/sbin/varnishd", X_OK) == 0 }

            init(before server: RunningServer) throws {
                _ = folder.write(
                    """
                    vcl 4.1;
                    backend default { .host = "127.0.0.1"; .port = "\(server.port)"; }
                    sub vcl_recv {
                        if (req.method == "BAN") {
                            ban("obj.http.Cache-Tag ~ (^|,)" + req.http.X-Tag + "(,|$)");
                            return (synth(200, "Banned"));
                        }
                    }
                    """, to: "default.vcl")
                program = try HelperProgram([
                    "varnishd", "-F", "-n", folder("work"), "-a", "127.0.0.1:0", "-f", folder("default.vcl"), "-s",
                    "malloc,16m", "-j", "none",
                ])
                try #require(program.line(startingWith: "Debug: Child (") != nil, "\(program.text)")
                let asked = try HelperProgram(["varnishadm", "-n", folder("work"), "debug.listen_address"])
                _ = asked.waitForEnd()
                // `a0 127.0.0.1 35347`.
                let words = asked.text.split(whereSeparator: \.isWhitespace)
                port = try #require(words.count >= 3 ? Int(words[2]) : nil, "\(asked.text)")
            }
        }

        @Test(.enabled(if: Varnish.isInstalled, "Debian's package varnish is not installed"))
        func `a Varnish in front drops variants by tag`() async throws {
            let origin = try Self.origin(["Cache-Tag": "product-17, all"])
            defer { origin.stop() }
            try await RunningServer.with(["tags=cache-tag"], environment: Self.environment) { server in
                let varnish = try Varnish(before: server)
                defer { varnish.program.stop() }
                let front = RunningServer(server, port: varnish.port)
                let (a, b) = (origin.url("/a.jpg"), origin.url("/b.jpg"))
                let target = RunningServer.variant("thumbnail:20,png", a)
                let other = RunningServer.variant("thumbnail:20,png", b)
                /// Varnish names two requests in a hit: this one, and the one that brought the object.
                func isHit(_ target: String) async throws -> Bool {
                    let answer = try await front.ask(target)
                    #expect(answer.status == 200)
                    return answer["x-varnish"]?.split(separator: " ").count == 2
                }
                func ban(_ tag: String) async throws {
                    #expect(try await front.ask("/", method: "BAN", ["X-Tag": tag]).status == 200)
                }
                for target in [target, other] {
                    #expect(try await !isHit(target))
                    #expect(try await isHit(target))
                }
                try await ban("product-1")
                #expect(try await isHit(target))
                try await ban("product-17")
                for target in [target, other] {
                    #expect(try await !isHit(target))
                    #expect(try await isHit(target))
                }
                // As a purge of one source continues: first here, then in front, by the source's own tag.
                let tag = try #require(try await server.ask(target)["cache-tag"]?.split(separator: ",").last)
                #expect(tag.hasPrefix("src-"))
                _ = try await server.ask(Self.source(a), method: "DELETE", Self.authorization)
                try await ban(String(tag))
                #expect(try await isHit(other))
                #expect(try await !isHit(target))
                #expect(origin.requests.count == 3)
            }
        }
    }
}
