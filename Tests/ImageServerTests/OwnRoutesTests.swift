import HTTPTypes
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// Paths of a program's own, asked as `/variant` is.
@Suite struct OwnRoutesTests {
    private struct Got: Equatable {
        var status: Int
        var fields: [String: [String]]
        var body: [UInt8]
    }

    /// Fields that may differ: the time, how long it took, and what names the source, which the program does not show.
    private static let ownFields: Set<String> = ["date", "server-timing", "content-disposition", "link"]

    private static func got(_ answer: (HTTPResponse, AnswerBody)) async throws -> Got {
        var fields: [String: [String]] = [:]
        for field in answer.0.headerFields where !ownFields.contains(field.name.canonicalName) {
            // The rest of a minute may differ by a second.
            let value = field.value.replacing(/(ttl|max-age)=[0-9]{2,}/) { "\($0.output.1)=N" }
            fields[field.name.canonicalName, default: []].append(value)
        }
        var body: [UInt8] = []
        for try await piece in answer.1 { body += piece }
        return Got(status: answer.0.status.code, fields: fields, body: body)
    }

    private static func request(
        _ path: String, _ method: HTTPRequest.Method, _ fields: [(HTTPField.Name, String)]
    ) -> HTTPRequest {
        var request = HTTPRequest(method: method, scheme: "http", authority: "a", path: path)
        for (name, value) in fields { request.headerFields.append(HTTPField(name: name, value: value)) }
        return request
    }

    private static func image(_ bench: HitTests.Bench, _ recipe: String, _ path: String = "/a.jpg") throws
        -> ImageRequest
    {
        ImageRequest(.url(bench.origin.url(path)), recipe: try Recipe(recipe))
    }

    @Test(arguments: ["thumbnail:20,png", "thumbnail:20", "thumbnail:20,auto"])
    func `the table of requests that variants answer`(recipe: String) async throws {
        try await HitTests.with { bench in
            let path = "/variant/unsigned/\(recipe)/" + bench.source
            let first = await bench.ask(path)
            let tag = try #require(first.fields.first("etag"))
            let modified = try #require(first.fields.first("last-modified"))
            let beyond = "bytes=\(first.body.count)-"
            let table: [(HTTPRequest.Method, [(HTTPField.Name, String)], Int)] = [
                (.get, [], 200), (.head, [], 200), (.get, [(.ifNoneMatch, tag)], 304),
                (.head, [(.ifNoneMatch, tag)], 304),
                (.get, [(.ifNoneMatch, "W/" + tag)], 304), (.get, [(.ifNoneMatch, "\"a\", " + tag)], 304),
                (.get, [(.ifNoneMatch, "*")], 304), (.get, [(.ifNoneMatch, "\"a\"")], 200),
                (.get, [(.ifModifiedSince, modified)], 304), (.get, [(.ifMatch, "\"a\"")], 412),
                (.get, [(.range, "bytes=2-5")], 206), (.get, [(.range, "bytes=-3")], 206),
                (.get, [(.range, beyond)], 416),
                (.get, [(.range, "bytes=2-5"), (.ifRange, tag)], 206),
                (.get, [(.range, "bytes=2-5"), (.ifRange, "\"a\"")], 200),
                (.post, [], 405), (.delete, [], 405), (.options, [], 405),
            ]
            for (method, fields, status) in table {
                for accept in [nil, "image/webp", "image/avif,image/webp,*/*;q=0.8", "image/png"] {
                    let sent = fields + (accept.map { [(.accept, $0)] } ?? [])
                    // Both from memory.
                    _ = await bench.site.respond(to: Self.request(path, .get, sent.filter { $0.0 == .accept }))
                    let variant = try await Self.got(await bench.site.respond(to: Self.request(path, method, sent)))
                    var own = try await Self.got(
                        await bench.site.respond(
                            to: Self.request("/photos/42/thumb?a=b", method, sent), with: Self.image(bench, recipe)))
                    // The answer for a path of variants before the recipe is read.
                    if status == 405 { own.fields["vary"] = ["Accept"] }
                    #expect(own == variant, "\(method) \(sent)")
                    // A tag belongs to one format.
                    if accept == nil { #expect(own.status == status, "\(method) \(sent)") }
                }
            }
        }
    }

    @Test func `failures, freshness and what may not be shared as for variants`() async throws {
        try await HitTests.with { bench in
            for control in ["max-age=60", "private, max-age=60", "no-store", "no-cache", "max-age=60, must-revalidate"]
            {
                bench.answer.fields.withLock { $0 = [("Cache-Control", control), ("Vary", "Accept-Language")] }
                let name = "/\(control.count).jpg"
                let source = bench.origin.url(name).replacing("/", with: "%2F")
                let path = "/variant/unsigned/thumbnail:20,png/" + source
                _ = await bench.ask(path)
                let variant = try await Self.got(await bench.site.respond(to: Self.request(path, .get, [])))
                let own = try await Self.got(
                    await bench.site.respond(
                        to: Self.request("/x", .get, []), with: Self.image(bench, "thumbnail:20,png", name)))
                #expect(
                    own.fields["cache-control"] == variant.fields["cache-control"] && own.status == 200, "\(control)")
                let told = try await Self.got(
                    await bench.site.respond(
                        to: Self.request("/x", .get, []), with: Self.image(bench, "thumbnail:20,png", name),
                        cacheControl: "max-age=5"))
                let isShared = !["private, max-age=60", "no-store"].contains(control)
                #expect((told.fields["cache-control"] == ["max-age=5"]) == isShared, "\(control)")
            }
            bench.answer.picture.withLock { $0 = "no such file" }
            for name in ["/empty.jpg"] {
                let path = "/variant/unsigned/thumbnail:20/" + bench.origin.url(name).replacing("/", with: "%2F")
                let variant = try await Self.got(await bench.site.respond(to: Self.request(path, .get, [])))
                let own = try await Self.got(
                    await bench.site.respond(
                        to: Self.request("/x", .get, []), with: Self.image(bench, "thumbnail:20", name)))
                #expect(own == variant && own.status == 415)
                #expect(own.fields["content-type"] == ["application/problem+json"])
            }
        }
    }

