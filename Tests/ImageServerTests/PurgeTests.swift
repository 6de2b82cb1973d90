import Glibc
import HTTPCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import ImageServer
@testable import Pipeline
@testable import PipelineCaching

/// `/source` and `/purge`, and what the next answers are after them.
@Suite struct PurgeTests {
    private static let token = "a token of the tests".replacing(" ", with: "-")

    /// A site on a cache folder, before an origin that confirms what it has sent.
    private final class Bench: Sendable {
        let site: Site
        let pipeline: ImagePipeline
        let origin: LoopbackOrigin
        let scratch = ScratchFolder()
        let folder: String
        let fields: Fields

        init(
            folder: String? = nil, hasFolder: Bool = true, _ change: (inout ServerConfiguration) -> Void = { _ in }
        ) throws {
            let fields = Fields()
            self.fields = fields
            origin = try LoopbackOrigin { request in
                var head = "Date: \(OriginDate.text(time(nil)))\r\nETag: \"1\"\r\nContent-Type: image/jpeg\r\n"
                for (name, value) in fields.all.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
                    head += "\(name): \(value)\r\n"
                }
                if request["if-none-match"] == "\"1\"" {
                    return .raw("HTTP/1.1 304 Not Modified\r\n\(head)\r\n", keepsAlive: true)
                }
                let body = Bench.picture(request.path)
                head = "HTTP/1.1 200 OK\r\n\(head)Content-Length: \(body.count)\r\n\r\n"
                return .raw(head, then: [.bytes(body)], keepsAlive: true)
            }
            self.folder = folder ?? scratch.path
            var configuration = PipelineConfiguration()
            if hasFolder { configuration.cacheFolder = self.folder + "/cache" }
            configuration.rendering.masks = self.folder
            configuration.fetch.allowPrivateAddresses = .all
            var settings = ServerConfiguration()
            settings.signature.allowUnsigned = true
            settings.adminToken = PurgeTests.token
            change(&settings)
            pipeline = try ImagePipeline(configuration)
            site = try Site(pipeline: pipeline, settings: settings, now: configuration.now)
        }

        /// Shared with the origin's handler.
        final class Fields: Sendable {
            let all = Mutex<[String: String]>(["Cache-Control": "max-age=600"])
        }

        /// Other bytes for the paths that a test uses together.
        private static func picture(_ path: String) -> [UInt8] {
            switch path {
            case "/b.jpg", "/x/2.jpg": Samples.bytes("originals/meadow-small.jpg")
            case "/y.jpg": Samples.bytes("originals/grey.jpg")
            default: Samples.bytes("originals/night-tiny.jpg")
            }
        }

        static func encoded(_ text: String) -> String { text.replacing("/", with: "%2F").replacing(":", with: "%3A") }
        func variant(_ path: String = "/a.jpg", _ recipe: String = "thumbnail:20,png") -> String {
            "/variant/unsigned/\(recipe)/" + Self.encoded(origin.url(path))
        }
        func source(_ path: String = "/a.jpg") -> String { "/source/" + Self.encoded(origin.url(path)) }

        func ask(
            _ target: String, _ method: String = "GET", _ fields: [HeaderField] = [], body: String = ""
        ) async -> ServerResponse {
            var request = ServerRequest(method: method, target: target, fields: [HeaderField("Host", "a")] + fields)
            request.body = Array(body.utf8)
            return await site.respond(to: request)
        }

        /// A purge with the token; its answer as text.
        func purge(_ target: String, _ method: String, body: String = "") async -> String {
            let fields = [HeaderField("Authorization", "Bearer " + PurgeTests.token)]
            return String(decoding: await ask(target, method, fields, body: body).body, as: UTF8.self)
        }

        func hit(_ target: String) -> PreparedAnswer? {
            site.hit(method: "GET", target: target, fields: [HeaderField("Host", "a")])
        }

