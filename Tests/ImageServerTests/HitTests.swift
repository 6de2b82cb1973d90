import Glibc
import HTTPCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline
@testable import PipelineCaching

/// The requests that `Site.hit` answers, and the ones it leaves to the stages.
@Suite struct HitTests {
    /// A site on a cache folder, before an origin with a picture and fields that a test sets, and with the test's
    /// clock.
    final class Bench: Sendable {
        let site: Site
        let pipeline: ImagePipeline
        let origin: LoopbackOrigin
        private let scratch = ScratchFolder()
        var folder: String { scratch.path }
        private let clock: Clock
        let answer: OriginContent

        /// The system's clock, set forward or back: transports go by the system's own.
        final class Clock: Sendable {
            let offset = Mutex(0.0)
            var now: Double { SystemClock.unix.seconds + offset.withLock { $0 } }
        }
        final class OriginContent: Sendable {
            let fields = Mutex<[(String, String)]>([("Cache-Control", "max-age=60")])
            let picture = Mutex("night-tiny.jpg")
            /// The body, in place of the picture.
            let body = Mutex<[UInt8]?>(nil)
        }
        init(_ change: (inout ServerConfiguration, inout PipelineConfiguration) -> Void = { _, _ in }) throws {
            let (clock, answer) = (Clock(), OriginContent())
            (self.clock, self.answer) = (clock, answer)
            origin = try LoopbackOrigin { _ in
                var fields = answer.fields.withLock { $0 }
                fields.append(("Content-Type", "image/jpeg"))
                return Self.reply(
                    fields, answer.body.withLock { $0 } ?? Self.sample(answer.picture.withLock { $0 }), Int(clock.now))
            }
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = scratch("cache")
            configuration.fetch.allowPrivateAddresses = .all
            configuration.now = { clock.now }
            var settings = ServerConfiguration()
            settings.signature.allowUnsigned = true
            change(&settings, &configuration)
            pipeline = try ImagePipeline(configuration)
            site = try Site(pipeline: pipeline, settings: settings, now: configuration.now)
        }

        private static func reply(_ fields: [(String, String)], _ body: [UInt8], _ now: Int) -> OriginReply {
            var head = "HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nDate: \(OriginDate.text(now))\r\n"
            for (name, value) in fields { head += "\(name): \(value)\r\n" }
            return OriginReply(parts: [.bytes(Array((head + "\r\n").utf8) + body)], keepsAlive: true)
        }

        /// Empty if there is no such sample.
        static func sample(_ name: String) -> [UInt8] { ScratchFolder.bytes(at: Samples.original(name)) ?? [] }

        func advance(_ seconds: Double) { clock.offset.withLock { $0 += seconds } }

        var variant: String { "/variant/unsigned/thumbnail:20,png/" + source }
        var original: String { "/original/unsigned/" + source }
        var source: String { origin.url("/a.jpg").replacing("/", with: "%2F") }

        func ask(_ target: String, _ fields: [HeaderField] = []) async -> ServerResponse {
            await site.respond(
                to: ServerRequest(target: target, fields: [HeaderField("Host", "a")] + fields))
        }

        func hit(_ target: String, method: String = "GET", _ fields: [HeaderField] = []) -> PreparedAnswer? {
            site.hit(method: method, target: target, fields: [HeaderField("Host", "a")] + fields)
        }

        func end() async {
            await pipeline.shutdown()
            origin.stop()
        }
    }

    static func with(
        _ change: (inout ServerConfiguration, inout PipelineConfiguration) -> Void = { _, _ in },
        _ body: (Bench) async throws -> Void
    ) async throws {
        let bench = try Bench(change)
        try await body(bench)
        await bench.end()
    }

    private static func text(_ head: [UInt8]) -> String { String(decoding: head, as: UTF8.self) }