    @Test func `what a program keeps from shared caches, or the pipeline may not store, is never offered to them`()
        async throws
    {
        func control(
            _ bench: HitTests.Bench, _ name: String, _ told: String?, _ change: (inout ImageRequest) -> Void = { _ in }
        ) async throws -> String? {
            var image = try Self.image(bench, "thumbnail:20,png", name)
            change(&image)
            let got = try await Self.got(
                await bench.site.respond(to: Self.request("/x", .get, []), with: image, cacheControl: told))
            return got.fields["cache-control"]?.joined(separator: "|")
        }
        try await HitTests.with({ _, configuration in
            configuration.willStore = { !$0.source.hasSuffix("/vetoed") }
        }) { bench in
            let closed = try await control(bench, "/vetoed", "private, no-store")
            #expect(closed == "private, no-store")
            #expect(try await control(bench, "/vetoed", "max-age=5")?.hasPrefix("private, max-age=") == true)
            let credentials: (inout ImageRequest) -> Void = { $0.fields = [HeaderField("Authorization", "Bearer a")] }
            #expect(try await control(bench, "/a", nil, credentials)?.hasPrefix("private, max-age=") == true)
            #expect(try await control(bench, "/a", "private, max-age=5") == "private, max-age=5")
            bench.answer.fields.withLock { $0 = [("Cache-Control", "private, max-age=3600")] }
            #expect(try await control(bench, "/b", "no-store") == "no-store")
            bench.answer.fields.withLock { $0 = [("Cache-Control", "no-store")] }
            #expect(try await control(bench, "/c", "private, max-age=5") == "no-store")
        }
    }