        func end() async {
            await pipeline.shutdown()
            origin.stop()
        }
    }

    private static func with(
        hasFolder: Bool = true, _ change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (Bench) async throws -> Void
    ) async throws {
        let bench = try Bench(hasFolder: hasFolder, change)
        try await body(bench)
        await bench.end()
    }

    // MARK: Who may

    @Test(arguments: ["mask", "overlay", "Overlay"])
    func `a base URL is not called what purges call masks and overlays`(_ name: String) {
        #expect(throws: InvalidSetting.self) { try BaseURLs([name: "https://a.test/"]) }
    }

    @Test func `a token shorter than 16 bytes, or of other characters than a field may hold, is none`() {
        #expect(throws: Never.self) { try AdminToken("1234567890123456") }
        for text in ["123456789012345", "1234567890 12345", "123456789012345\u{e9}", "replace-this-by-a-long-text"] {
            let error = #expect(throws: InvalidSetting.self) { try AdminToken(text) }
            #expect(error?.message.contains(text) == false)
        }
    }

    @Test(arguments: [
        [], ["Bearer "], ["Bearer a-token-of-the-test"], ["Bearer a-token-of-the-testsx"], ["Basic \(token)"], [token],
        ["Bearer \(token)", "Bearer \(token)"], ["Bearer A-token-of-the-tests"],
    ])
    func `without the token a purge is a 401, and nothing is purged`(values: [String]) async throws {
        try await Self.with { bench in
            _ = await bench.ask(bench.variant())
            let fields = values.map { HeaderField("Authorization", $0) }
            for (target, method) in [(bench.source(), "DELETE"), (bench.source(), "PURGE"), ("/purge", "POST")] {
                let answer = await bench.ask(target, method, fields, body: #"{"hosts":["127.0.0.1"]}"#)
                #expect(answer.status == 401 && answer["www-authenticate"] == "Bearer", "\(method)")
                #expect(answer["cache-control"] == "no-store")
            }
            let post = ServerRequest(method: "POST", target: "/purge", fields: fields)
            #expect(!bench.site.wantsBody(of: post))
            #expect(bench.hit(bench.variant()) != nil)
        }
    }

    @Test func `without the setting a purge is a 403 that says what to set`() async throws {
        try await Self.with({ $0.adminToken = nil }) { bench in
            let fields = [HeaderField("Authorization", "Bearer " + Self.token)]
            for (target, method) in [(bench.source(), "DELETE"), (bench.source(), "PURGE"), ("/purge", "POST")] {
                let answer = await bench.ask(target, method, fields, body: #"{"hosts":["127.0.0.1"]}"#)
                #expect(answer.status == 403 && String(decoding: answer.body, as: UTF8.self).contains("`adminToken`"))
            }
        }
    }

    @Test func `the scheme is named in any case, and only POST to purge has a body`() async throws {
        try await Self.with { bench in
            let fields = [HeaderField("authorization", "bearer  " + Self.token)]
            #expect(await bench.ask(bench.source(), "PURGE", fields).status == 200)
            func wants(_ method: String, _ target: String) -> Bool {
                bench.site.wantsBody(of: ServerRequest(method: method, target: target, fields: fields))
            }
            #expect(wants("POST", "/purge") && !wants("PUT", "/purge") && !wants("DELETE", bench.source()))
        }
    }

    @Test func `other methods are a 405 that names those there are`() async throws {
        try await Self.with { bench in
            for (target, allowed) in [(bench.source(), "DELETE, PURGE"), ("/purge", "POST"), ("/health", "GET, HEAD")] {
                let answer = await bench.ask(target, "PATCH")
                #expect(answer.status == 405 && answer["allow"] == allowed)
            }
            for target in [bench.source(), "/purge"] { #expect(await bench.ask(target).status == 405) }
        }
    }

    // MARK: What is asked for

    @Test(arguments: [
        "", "[]", "{}", #"{"sources":[]}"#, #"{"source":["http://a/"]}"#, #"{"sources":"http://a/"}"#,
        #"{"sources":[1]}"#, #"{"hosts":[""]}"#, #"{"hosts":["a"],"mode":"Hard"}"#,
        #"{"hosts":["a"],"variantsOnly":1}"#, #"{"hosts":["a/b"]}"#, #"{"prefixes":["/etc"]}"#,
        #"{"prefixes":["file:/"]}"#, #"{"sources":["ftp://a/"]}"#, #"{"hosts":["a"]} x"#,
    ])
    func `an order that is not understood as a whole is a 400, and nothing is purged`(body: String) async throws {
        try await Self.with { bench in
            _ = await bench.ask(bench.variant())
            let fields = [HeaderField("Authorization", "Bearer " + Self.token)]
            #expect(await bench.ask("/purge", "POST", fields, body: body).status == 400)
            #expect(bench.hit(bench.variant()) != nil)
        }
    }

    @Test func `a purge takes every name of a source, and says which are unknown`() async throws {
        let fields = [HeaderField("Authorization", "Bearer " + Self.token)]
        try await Self.with { bench in
            var settings = bench.site.settings
            settings.baseURLs = ["photos": bench.origin.url("/")]
            settings.defaultBase = "photos"
            settings.mountPoint = "/images"
            let site = try Site(pipeline: bench.pipeline, settings: settings, now: bench.site.now)
            func ask(_ target: String, _ method: String = "GET", body: String = "") async -> String {
                var request = ServerRequest(method: method, target: target, fields: fields + [HeaderField("Host", "a")])
                request.body = Array(body.utf8)
                return String(decoding: await site.respond(to: request).body, as: UTF8.self)
            }
            let url = bench.origin.url("/a.jpg")
            for name in [
                url, "photos:a.jpg", "a.jpg", "/images/variant/unsigned/png/photos:a.jpg?v=2", "/original/a.jpg",
                "/variant/png/\(url)",
            ] {
                _ = await ask("/variant/unsigned/png/photos:a.jpg")
                let answer = await ask(
                    "/purge", "POST", body: #"{"sources":["\#(name)","photos:none.jpg"],"mode":"hard"}"#)
                #expect(answer.contains(#""sources":1,"records":1"#), "\(name) \(answer)")
                #expect(answer.contains(#""unknown":["\#(bench.origin.url("/none.jpg"))"]"#), "\(answer)")
            }
            #expect(await ask("/source/photos:a.jpg", "DELETE").contains(#""unknown":["\#(url)"]"#))
            _ = await ask("/variant/unsigned/png/photos:a.jpg")
            #expect(await !ask("/source/photos:a.jpg", "PURGE").contains("unknown"))
        }
        try await Self.with(hasFolder: false) { bench in
            _ = await bench.ask(bench.variant())
            for isUnknown in [false, true] {
                let answer = await bench.ask(bench.source(), "DELETE", fields)
                #expect(String(decoding: answer.body, as: UTF8.self).contains("unknown") == isUnknown)
            }
        }
    }

    @Test func `a query other than a mode is a 400, and DELETE is never soft`() async throws {
        try await Self.with { bench in
            let fields = [HeaderField("Authorization", "Bearer " + Self.token)]
            for (query, method) in [("?mode=Hard", "PURGE"), ("?x", "PURGE"), ("?mode=soft", "DELETE")] {
                #expect(await bench.ask(bench.source() + query, method, fields).status == 400)
            }
            #expect(await bench.purge(bench.source() + "?mode=hard", "PURGE").contains(#""mode":"hard""#))
            #expect(await bench.purge(bench.source() + "?mode=soft", "PURGE").contains(#""mode":"soft""#))
        }
    }

    @Test func `sources, prefixes, hosts and tags are purged, and the response lists what was purged`() async throws {
        try await Self.with { bench in
            bench.fields.all.withLock { $0["Cache-Tag"] = "product-17, all" }
            let host = bench.origin.host
            func fill() async throws {
                for path in ["/x/1.jpg", "/x/2.jpg", "/y.jpg"] { _ = await bench.ask(bench.variant(path)) }
                await bench.pipeline.drain()
            }
            let url = bench.origin.url("/x/1.jpg")
            for (order, count) in [
                (#""sources":["\#(url)"]"#, 1), (#""prefixes":["\#(bench.origin.url("/x"))"]"#, 2),
                (#""hosts":["\#(host)"]"#, 3), (#""tags":["all"]"#, 3), (#""tags":["\#(SourceTags.own(url))"]"#, 1),
                (#""sources":["\#(url)"],"tags":["no such tag"]"#, 1), (#""tags":["al","17"]"#, 0),
            ] {
                try await fill()
                let soft = await bench.purge("/purge", "POST", body: "{\(order)}")
                #expect(
                    soft.hasPrefix(
                        #"{"mode":"soft","sources":\#(count),"records":\#(count),"originals":0,"variants":0,"bytes":0"#),
                    "\(order): \(soft)")
                let thumbnails = await bench.purge("/purge", "POST", body: #"{\#(order),"variantsOnly":true}"#)
                #expect(
                    thumbnails.contains(#""records":0,"originals":0,"variants":\#(count),"#), "\(order): \(thumbnails)")
                try await fill()
                let hard = await bench.purge("/purge", "POST", body: #"{\#(order),"mode":"hard"}"#)
                #expect(
                    hard.hasPrefix(#"{"mode":"hard","sources":\#(count),"records":\#(count),"originals":\#(count),"#),
                    "\(order): \(hard)")
                #expect(hard.contains(#""variants":\#(count),"#), "\(order): \(hard)")
            }
        }
    }

    // MARK: What comes after

    @Test(arguments: [true, false])
    func `a soft purge under a thousand clients makes one revalidation`(hasFolder: Bool) async throws {
        try await Self.with(hasFolder: hasFolder) { bench in
            let first = await bench.ask(bench.variant())
            await bench.pipeline.drain()
            #expect(bench.hit(bench.variant()) != nil && bench.origin.requests.count == 1)
            let answer = await bench.purge(bench.source(), "PURGE")
            #expect(answer.hasPrefix(#"{"mode":"soft","sources":1,"records":1,"originals":0,"variants":0,"bytes":0"#))
            #expect(bench.hit(bench.variant()) == nil)
            let answers = await withTaskGroup(of: ServerResponse.self) { group in
                for _ in 0..<1_000 {
                    group.addTask {
                        if let hit = bench.hit(bench.variant()) {
                            return ServerResponse(status: hit.status, body: hit.body)
                        }
                        return await bench.ask(bench.variant())
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.count == 1_000 && answers.allSatisfy { $0.status == 200 && $0.body == first.body })
            #expect(answers.contains { $0["cache-control"] == "max-age=0" })
            await bench.pipeline.drain()
            #expect(bench.origin.requests.map { $0["if-none-match"] } == [nil, "\"1\""])
            // Fresh again, also for the next hit.
            let after = await bench.ask(bench.variant())
            #expect(
                after["cache-status"]?.hasPrefix("pipeline; hit; ttl=") == true && bench.hit(bench.variant()) != nil)
            #expect(bench.origin.requests.count == 2)
        }
    }

    @Test func `what must be validated before use is, after a soft purge`() async throws {
        try await Self.with { bench in
            bench.fields.all.withLock { $0["Cache-Control"] = "max-age=600, must-revalidate" }
            _ = await bench.ask(bench.variant())
            _ = await bench.purge(bench.source(), "PURGE")
            let answer = await bench.ask(bench.variant())
            #expect(answer["cache-status"]?.contains("fwd=stale") == true && bench.origin.requests.count == 2)
            #expect(answer["cache-control"] != "max-age=0")
        }
    }

    @Test(arguments: [true, false])
    func `a hard purge takes the original and every variant, from disk and memory`(hasFolder: Bool) async throws {
        try await Self.with(hasFolder: hasFolder) { bench in
            let recipes = ["thumbnail:20,png", "thumbnail:30,png", "thumbnail:40,jpeg"]
            for recipe in recipes { _ = await bench.ask(bench.variant("/a.jpg", recipe)) }
            _ = await bench.ask(bench.variant("/b.jpg"))
            await bench.pipeline.drain()
            let answer = await bench.purge(bench.source(), "DELETE")
            #expect(
                answer.hasPrefix(#"{"mode":"hard","sources":1,"records":1,"originals":1,"variants":3,"bytes":"#),
                "\(answer)")
            for recipe in recipes { #expect(bench.hit(bench.variant("/a.jpg", recipe)) == nil) }
            #expect(bench.hit(bench.variant("/b.jpg")) != nil)
            let memory = bench.pipeline.memoryStatistics
            #expect(memory.records.entries == 1 && memory.originals.entries == 1 && memory.variants.entries == 1)
            if let disk = await bench.pipeline.diskStatistics() {
                #expect(disk.records.entries == 1 && disk.originals.entries == 1 && disk.variants.entries == 1)
            }
            let again = await bench.ask(bench.variant())
            #expect(again["cache-status"]?.contains("fwd=uri-miss") == true)
        }
    }

    @Test func `a soft purge by another process is seen by the next hit`() async throws {
        try await Self.with { bench in
            _ = await bench.ask(bench.variant())
            await bench.pipeline.drain()
            #expect(bench.hit(bench.variant()) != nil)
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = bench.folder + "/cache"
            let other = try ImagePipeline(configuration)
            let purged = try await other.purge(.source(.url(bench.origin.url("/a.jpg"))), mode: .soft)
            #expect(purged.records == 1 && bench.hit(bench.variant()) == nil)
            let stale = await bench.ask(bench.variant())
            #expect(stale.status == 200 && stale["cache-control"] == "max-age=0")
            await bench.pipeline.drain()
            #expect(bench.origin.requests.count == 2)
            await other.shutdown()
        }
    }

    @Test func `a purge of a mask takes the variants of the originals it was used on, and no original`() async throws {
        try await Self.with { bench in
            bench.scratch.write(Samples.bytes("masks/star.png"), to: "star.png")
            let masked = bench.variant("/a.jpg", "thumbnail:20,mask:star,png")
            for target in [masked, bench.variant("/b.jpg")] { #expect(await bench.ask(target).status == 200) }
            await bench.pipeline.drain()
            #expect(await bench.purge("/source/mask:other", "DELETE").contains(#""variants":0"#))
            let answer = await bench.purge("/source/mask:star", "DELETE")
            #expect(answer.contains(#""records":0,"originals":0,"variants":1"#), "\(answer)")
            #expect(await bench.ask(bench.variant("/b.jpg"))["cache-status"]?.contains("pipeline; hit") == true)
            #expect(await bench.ask(masked)["cache-status"]?.contains("detail=rendered") == true)
            #expect(bench.origin.requests.count == 2)
        }
    }

    // MARK: Tags

    @Test(
        arguments: [
            (SentTags.off, nil, nil), (.cacheTag, "p-1,a b,c,SRC", nil), (.surrogateKey, nil, "p-1 c SRC"),
            (.both, "p-1,a b,c,SRC", "p-1 c SRC"),
        ] as [(SentTags, String?, String?)])
    func `variants carry the original's tags and that of the source, as the setting says, hits too`(
        tags: SentTags, list: String?, keys: String?
    ) async throws {
        try await Self.with({ $0.tags = tags }) { bench in
            bench.fields.all.withLock {
                $0["Cache-Tag"] = "p-1, a b"
                $0["Surrogate-Key"] = "c p-1"
            }
            let own = SourceTags.own(bench.origin.url("/a.jpg"))
            let wanted = [list, keys].map { $0?.replacing("SRC", with: own) }
            for _ in 0..<2 {
                let answer = await bench.ask(bench.variant())
                #expect([answer["cache-tag"], answer["surrogate-key"]] == wanted)
            }
            let head = String(decoding: try #require(bench.hit(bench.variant())).head, as: UTF8.self)
            #expect(head.contains("\r\nCache-Tag: \(wanted[0] ?? "")") == (wanted[0] != nil))
            #expect(head.contains("\r\nSurrogate-Key: \(wanted[1] ?? "")") == (wanted[1] != nil))
            let original = await bench.ask("/original/unsigned/" + Bench.encoded(bench.origin.url("/a.jpg")))
            #expect([original["cache-tag"], original["surrogate-key"]] == wanted)
        }
    }
}
