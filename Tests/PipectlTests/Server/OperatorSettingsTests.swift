import Glibc
import ImageServer
import Pipeline
import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    /// The settings that operators set first, and the examples in deploy/settings.
    @Suite struct OperatorSettings {
        private static func origin() throws -> FolderOrigin {
            try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
        }

        @Test func `own fields are sent with pictures and originals, from memory too, and with nothing else`()
            async throws
        {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with([#"server.fields={"Cross-Origin-Resource-Policy":"cross-origin"}"#]) {
                server in
                for target in [
                    RunningServer.variant("thumbnail:20", origin.url("/grey.jpg")),
                    RunningServer.original(origin.url("/grey.jpg")),
                ] {
                    for _ in 0..<3 {
                        let answer = try await server.ask(target)
                        #expect(answer.status == 200 && answer["cross-origin-resource-policy"] == "cross-origin")
                    }
                }
                #expect(try await server.ask("/health")["cross-origin-resource-policy"] == nil)
            }
        }

        @Test func `pages that are not in the list get nothing, from memory neither`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with([#"server.referrers=["*.example.org","example.org"]"#]) { server in
                let target = RunningServer.variant("thumbnail:20", origin.url("/grey.jpg"))
                for _ in 0..<2 {
                    #expect(try await server.ask(target).status == 200)
                    // Pages in the list, the server's own, and an empty field, as some proxies leave it.
                    for page in ["https://www.example.org/a?b", "http://test/page", ""] {
                        #expect(try await server.ask(target, ["Referer": page]).status == 200, "\(page)")
                    }
                    for page in ["https://example.com/", "https://example.org.evil.test/", "nonsense"] {
                        let answer = try await server.ask(target, ["Referer": page])
                        #expect(answer.status == 403 && answer.problem == "referrer-refused", "\(page)")
                    }
                }
                #expect(try await server.ask("/health", ["Referer": "https://example.com/"]).status == 200)
            }
        }

        @Test func `a page's path in the list is an error, since browsers send the origin alone`() async throws {
            let ended = try await CommandSite().plain([
                "serve", "--set", #"server.referrers=["example.org","https://example.org/shop"]"#,
            ])
            #expect(ended.exit == 2, "\(ended.errors)")
            #expect(ended.errors.contains("`https://example.org/shop` contains a path"), "\(ended.errors)")
            #expect(ended.errors.contains("write `https://example.org`"), "\(ended.errors)")
            let slash = try Settings(assignments: ["server.referrers=https://example.org/"]).serving()
            #expect(slash.1.referrers == ["https://example.org/"])
        }

        @Test func `paths begin with the mount point, those of probes need not`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with(["server.mountPoint=/images"]) { server in
                let path = RunningServer.variant("thumbnail:20", origin.url("/grey.jpg"))
                for _ in 0..<2 { #expect(try await server.ask("/images" + path).status == 200) }
                for target in [path, "/imagesx" + path, "/images", "/other/health"] {
                    let answer = try await server.ask(target)
                    #expect(answer.status == 404 && answer.problem == "unknown-path", "\(target)")
                }
                for target in [
                    "/health", "/images/health", "/ready", "/metrics", "http://test/health",
                    "http://test/images" + path,
                ] {
                    #expect(try await server.ask(target).status == 200, "\(target)")
                }
            }
        }

        @Test func `a watermark ends every recipe, presets too, and makes a variant of its own`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let targets = ["thumbnail:20,png", "@small"].map { RunningServer.variant($0, origin.url("/grey.jpg")) }
            let presets = #"presets={"small":"thumbnail:20,png"}"#
            let folder = ScratchFolder()
            let plain = try await RunningServer.with([presets], folder: folder) { server in
                try await server.ask(targets[0]).body
            }
            try await RunningServer.with([presets, "recipes.watermark=background:ff0000,circle"], folder: folder) {
                server in
                let marked = try await targets.asyncMap { try await server.ask($0) }
                #expect(marked.allSatisfy { $0.status == 200 && $0.body == marked[0].body })
                #expect(marked[0].body != plain)
                let long = Array(repeating: "rotate:90", count: 30).joined(separator: ",") + ",png"
                let answer = try await server.ask(RunningServer.variant(long, origin.url("/grey.jpg")))
                #expect(answer.problem == "invalid-recipe" && answer.text.contains("watermark"), "\(answer.text)")
            }
        }

        @Test func `a source without a name has the default base, and is the same source`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let settings = [#"baseURLs={"photos":"\#(origin.url("/"))"}"#, "defaultBase=photos"]
            try await RunningServer.with(settings) { server in
                for source in ["grey.jpg", "/grey.jpg", "photos:grey.jpg"] {
                    let answer = try await server.ask(RunningServer.variant("thumbnail:20", source))
                    #expect(answer.status == 200, "\(source)")
                }
                #expect(origin.requests.count == 1)
                for source in ["unknown:grey.jpg", "a:b/grey.jpg"] {
                    let answer = try await server.ask(RunningServer.variant("thumbnail:20", source))
                    #expect(answer.status == 400, "\(source)")
                }
            }
        }

        @Test func `an origin sees the User-Agent of the setting`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with(["fetch.userAgent=thumbs/2 (ops@example.org)"]) { server in
                _ = try await server.ask(RunningServer.variant("thumbnail:20", origin.url("/grey.jpg")))
            }
            #expect(origin.requests.map { $0["user-agent"] } == ["thumbs/2 (ops@example.org)"])
        }

        @Test(arguments: [
            ("server.fields={\"Content-Type\":\"a/b\"}", "`Content-Type` cannot be added"),
            ("server.fields={\"X Y\":\"a\"}", "is not a valid name of a header field"),
            ("server.fields={\"X\":\"\"}", "visible ASCII"),
            ("server.mountPoint=images", "begins with a slash"), ("server.mountPoint=/images/", "does not end in one"),
            ("recipes.watermark=overlay:logo", "no overlay `logo`"),
            ("server.fallbackStatus=304", "the status must be 200"),
            ("adminToken=replace-this-with-openssl-rand", "is a placeholder"),
            ("recipes.watermark=circle,png", "consist only of steps"), ("recipes.watermark=none", "recipe `none`"),
            ("defaultBase=photos", "no base URL has the name `photos`"), ("outputs=circle", "not an output"),
            ("fetch.userAgent=", "a valid field value"), ("server.fallbackStatus=100", "server.fallbackStatus"),
        ])
        func `what cannot be done ends the start and is named`(_ setting: String, _ words: String) async throws {
            let ended = try await CommandSite().plain(["serve", "--listen", "127.0.0.1:0", "--set", setting])
            #expect(ended.exit == 2 && ended.errors.contains(words), "\(ended.errors)")
        }

        @Test func `a token that stands in a shipped file is refused, as is every placeholder`() throws {
            let folder = Samples.folder + "/../deploy"
            let shipped = try HelperProgram(["grep", "-rhoE", "adminToken: *[^ ]+|ADMIN_TOKEN=[^ ]+", folder])
            #expect(shipped.waitForEnd() == 0)
            let tokens = shipped.text.split(separator: "\n").map { $0.split(whereSeparator: ": =".contains).last ?? "" }
            #expect(!tokens.isEmpty && tokens.allSatisfy { (try? AdminToken(String($0))) == nil }, "\(tokens)")
        }

        @Test(arguments: ["try", "website", "cdn", "intranet", "fleet"])
        func `an example of a deployment starts as it is and answers`(_ name: String) async throws {
            let path = Samples.folder + "/../deploy/settings/\(name).yaml"
            let text = String(decoding: try #require(ScratchFolder.bytes(at: path)), as: UTF8.self)
            let folder = ScratchFolder()
            let places = ["/etc/pipectl/", "/srv/", "/run/pipectl/", "/run/credentials/pipectl.service/"]
            let own = places.reduce(text) { $0.replacing($1, with: folder.path + "/") }
            let config = folder.write(own, to: "pipectl.yaml")
            folder.write("web: 00112233445566778899aabbccddeeff\n", to: "keys")
            let picture = try #require(ScratchFolder.bytes(at: Samples.original("grey.jpg")))
            for name in ["missing.png", "photos/2026/grey.jpg", "overlays/logo.png"] { folder.write(picture, to: name) }
            let server = try await RunningServer.start(folder: folder, unsigned: nil, config: config)
            let (mount, source) =
                name == "intranet" ? ("/pictures", "2026/grey.jpg") : ("", "https://media.invalid/nothing.jpg")
            let answer = try await server.ask(mount + RunningServer.variant("thumbnail:20", source))
            switch name {
            case "intranet":
                #expect(answer.status == 200)
                let other = RunningServer.variant("thumbnail:20", "https://a.invalid/a")
                let elsewhere = try await server.ask(mount + other)
                #expect(elsewhere.status == 403 && elsewhere.problem == "source-refused")
                let cropped = try await server.ask(mount + RunningServer.variant("crop:100x100", source))
                #expect(cropped.status == 403 && cropped.problem == "recipe-not-allowed")
                for route in ["original", "info"] {
                    let path = RunningServer.original(source).replacing("/original/", with: "/\(route)/")
                    let closed = try await server.ask(mount + path)
                    #expect(closed.status == 403 && closed.problem == "route-closed")
                }
            case "try": #expect(answer.status == 502, "\(answer.text)")
            default: #expect(answer.status == 403 && answer.problem == "bad-signature")
            }
            #expect(try await server.ask("/health").status == 200)
            let ended = await server.stop()
            #expect(ended.exit == 0, "\(ended.errors)")
        }
    }
}

extension Sequence {
    fileprivate func asyncMap<Value>(_ change: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await change(element)) }
        return values
    }
}