    @Test func `what was answered once is a hit, equal in all but its cache status and the times of stages`()
        async throws
    {
        try await Self.with { bench in
            for target in [bench.variant, bench.original] {
                #expect(bench.hit(target) == nil)
                let first = await bench.ask(target)
                let hit = try #require(bench.hit(target))
                #expect(hit.status == 200 && hit.body == Array(first.body))
                let head = Self.text(hit.head)
                #expect(head.hasPrefix("HTTP/1.1 200 OK\r\n") && head.hasSuffix("\r\n\r\n"))
                #expect(head.contains("Content-Length: \(first.body.count)\r\n"))
                #expect(head.contains("Cache-Status: pipeline; hit; ttl=") && head.contains("; detail=memory\r\n"))
                for field in first.fields where !["Cache-Status", "Server-Timing", "Age"].contains(field.name) {
                    #expect(head.contains("\(field.name): \(field.value)\r\n"), "\(field.name)")
                }
                #expect(target == bench.original ? head.contains("\r\nAge: ") : !head.contains("Server-Timing"))
            }
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `v and raw slashes make answers of their own, of the same original and variant`() async throws {
        try await Self.with { bench in
            for target in [bench.variant, bench.original] {
                let first = await bench.ask(target)
                for other in [target + "?v=2", target + "?v=3", target.replacing("%2F", with: "/")] {
                    #expect(bench.hit(other) == nil)
                    let answer = await bench.ask(other)
                    #expect(answer.status == 200 && answer.body == first.body)
                    #expect(answer["cache-status"]?.contains("hit") == true, "\(other)")
                    #expect(bench.hit(other)?.body == Array(first.body))
                }
            }
            #expect(bench.origin.requests.map(\.target) == ["/a.jpg"])
        }
    }

    @Test func `with cacheElseLoad what is cached is used at any age, until it is purged`() async throws {
        try await Self.with({ settings, _ in
            settings.policy = .cacheElseLoad
            settings.honorsClientNoCache = true
        }) { bench in
            for target in [bench.variant, bench.original] { #expect(await bench.ask(target).status == 200) }
            bench.advance(100_000)
            for target in [bench.variant, bench.original] { #expect(await bench.ask(target).status == 200) }
            #expect(bench.origin.requests.count == 1)
            _ = await bench.ask(bench.variant, [HeaderField("Cache-Control", "no-cache")])
            #expect(bench.origin.requests.count == 2)
            bench.advance(100_000)
            _ = try await bench.pipeline.purge(.source(.url(bench.origin.url("/a.jpg"))))
            #expect(await bench.ask(bench.variant).status == 200 && bench.origin.requests.count == 3)
        }
    }

    @Test func `a mounted site has the pipeline's own rules of freshness`() async throws {
        try await Self.with({ $1.caching.defaultMaxAge = .seconds(600) }) { bench in
            bench.answer.fields.withLock { $0 = [] }
            var configuration = ServerConfiguration()
            configuration.allowUnsigned = true
            let site = try Site(pipeline: bench.pipeline, configuration: configuration)
            let host = [HeaderField("Host", "a")]
            for target in [bench.variant, bench.original] {
                let answer = await site.respond(to: ServerRequest(target: target, fields: host))
                #expect(answer["cache-status"]?.contains("ttl=") == true)
                #expect(target == bench.original || answer["cache-control"]?.hasPrefix("max-age=") == true)
                #expect(answer["cache-control"] != "max-age=0")
                #expect(site.hit(method: "GET", target: target, fields: host) != nil, "\(target)")
            }
        }
    }

    @Test func `HEAD and conditions are hits too (RFC 9110 §13.2.2)`() async throws {
        try await Self.with { bench in
            let first = await bench.ask(bench.variant)
            let head = try #require(bench.hit(bench.variant, method: "HEAD"))
            #expect(head.status == 200 && head.body.isEmpty && head.head == bench.hit(bench.variant)?.head)
            let tag = try #require(first["etag"])
            let date = try #require(first["last-modified"])
            for fields in [
                [HeaderField("If-None-Match", tag)], [HeaderField("If-None-Match", "\"x\", W/\(tag)")],
                [HeaderField("if-none-match", "*")], [HeaderField("If-Modified-Since", date)],
                [HeaderField("If-None-Match", tag), HeaderField("If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT")],
            ] {
                let hit = try #require(bench.hit(bench.variant, fields))
                #expect(hit.status == 304 && hit.body.isEmpty)
                let full = await bench.ask(bench.variant, fields)
                #expect(full.status == 304)
                for field in full.fields where !["Cache-Status", "Server-Timing"].contains(field.name) {
                    #expect(Self.text(hit.head).contains("\(field.name): \(field.value)\r\n"), "\(field.name)")
                }
                #expect(!Self.text(hit.head).contains("Content-Length"))
            }
            for fields in [
                [HeaderField("If-None-Match", "\"x\"")],
                [HeaderField("If-Modified-Since", "Mon, 01 Jan 2001 00:00:00 GMT")],
                [HeaderField("If-None-Match", "\"x\""), HeaderField("If-Modified-Since", date)],
            ] { #expect(bench.hit(bench.variant, fields)?.status == 200) }
        }
    }

    @Test func `a part is a hit, and what the stages answer (RFC 9110 §14)`() async throws {
        try await Self.with { bench in
            for target in [bench.variant, bench.original] {
                let first = await bench.ask(target)
                // The origin's own has none.
                let tag = first["etag"]
                for (fields, status) in [
                    ([("Range", "bytes=0-9")], 206), ([("Range", "bytes=-9")], 206), ([("If-Range", "\"x\"")], 200),
                    ([("Range", "bytes=5-9"), ("If-Range", tag ?? "\"x\"")], tag == nil ? 200 : 206),
                    ([("Range", "bytes=5-9"), ("If-Range", "\"x\"")], 200), ([("Range", "lines=1-2")], 200),
                    ([("Range", "bytes=0-1,5-6")], 200),
                ] {
                    let fields = fields.map { HeaderField($0, $1) }
                    let hit = try #require(bench.hit(target, fields), "\(fields)")
                    let full = await bench.ask(target, fields)
                    #expect(hit.status == status && full.status == status, "\(fields)")
                    #expect(hit.body[...] == full.body && hit.length == full.body.count)
                    let (head, whole) = (Self.text(hit.head), Self.text(full.headBytes(keepsAlive: true)))
                    #expect(Self.lines(head) == Self.lines(whole), "\(fields)")
                }
            }
        }
    }

    /// A head without the fields that tell how the answer was made.
    private static func lines(_ head: String) -> [String] {
        head.split(separator: "\r\n").map(String.init).filter { line in
            !["Server-Timing", "Cache-Status", "Age", "Date"].contains { line.hasPrefix($0 + ":") }
        }
    }

    @Test func `without keys this machine has hits, by a loopback name, with the token and from no other site`()
        async throws
    {
        for token in [nil, AccessToken()] {
            try await Self.with {
                $0.signature = Signature(allowUnsigned: false)
                $0.signature.servesThisMachine = true
                $0.accessToken = token
                $1.fetch.allowPrivateAddresses = .all
            } _: { bench in
                let cookie = token.map { [HeaderField("Cookie", "a=\($0.text)")] } ?? []
                let usual = [HeaderField("Host", "localhost:80")] + cookie
                var request = ServerRequest(target: bench.variant, fields: usual)
                request.client = "127.0.0.1"
                let full = await bench.site.respond(to: request)
                #expect(full.status == 200)
                func hit(_ fields: [HeaderField], from client: String?) -> PreparedAnswer? {
                    bench.site.hit(method: "GET", target: bench.variant, fields: fields, client: client)
                }
                let found = try #require(hit(usual, from: "127.0.0.1"))
                #expect(Self.lines(Self.text(found.head)) == Self.lines(Self.text(full.headBytes(keepsAlive: true))))
                #expect(Self.text(found.head).contains("Cross-Origin-Resource-Policy: same-origin"))
                #expect(Self.text(found.head).contains("Cache-Control: private") == (token != nil))
                for client in [nil, "192.0.2.1"] { #expect(hit(usual, from: client) == nil) }
                for field in [
                    HeaderField("Sec-Fetch-Site", "cross-site"), HeaderField("Via", "1.1 a"),
                    HeaderField("X-Forwarded-For", "192.0.2.1"),
                ] { #expect(hit(usual + [field], from: "127.0.0.1") == nil, "\(field.name)") }
                #expect(hit([HeaderField("Host", "evil.test")] + cookie, from: "127.0.0.1") == nil)
                #expect((hit([HeaderField("Host", "localhost")], from: "127.0.0.1") == nil) == (token != nil))
                #expect(bench.site.hit(method: "GET", target: bench.variant, fields: usual) == nil)
            }
        }
    }

    @Test func `requests with a say of their own are left to the stages`() async throws {
        try await Self.with({ settings, _ in
            settings.forwardedFields = ["X-Tenant"]
            settings.honorsClientNoCache = true
        }) { bench in
            _ = await bench.ask(bench.variant)
            #expect(bench.hit(bench.variant) != nil)
            for (name, value) in [
                ("Range", "bytes=999999-"), ("If-Match", "*"), ("If-Unmodified-Since", "x"),
                ("Expect", "100-continue"), ("Content-Length", "1"), ("Transfer-Encoding", "chunked"),
                ("Connection", "close"), ("Upgrade", "h2c"), ("Host", "b"), ("x-tenant", "1"),
                ("Cache-Control", "no-cache"), ("Pragma", "no-cache"),
            ] { #expect(bench.hit(bench.variant, [HeaderField(name, value)]) == nil, "\(name)") }
            #expect(bench.hit(bench.variant, [HeaderField("Connection", "Keep-Alive")]) != nil)
            #expect(bench.hit(bench.variant, method: "POST") == nil)
            #expect(bench.site.hit(method: "GET", target: bench.variant, fields: []) == nil)
            #expect(
                bench.site.hit(method: "GET", target: bench.variant, fields: [HeaderField("Host", "a b")]) == nil)
        }
        try await Self.with({ settings, _ in settings.forwardedFields = ["*"] }) { bench in
            _ = await bench.ask(bench.variant)
            #expect(bench.hit(bench.variant) == nil)
        }
    }

    @Test func `a stale answer is no hit, and neither is one from before a clock was set back`() async throws {
        try await Self.with { bench in
            _ = await bench.ask(bench.variant)
            bench.advance(5)
            #expect(bench.hit(bench.variant).map { Self.text($0.head).contains("Cache-Control: max-age=") } == true)
            bench.advance(60)
            #expect(bench.hit(bench.variant) == nil)
            // The transport's clock is the system's.
            bench.answer.fields.withLock { $0 = [("Cache-Control", "max-age=600")] }
            _ = await bench.ask(bench.variant)
            #expect(bench.hit(bench.variant) != nil)
            bench.advance(-100)
            #expect(bench.hit(bench.variant) == nil)
        }
    }

    @Test func `times in a head are those of the second it is sent in`() async throws {
        try await Self.with { bench in
            _ = await bench.ask(bench.original)
            _ = await bench.ask(bench.variant)
            func ages() throws -> [Int] {
                try [(bench.original, "Age: "), (bench.variant, "Cache-Control: max-age=")].map { target, name in
                    let lines = Self.text(try #require(bench.hit(target)).head).split(separator: "\r\n")
                    let line = try #require(lines.first { $0.hasPrefix(name) })
                    return try #require(Int(line.dropFirst(name.count)))
                }
            }
            let before = try ages()
            bench.advance(30)
            let after = try ages()
            // The transport's clock is the system's, which may have gone on since.
            #expect(
                (15...31).contains(after[0] - before[0]) && (15...31).contains(before[1] - after[1]),
                "\(before) \(after)")
        }
    }

    @Test func `answers that may not be kept are never prepared`() async throws {
        for control in ["no-store", "private", "no-cache", "max-age=0"] {
            try await Self.with { bench in
                bench.answer.fields.withLock { $0 = [("Cache-Control", control)] }
                _ = await bench.ask(bench.variant)
                _ = await bench.ask(bench.original)
                #expect(bench.hit(bench.variant) == nil && bench.hit(bench.original) == nil, "\(control)")
            }
        }
    }

    @Test func `a purge by any process is seen by the next hit`() async throws {
        try await Self.with { bench in
            let source = ImageSource(bench.origin.url("/a.jpg"))
            _ = await bench.ask(bench.variant)
            await bench.pipeline.drain()
            #expect(bench.hit(bench.variant) != nil)
            _ = try await bench.pipeline.purge(.source(source))
            #expect(bench.hit(bench.variant) == nil)

            _ = await bench.ask(bench.variant)
            await bench.pipeline.drain()
            #expect(bench.hit(bench.variant) != nil)
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = bench.folder + "/cache"
            let other = try ImagePipeline(configuration)
            _ = try await other.purge(.source(source))
            #expect(bench.hit(bench.variant) == nil)
            await other.shutdown()

            _ = await bench.ask(bench.variant)
            #expect(bench.hit(bench.variant) != nil)
            #expect(bench.pipeline.reduceMemory() > 0)
            #expect(bench.hit(bench.variant) == nil)
        }
    }

    @Test func `a newer original replaces the answer although the former one was still fresh`() async throws {
        try await Self.with { bench in
            let first = await bench.ask(bench.variant)
            #expect(bench.hit(bench.variant) != nil)
            bench.answer.picture.withLock { $0 = "meadow-small.jpg" }
            var reload = ImageRequest(.url(bench.origin.url("/a.jpg")), recipe: try Recipe("thumbnail:20,png"))
            reload.policy = .reload
            _ = try await bench.pipeline.respond(to: reload)
            #expect(bench.hit(bench.variant) == nil)
            let second = await bench.ask(bench.variant)
            #expect(second.body != first.body)
            #expect(bench.hit(bench.variant)?.body == Array(second.body))
        }
    }

    @Test func `a negotiated format is a hit for clients that name the same formats`() async throws {
        try await Self.with({ settings, _ in settings.formats = [.webp] }) { bench in
            let target = "/variant/unsigned/thumbnail:20/" + bench.source
            let webp = HeaderField("Accept", "image/webp")
            #expect(await bench.ask(target, [webp])["content-type"] == "image/webp")
            #expect(bench.hit(target) == nil)
            for accept in ["image/webp", "text/html, image/webp;q=0.5, */*"] {
                let head = Self.text(try #require(bench.hit(target, [HeaderField("Accept", accept)])).head)
                #expect(head.contains("Content-Type: image/webp\r\n") && head.contains("Vary: Accept\r\n"))
            }
            #expect(bench.hit(target, [HeaderField("Accept", "image/*")]) == nil)
            _ = await bench.ask(target)
            for accept in ["image/*", "image/webp;q=0"] {
                let head = Self.text(try #require(bench.hit(target, [HeaderField("Accept", accept)])).head)
                #expect(head.contains("Content-Type: image/jpeg\r\n"))
            }
        }
    }

    @Test func `an answer whose body memory has evicted comes from the cache folder, without the stages`() async throws
    {
        try await Self.with({ _, configuration in
            (configuration.memory.originals, configuration.memory.variants) = (0, 0)
        }) { bench in
            for target in [bench.variant, bench.original] {
                let first = await bench.ask(target)
                await bench.pipeline.drain()
                #expect(bench.hit(target) == nil)
                let second = await bench.ask(target)
                #expect(
                    second.body == first.body && second["cache-status"]?.hasSuffix("; detail=disk") == true,
                    "\(target) \(first.fields) \(second.fields)")
                #expect(second["server-timing"] == nil)
                let tag = try #require(second["etag"] ?? first["cache-control"])
                let third = await bench.ask(target, [HeaderField("If-None-Match", tag)])
                #expect(third.status == (target == bench.variant ? 304 : 200))
                _ = try await bench.pipeline.purge(.source(ImageSource(bench.origin.url("/a.jpg"))))
                #expect(await bench.ask(target)["cache-status"]?.contains("fwd=uri-miss") == true)
            }
        }
    }

    @Test func `of several records of a source the stages select (RFC 9111 §4.1)`() async throws {
        try await Self.with { bench in
            bench.answer.fields.withLock { $0 = [("Cache-Control", "max-age=1"), ("Vary", "X")] }
            _ = await bench.ask(bench.variant)
            bench.advance(5)
            bench.answer.fields.withLock { $0 = [("Cache-Control", "max-age=600")] }
            bench.answer.picture.withLock { $0 = "meadow-small.jpg" }
            _ = await bench.ask(bench.variant)
            #expect(bench.hit(bench.variant) == nil)
        }
    }

    @Test func `a page's origin selects its own answer, from memory too`() async throws {
        try await Self.with({ settings, _ in settings.crossOrigin = ["https://a", "https://b"] }) { bench in
            for target in [bench.variant, bench.original] {
                let origins = ["https://a", "https://b", "https://evil", nil]
                for origin in origins {
                    let fields = origin.map { [HeaderField("Origin", $0)] } ?? []
                    _ = await bench.ask(target, fields)
                    let hit = try #require(bench.hit(target, fields))
                    let head = Self.text(hit.head)
                    #expect(head.contains("Vary: Origin\r\n"))
                    for other in origins.compactMap(\.self) {
                        let isAllowed = other == origin && other != "https://evil"
                        #expect(head.contains("Access-Control-Allow-Origin: \(other)\r\n") == isAllowed, "\(head)")
                    }
                }
            }
        }
        try await Self.with({ settings, _ in settings.crossOrigin = ["*"] }) { bench in
            _ = await bench.ask(bench.variant)
            let head = Self.text(try #require(bench.hit(bench.variant, [HeaderField("Origin", "https://x")])).head)
            #expect(head.contains("Access-Control-Allow-Origin: *\r\n") && !head.contains("Vary: Origin"))
            // Pages must not read what an operator's browser may read.
            for target in ["/metrics", "/ready", "/health"] {
                #expect(
                    await bench.ask(target, [HeaderField("Origin", "https://x")])["access-control-allow-origin"] == nil)
            }
        }
    }

    @Test func `a hit names the source as the answer before it did`() async throws {
        try await Self.with { bench in
            let answer = await bench.ask(bench.variant)
            let head = Self.text(try #require(bench.hit(bench.variant)).head)
            #expect(answer["content-disposition"] == "inline; filename=\"a.png\"")
            #expect(head.contains("Content-Disposition: inline; filename=\"a.png\"\r\n"))
            #expect(head.contains("Link: <\(bench.origin.url("/a.jpg"))>; rel=\"canonical\"\r\n"))
        }
    }
}