    @Test func `a list of sources that clients may name admits no provider, and own paths show it`() async throws {
        struct Photos: OriginalProvider {
            func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
                .bytes(HitTests.Bench.sample("night-tiny.jpg"))
            }
        }
        try await HitTests.with({ _, configuration in
            configuration.providers["photos"] = Photos()
            configuration.fetch.sources = try! HostPolicy(allow: ["example.org"])
        }) { bench in
            for route in ["variant/unsigned/png", "original/unsigned", "info/unsigned"] {
                let refused = try await Self.got(
                    await bench.site.respond(to: Self.request("/\(route)/photos:42", .get, [])))
                #expect(refused.status == 403, "\(route)")
            }
            let image = ImageRequest(.url("photos:42"), recipe: try Recipe("thumbnail:20,png"))
            let shown = try await Self.got(await bench.site.respond(to: Self.request("/x", .get, []), with: image))
            #expect(shown.status == 200)
        }
    }

    @Test func `an original is a picture too, and formats that the program chose are not negotiated`() async throws {
        try await HitTests.with { bench in
            let original = try await Self.got(
                await bench.site.respond(
                    to: Self.request("/x", .get, [(.accept, "image/webp")]),
                    with: ImageRequest(.url(bench.origin.url("/a")))))
            #expect(original.status == 200 && original.body == HitTests.Bench.sample("night-tiny.jpg"))
            #expect(original.fields["content-type"] == ["image/jpeg"] && original.fields["vary"] == nil)
            var chosen = try Self.image(bench, "thumbnail:20")
            chosen.negotiated = [.webp]
            let webp = try await Self.got(
                await bench.site.respond(to: Self.request("/x", .get, [(.accept, "image/png")]), with: chosen))
            #expect(webp.fields["content-type"] == ["image/webp"] && webp.fields["vary"] == nil)
        }
    }

    @Test func `rates, CORS and the client's no-cache apply, and the program's own policy goes first`() async throws {
        func ask(
            _ bench: HitTests.Bench, _ name: String, _ fields: [(HTTPField.Name, String)] = [],
            policy: CachePolicy? = nil
        ) async throws -> Got {
            var image = try Self.image(bench, "thumbnail:20", name)
            image.policy = policy
            return try await Self.got(
                await bench.site.respond(to: Self.request("/x", .get, fields), with: image, client: "192.0.2.1"))
        }
        try await HitTests.with({ settings, _ in
            settings.crossOrigin = ["*"]
            settings.honorsClientNoCache = true
        }) { bench in
            let first = try await ask(bench, "/a")
            #expect(first.status == 200 && first.fields["access-control-allow-origin"] == ["*"])
            #expect(try await ask(bench, "/a", [(.cacheControl, "no-cache")], policy: .cacheOnly).status == 200)
            #expect(bench.origin.requests.count == 1)
            #expect(try await ask(bench, "/a", [(.cacheControl, "no-cache")]).status == 200)
            #expect(bench.origin.requests.count == 2)
        }
        try await HitTests.with({ settings, _ in settings.rate = RateLimit(rate: 0.001) }) { bench in
            for (name, status) in [("/a", 200), ("/b", 429), ("/a", 200)] {
                let got = try await ask(bench, name)
                #expect(got.status == status)
            }
        }
    }

    @Test func `a program's own originals have names in URLs and purges`() async throws {
        struct Photos: OriginalProvider {
            func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
                path == "none" ? .missing : .bytes(HitTests.Bench.sample("night-tiny.jpg"), maxAge: .seconds(60))
            }
        }
        try await HitTests.with({ settings, configuration in
            configuration.providers["photos"] = Photos()
            settings.adminToken = "0123456789abcdef0123456789abcdef"
        }) { bench in
            func ask(_ path: String, _ method: HTTPRequest.Method = .get, body: String = "") async throws -> Got {
                var request = Self.request(path, method, [(.authorization, "Bearer 0123456789abcdef0123456789abcdef")])
                if !body.isEmpty { request.headerFields[.contentType] = "application/json" }
                let sent = AsyncStream<[UInt8]> { stream in
                    stream.yield(Array(body.utf8))
                    stream.finish()
                }
                return try await Self.got(await bench.site.respond(to: request, body: sent))
            }
            for name in ["photos:1", "photos%3A2026%2Fa", "PHOTOS:1"] {
                let answer = try await ask("/variant/unsigned/thumbnail:20,png/" + name)
                #expect(answer.status == 200 && answer.fields["content-type"] == ["image/png"], "\(name)")
            }
            #expect(try await ask("/variant/unsigned/png/photos:none").status == 404)
            #expect(try await ask("/info/unsigned/photos:1").status == 200)
            #expect(try await ask("/original/unsigned/photos:1").body == HitTests.Bench.sample("night-tiny.jpg"))
            let removed = try await ask("/source/photos:1", .delete)
            #expect(String(decoding: removed.body, as: UTF8.self).contains("\"records\":1"))
            // The second one has the 404 of `photos:none` too.
            #expect(try await ask("/source/photos:", .delete).status == 400)
            let orders: [(String, Int?)] = [("[\"photos:2026/\"]", 1), ("[\"photos:\"]", 2), ("[\"none:\"]", nil)]
            for (order, count) in orders {
                _ = try await ask("/variant/unsigned/thumbnail:20,png/photos:2")
                let purged = try await ask("/purge", .post, body: "{\"prefixes\":\(order),\"mode\":\"hard\"}")
                let text = String(decoding: purged.body, as: UTF8.self)
                #expect(purged.status == (count == nil ? 400 : 200), "\(order)")
                if let count { #expect(text.contains("\"records\":\(count)"), "\(order): \(text)") }
            }
        }
    }

    @Test func `paths of variants have the mount point, a signature if there is a key, and are answered`() async throws
    {
        let key = try SigningKey(id: "k1", hex: "00112233445566778899aabbccddeeff")
        for isSigned in [false, true] {
            try await HitTests.with({ settings, _ in
                settings.mountPoint = "/images"
                settings.signature = Signature(allowUnsigned: !isSigned, keys: isSigned ? [key] : [])
            }) { bench in
                let path = try bench.site.path("thumbnail:20,png", bench.origin.url("/a b?c=d"))
                #expect(path.hasPrefix(isSigned ? "/images/variant/k1." : "/images/variant/unsigned/thumbnail"))
                let answer = try await Self.got(await bench.site.respond(to: Self.request(path, .get, [])))
                #expect(answer.status == 200)
                #expect(bench.origin.requests.last?.target == "/a%20b?c=d")
                guard isSigned else { return }
                let expired = try bench.site.path("thumbnail:20,png", bench.origin.url("/a"), expiry: 1_000)
                let refused = try await Self.got(await bench.site.respond(to: Self.request(expired, .get, [])))
                #expect(refused.status == 403)
            }
        }
    }

    @Test func `a path with a recipe that the site would refuse is an error where the path is made`() async throws {
        try await HitTests.with({ settings, configuration in
            configuration.rendering.presets = ["card": "thumbnail:20,png"]
            settings.recipes.presetsOnly = true
        }) { bench in
            let source = bench.origin.url("/a")
            let path = try bench.site.path("@card", source)
            #expect(try await Self.got(await bench.site.respond(to: Self.request(path, .get, []))).status == 200)
            #expect(try bench.site.path(bench.pipeline.recipe("@card"), source) == path)
            for (recipe, words) in [("@typo", "unknown preset"), ("thumbnial:20", "thumbnail"), ("png", "presetsOnly")]
            {
                let error = #expect(throws: PipelineError.self) { try bench.site.path(recipe, source) }
                #expect(
                    error?.code == .invalidRecipe && error?.message.contains(words) == true, "\(error?.message ?? "")")
            }
        }
    }

    @Test func `a request in plain types is answered as one of swift-http-types`() async throws {
        try await HitTests.with({ settings, _ in settings.mountPoint = "/images" }) { bench in
            let path = try bench.site.path("thumbnail:20,png", bench.origin.url("/a"))
            let tag = try await Self.got(await bench.site.respond(to: Self.request(path, .get, []))).fields["etag"]?
                .first
            let cases: [(String, String, [(name: String, value: String)])] = [
                ("GET", path, []), ("HEAD", path, []), ("GET", path, [("If-None-Match", try #require(tag))]),
                ("DELETE", path, []), ("GET", "/elsewhere", []), ("GET", "/images/health", [("no name", "é")]),
            ]
            for (method, path, fields) in cases {
                let (status, answered, body) = await bench.site.respond(
                    method: method, path: path, fields: fields + [("host", "a")])
                var request = Self.request(path, try #require(HTTPRequest.Method(method)), [])
                for (name, value) in fields {
                    if let name = HTTPField.Name(name) {
                        request.headerFields.append(HTTPField(name: name, value: value))
                    }
                }
                var head = HTTPResponse(status: .init(code: status))
                for (name, value) in answered {
                    head.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
                }
                let expected = try await Self.got(await bench.site.respond(to: request))
                #expect(try await Self.got((head, body)) == expected, "\(method) \(path)")
            }
            #expect(await bench.site.respond(method: "G T", path: path, fields: []).status == 405)
        }
    }
}
