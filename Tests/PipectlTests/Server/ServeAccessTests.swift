import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    @Suite struct ServeAccess {
        private static func origin() throws -> FolderOrigin { try FolderOrigin(folder: Samples.folder, maxAge: 3600) }

        @Test
        func
            `without keys and without leave for unsigned URLs it starts on loopback only, and one line says what to do`()
            async throws
        {
            let folder = ScratchFolder()
            for arguments in [
                ["--listen", "0.0.0.0:0"], ["--listen", "unix:" + folder("s")],
                ["--listen", "127.0.0.1:0", "--set", "allowUnsigned=false"],
            ] {
                let ended = try await ChildProgram.run(
                    ["serve", "--cache", folder("cache")] + arguments, folder: folder.path)
                #expect(ended.exit == 2 && ended.output.isEmpty && ended.errors.split(separator: "\n").count == 1)
                #expect(
                    ended.errors.contains("keysFile") && ended.errors.contains("allowUnsigned=true"), "\(ended.errors)")
            }
        }

        @Test func `without keys this machine is served, and what a proxy passes on is refused, hits too`()
            async throws
        {
            let origin = try Self.origin()
            defer { origin.stop() }
            let server = try await RunningServer.start(unsigned: nil)
            let target = RunningServer.variant("thumbnail:20,png", origin.url("/originals/night-tiny.jpg"))
            for _ in 0..<2 {
                #expect(try await server.ask(target, host: "localhost:\(server.port)").status == 200)
                for field in ["Forwarded": "for=192.0.2.1", "X-Forwarded-For": "192.0.2.1", "Via": "1.1 a"] {
                    let answer = try await server.ask(target, host: "localhost", [field.key: field.value])
                    #expect(answer.status == 403 && answer.problem == "bad-signature", "\(field)")
                }
            }
            #expect(try await server.ask("/").status == 200)
            let ended = await server.stop()
            #expect(
                ended.errors.contains("only direct connections from this machine") && ended.errors.contains("keysFile"))
        }

        @Test func `without keys other names for this machine are refused, and pages of other sites get nothing`()
            async throws
        {
            let origin = try Self.origin()
            defer { origin.stop() }
            let server = try await RunningServer.start(unsigned: nil)
            let url = origin.url("/originals/night-tiny.jpg")
            let original = RunningServer.original(url)
            let info = original.replacing("/original/", with: "/info/")
            for target in [RunningServer.variant("thumbnail:20,png", url), original, info, "/metrics"] {
                for _ in 0..<2 {
                    #expect(try await server.ask(target, host: "127.0.0.1:1").status == 200)
                    for host in ["test", "127.0.0.1.test", "localhost.test"] {
                        #expect(try await server.ask(target, host: host).status == 403, "\(target)")
                    }
                }
            }
            let variant = RunningServer.variant("thumbnail:20,png", url)
            for target in [variant, original, info, "/", "/page/cache.json", "/health", "/ready", "/metrics", "/none"] {
                let usual = target == "/none" ? 404 : 200
                for (site, mode, status) in [
                    ("cross-site", "navigate", 403), ("cross-site", "no-cors", 403), ("same-origin", "cors", usual),
                    ("same-site", "cors", usual), ("none", "navigate", usual),
                ] {
                    let fields: KeyValuePairs = ["Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode]
                    let answer = try await server.ask(target, host: "localhost", fields)
                    #expect(answer.status == status, "\(target) \(site) \(mode)")
                    #expect(answer.values("cross-origin-resource-policy") == ["same-origin"], "\(target)")
                }
            }
            _ = await server.stop()
        }

        @Test func `without keys the operators' address is this machine's alone`() async throws {
            let folder = ScratchFolder()
            let ended = try await ChildProgram.run(
                [
                    "serve", "--listen", "127.0.0.1:0", "--set", "server.adminListen=0.0.0.0:0", "--cache",
                    folder("cache"),
                ],
                folder: folder.path)
            #expect(ended.exit == 2 && ended.errors.contains("the server has no keys"), "\(ended.errors)")
            let server = try await RunningServer.start(
                ["server.adminListen=127.0.0.1:0"], unsigned: nil, pictures: Samples.folder + "/originals",
                hasToken: true)
            let operators = try await server.operators()
            for target in ["/page/folder.json?folder=pictures:", "/page/cache.json", "/"] {
                #expect(try await operators.ask(target, host: "localhost").status == 401, "\(target)")
            }
            for target in ["/metrics", "/ready"] {
                #expect(try await operators.ask(target, host: "localhost").status == 200, "\(target)")
            }
            #expect(try await operators.ask("/metrics", host: "evil.test").status == 403)
            _ = await server.stop()
        }

        @Test func `pages of other sites show the pictures of a server that serves unsigned URLs`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let target = RunningServer.variant("thumbnail:20,png", origin.url("/originals/night-tiny.jpg"))
            try await RunningServer.with { server in
                let answer = try await server.ask(target, ["Sec-Fetch-Site": "cross-site"])
                #expect(answer.status == 200 && answer["cross-origin-resource-policy"] == nil)
            }
            // Without keys, pages that `server.cors` names are answered.
            let server = try await RunningServer.start(["server.cors=https://a.test"], unsigned: nil)
            for (page, status) in [("https://a.test", 200), ("https://b.test", 403)] {
                let fields: KeyValuePairs = ["Sec-Fetch-Site": "cross-site", "Origin": page]
                #expect(try await server.ask(target, host: "localhost", fields).status == status)
            }
            _ = await server.stop()
        }

        @Test func `why a source is refused is in the log once for each host, and operators are told`() async throws {
            try await RunningServer.with([#"sources.deny=["a.test","b.test"]"#]) { server in
                for source in ["http://a.test/1", "http://a.test/2", "http://b.test/1"] {
                    for target in [RunningServer.original(source), RunningServer.variant("png", source)] {
                        let answer = try await server.ask(target)
                        #expect(answer.problem == "source-refused" && answer.text.contains("in `sources.deny`"))
                        let passed = try await server.ask(target, ["X-Forwarded-For": "192.0.2.1"])
                        #expect(passed.problem == "source-refused" && !passed.text.contains("sources.deny"))
                    }
                }
                let ended = await server.stop()
                let lines = ended.errors.split(separator: "\n").filter { $0.contains("in `sources.deny`") }
                #expect(lines.count == 2 && lines.first?.contains("http://a.test/1: ") == true, "\(ended.errors)")
            }
        }

        @Test func `a server with keys that serves unsigned URLs warns at its start`() async throws {
            let server = try await RunningServer.start([#"keys={"a":"00112233445566778899aabbccddeeff"}"#])
            let ended = await server.stop()
            #expect(ended.errors.contains("pipectl: warning: unsigned URLs are served"), "\(ended.errors)")
            #expect(!ended.errors.contains("00112233"))
        }

        @Test func `a fallback picture is rendered by the recipe, with a status of choice`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let settings = ["server.fallback=\(Samples.original("balloon.gif"))", "server.fallbackStatus=200"]
            try await RunningServer.with(settings) { server in
                for _ in 0..<2 {
                    let answer = try await server.ask(
                        RunningServer.variant("thumbnail:20x10:fill,png", origin.url("/nothing.jpg")))
                    let header = try ImageHeader.probe(answer.body)
                    #expect(answer.status == 200 && answer["cache-control"] == "no-store")
                    #expect(header.format == .png && header.width == 20 && header.height == 10)
                }
                // A picture that cannot be rendered with the recipe is sent unchanged.
                let masked = try await server.ask(RunningServer.variant("mask:none", origin.url("/nothing.jpg")))
                #expect(masked["content-type"] == "image/gif" || masked.status != 404)
            }
        }

        @Test func `a fallback picture takes the place of one that is missing or damaged, and is not kept`()
            async throws
        {
            let origin = try Self.origin()
            defer { origin.stop() }
            let picture = Samples.original("balloon.gif")
            try await RunningServer.with(["server.fallback=\(picture)"]) { server in
                let bytes = ScratchFolder.bytes(at: picture)
                let rendered = try await server.ask(
                    RunningServer.variant("thumbnail:20", origin.url("/originals/balloon.gif")))
                for (path, status) in [("/nothing.jpg", 404), ("/broken/truncated.jpg", 422)] {
                    let target = RunningServer.variant("thumbnail:20", origin.url(path))
                    for _ in 0..<2 {
                        let answer = try await server.ask(target)
                        #expect(answer.status == status && answer.body == rendered.body, "\(path) \(answer.status)")
                        #expect(answer["content-type"] == "image/gif" && answer["cache-control"] == "no-store")
                        #expect(answer["etag"] == nil && answer["vary"] == "Accept")
                    }
                    let head = try await server.ask(target, method: "HEAD")
                    #expect(head.status == status && head["content-length"] == String(rendered.body.count))
                }
                // Requests that are wrong, and originals, keep their problems.
                #expect(
                    try await server.ask(RunningServer.variant("thumbnial", origin.url("/a"))).problem
                        == "invalid-recipe")
                #expect(try await server.ask(RunningServer.original(origin.url("/nothing.jpg"))).body != bytes)
                #expect(try await server.ask("/nothing").problem == "unknown-path")
            }
        }

        @Test func `one client's misses are limited, its hits are not`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with(["server.rate=0.001"]) { server in
                let target = RunningServer.variant("thumbnail:20,png", origin.url("/originals/night-tiny.jpg"))
                for _ in 0..<3 { #expect(try await server.ask(target).status == 200) }
                let refused = try await server.ask(target.replacing(":20", with: ":21"))
                #expect(refused.status == 429 && refused.problem == "too-many-requests")
                #expect(refused["retry-after"].flatMap { Int($0) }.map { (900...1000).contains($0) } == true)
                #expect(try await server.ask(target).status == 200)
                #expect(origin.requests.count == 1)
            }
        }

        @Test func `sources, presets, steps and sizes are the operator's to choose`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let base = origin.url("/originals/")
            try await RunningServer.with([
                "sources.allow=\(base)", #"baseURLs={"o":"\#(base)"}"#, #"presets={"card":"blur:1,png"}"#,
                "recipes.steps=thumbnail,png", "sizes.steps=true",
            ]) { server in
                for _ in 0..<2 {
                    let short = try await server.ask(RunningServer.variant("thumbnail:35,png", "o:night-tiny.jpg"))
                    let long = try await server.ask(
                        RunningServer.variant("thumbnail:40,png", origin.url("/originals/night-tiny.jpg")))
                    #expect(short.status == 200 && short["etag"] == long["etag"])
                    #expect(try await server.ask(RunningServer.variant("@card", "o:night-tiny.jpg")).status == 200)
                    for (recipe, source, problem) in [
                        ("blur:1,png", "o:night-tiny.jpg", "recipe-not-allowed"),
                        ("thumbnail:40,png", "o:../broken/truncated.jpg", "invalid-source"),
                        ("thumbnail:40,png", origin.url("/broken/truncated.jpg"), "source-refused"),
                    ] { #expect(try await server.ask(RunningServer.variant(recipe, source)).problem == problem) }
                }
                #expect(origin.requests.count == 1)
            }
        }
    }
}
