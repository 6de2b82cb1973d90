import HTTPCaching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// The URLs of the image optimizer of Next.js.
@Suite struct NextGrammarTests {
    /// Calls `body` with a site that has the grammar at `/_next/image`.
    private static func with(
        _ members: [String: GrammarValue] = [:], _ change: (inout PipelineConfiguration) -> Void = { _ in },
        _ body: (HitTests.Bench) async throws -> Void
    ) async throws {
        try await HitTests.with { site, pipeline in
            site.grammars["next"] = value(members)
            change(&pipeline)
        } _: { bench in
            try await body(bench)
        }
    }

    private static func value(_ members: [String: GrammarValue]) -> GrammarValue {
        let all = members.merging(["path": "/_next/image", "unsigned": true]) { own, _ in own }
        return GrammarValue(.object(all.map { .init(name: $0.key, value: $0.value.json) }))
    }

    private static func target(_ url: String, w: Int = 64, q: Int = 75) -> String {
        "/_next/image?url=\(PercentText.encoded(url, keeping: "-._~"))&w=\(w)&q=\(q)"
    }

    private static let chromium = HeaderField("Accept", "image/avif,image/webp,image/apng,image/*,*/*;q=0.8")

    private static func text(_ response: ServerResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    @Test func `a picture has the header fields of Next js, and its hit has them too`() async throws {
        try await Self.with { bench in
            let target = Self.target(bench.origin.url("/photos/my.cat.photo.jpg"))
            let first = await bench.ask(target, [Self.chromium])
            #expect(first.status == 200 && first["content-type"] == "image/webp" && first["vary"] == "Accept")
            #expect(first["cache-control"] == "public, max-age=14400, must-revalidate")
            #expect(first["content-disposition"] == "attachment; filename=\"my.webp\"")
            #expect(first["content-security-policy"] == "script-src 'none'; frame-src 'none'; sandbox;")
            #expect(first["x-nextjs-cache"] == "MISS" && first["etag"]?.hasPrefix("\"") == true)
            #expect(first["link"] == nil && first["x-content-type-options"] == "nosniff")
            let hit = try #require(bench.hit(target, [Self.chromium]))
            let head = String(decoding: hit.head, as: UTF8.self)
            #expect(head.contains("X-Nextjs-Cache: HIT\r\n") && hit.body == Array(first.body))
            #expect(head.contains("Cache-Control: public, max-age=14400, must-revalidate\r\n"))
            let again = await bench.ask(
                target, [Self.chromium, HeaderField("If-None-Match", try #require(first["etag"]))])
            #expect(again.status == 304 && again["etag"] == first["etag"] && again["content-type"] == nil)
            #expect(again["content-disposition"] == nil)
            #expect(again["vary"] == "Accept" && again["cache-control"] == first["cache-control"])
        }
    }

    @Test func `the format follows Accept, and without it the original`() async throws {
        try await Self.with(["formats": ["image/avif", "image/webp"]]) { bench in
            for (accept, type) in [
                ("image/avif,image/webp", "image/avif"), ("image/webp", "image/webp"), ("*/*", "image/jpeg"),
                ("image/avif;q=0.5,image/webp", "image/webp"), ("image/jxl,image/*", "image/jpeg"),
            ] {
                let response = await bench.ask(
                    Self.target(bench.origin.url("/a.jpg")), [HeaderField("Accept", accept)])
                #expect(response["content-type"] == type, "\(accept)")
            }
            // The quality of AVIF is 20 lower, so this variant has been rendered above.
            let variant = await bench.ask(
                "/variant/unsigned/thumbnail:64x,avif:55/" + bench.origin.url("/a.jpg").replacing("/", with: "%2F"))
            #expect(variant["cache-status"]?.contains("detail=memory") == true)
        }
    }

    @Test func `every mistake in the parameters has the words of Next js`() async throws {
        try await Self.with(["qualities": [75, 90]]) { bench in
            let url = bench.origin.url("/a.jpg")
            for (query, text) in [
                ("w=64&q=75", "\"url\" parameter is required"), ("url=&w=64&q=75", "\"url\" parameter is required"),
                ("url=/a&url=/b&w=64&q=75", "\"url\" parameter cannot be an array"),
                ("url=/" + String(repeating: "a", count: 3_072), "\"url\" parameter is too long"),
                ("url=//a.example/b&w=64&q=75", "\"url\" parameter cannot be a protocol-relative URL (//)"),
                ("url=%2F_next%2Fimage%3Furl%3Da&w=64&q=75", "\"url\" parameter cannot be recursive"),
                ("url=/a/%255Fnext/image/b&w=64&q=75", "\"url\" parameter cannot be recursive"),
                ("url=%2F_next%2Fimage%3F%CC%81x&w=64&q=75", "\"url\" parameter cannot be recursive"),
                ("url=/a.jpg&w=64&q=75", "\"url\" parameter is not allowed"),
                ("url=a.jpg&w=64&q=75", "\"url\" parameter is invalid"),
                ("url=ftp://a.example/b&w=64&q=75", "\"url\" parameter is invalid"),
                ("url=s3://bucket/b&w=64&q=75", "\"url\" parameter is invalid"),
                ("url=\(url)&q=75", "\"w\" parameter (width) is required"),
                ("url=\(url)&w=64&w=64&q=75", "\"w\" parameter (width) cannot be an array"),
                ("url=\(url)&w=-64&q=75", "\"w\" parameter (width) must be an integer greater than 0"),
                ("url=\(url)&w=0&q=75", "\"w\" parameter (width) must be an integer greater than 0"),
                ("url=\(url)&w=6e1&q=75", "\"w\" parameter (width) must be an integer greater than 0"),
                ("url=\(url)&w=99999999999999999999&q=75", "\"w\" parameter (width) must be an integer greater than 0"),
                ("url=\(url)&w=64", "\"q\" parameter (quality) is required"),
                ("url=\(url)&w=64&q=75&q=75", "\"q\" parameter (quality) cannot be an array"),
                ("url=\(url)&w=64&q=101", "\"q\" parameter (quality) must be an integer between 1 and 100"),
                ("url=\(url)&w=63&q=0", "\"q\" parameter (quality) must be an integer between 1 and 100"),
                ("url=\(url)&w=63&q=75", "\"w\" parameter (width) of 63 is not allowed"),
                ("url=\(url)&w=64&q=80", "\"q\" parameter (quality) of 80 is not allowed"),
            ] {
                let response = await bench.ask("/_next/image?" + query)
                #expect(response.status == 400 && Self.text(response) == text, "\(query)")
                #expect(
                    response["content-type"] == "text/plain; charset=utf-8" && response["cache-control"] == "no-store")
                #expect(response["vary"] == "Accept")
            }
            #expect(bench.origin.requests.isEmpty)
            #expect(await bench.ask("/_next/image/?dpl=x&q=75&w=64&url=" + url).status == 200)
            #expect(await bench.ask("/_next/image/x?q=75&w=64&url=" + url).status == 404)
        }
    }

    @Test func `a relative url lies below the base, and spaces and letters beyond ASCII are encoded`() async throws {
        let origin = try LoopbackOrigin { _ in
            .response(200, ["Content-Type": "image/jpeg"], body: HitTests.Bench.sample("night-tiny.jpg"))
        }
        defer { origin.stop() }
        try await Self.with(["baseURL": GrammarValue(.string(origin.url("/app")))]) { bench in
            let names = ["/a b+c.jpg", "/caf\u{E9}.jpg?v=1", "/x%20y.jpg"]
            for name in names {
                let response = await bench.ask(Self.target(name))
                #expect(response.status == 200 && response["cache-control"]?.contains("must-revalidate") == true)
            }
            #expect(
                origin.requests.map(\.target) == ["/app/a%20b+c.jpg", "/app/caf%C3%A9.jpg?v=1", "/app/x%20y.jpg"])
            for name in ["/../b.jpg", "/%2e%2e/b.jpg", "/a/../../b.jpg"] {
                let response = await bench.ask(Self.target(name))
                #expect(response.status == 400 && Self.text(response) == "\"url\" parameter is not allowed", "\(name)")
            }
            let media = await bench.ask(Self.target("/_next/static/media/logo.1a2b.jpg"))
            #expect(media["cache-control"] == "public, max-age=315360000, immutable")
        }
    }

    @Test func `originals that Next js does not convert are sent as they are`() async throws {
        try await Self.with { bench in
            for (name, type) in [("balloon.gif", "image/gif")] {
                bench.answer.picture.withLock { $0 = name }
                let response = await bench.ask(Self.target(bench.origin.url("/" + name)), [Self.chromium])
                #expect(response.status == 200 && response["content-type"] == type)
                #expect(Array(response.body) == HitTests.Bench.sample(name) && response["x-nextjs-cache"] == "MISS")
                #expect(response["content-disposition"]?.hasPrefix("attachment; filename=") == true)
            }
        }
    }

    @Test func `an image that cannot be rendered is sent as it is, unless its body is coded`() async throws {
        let origin = try LoopbackOrigin { request in
            let coding = request.path == "/coded" ? "gzip" : "identity"
            return .response(
                200,
                ["Content-Type": "image/x\"icns", "Cache-Control": "max-age=20000", "Content-Encoding": coding],
                body: Array("icns\u{0}\u{0}".utf8))
        }
        defer { origin.stop() }
        try await Self.with { bench in
            let response = await bench.ask(Self.target(origin.url("/a.icns")))
            #expect(response.status == 400, "a coding, even if it changes nothing")
            #expect(await bench.ask(Self.target(origin.url("/coded"))).status != 200)
        }
        let plain = try LoopbackOrigin { _ in
            .response(
                200, ["Content-Type": "image/x\"icns", "Cache-Control": "max-age=20000"], body: Array("icns".utf8))
        }
        defer { plain.stop() }
        try await Self.with { bench in
            let response = await bench.ask(Self.target(plain.url("/logo.icns")))
            #expect(response.status == 200 && Array(response.body) == Array("icns".utf8))
            #expect(
                response["cache-control"] == "public, max-age=20000, must-revalidate" && response["vary"] == "Accept")
            #expect(response["content-disposition"] == "attachment; filename=\"logo.xicns\"")
            #expect(response["x-nextjs-cache"] == "MISS")
            #expect(await bench.ask(Self.target(plain.url("/logo.icns")))["x-nextjs-cache"] == "HIT")
        }
    }

    @Test func `the origin's errors keep their status`() async throws {
        let origin = try LoopbackOrigin { request in
            let status = ["/gone": 410, "/teapot": 418, "/broken": 500, "/page": 200][request.target] ?? 404
            return .response(status, ["Content-Type": "text/html"], body: Array("<html>".utf8))
        }
        defer { origin.stop() }
        try await Self.with { bench in
            let invalid = "\"url\" parameter is valid but upstream response is invalid"
            for (path, status, text) in [
                ("/gone", 410, invalid), ("/teapot", 418, invalid), ("/broken", 500, invalid), ("/none", 404, invalid),
                ("/page", 400, "The requested resource isn't a valid image."),
            ] {
                let response = await bench.ask(Self.target(origin.url(path)))
                #expect(response.status == status && Self.text(response) == text, "\(path)")
            }
        }
    }

    @Test func `a slow origin, a redirect without an end and an SVG have the words of Next js`() async throws {
        let drawing = Array("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>".utf8)
        let origin = try LoopbackOrigin { request in
            switch request.path {
            case "/slow": .hang
            case "/loop": .response(302, ["Location": "/loop"], body: [])
            default: .response(200, ["Content-Type": "image/svg+xml"], body: drawing)
            }
        }
        defer { origin.stop() }
        let upstream = "\"url\" parameter is valid but upstream response "
        for (path, status, text) in [
            ("/slow", 504, upstream + "timed out"), ("/loop", 508, upstream + "is invalid"),
            ("/a.svg", 400, "\"url\" parameter is valid but image type is not allowed"),
        ] {
            try await Self.with {
                $0.fetch.totalTimeout = .seconds(path == "/slow" ? 0.3 : 15)
            } _: { bench in
                let response = await bench.ask(Self.target(origin.url(path)))
                #expect(response.status == status && Self.text(response) == text, "\(path): \(Self.text(response))")
            }
        }
        try await Self.with(["svg": true]) { bench in
            let response = await bench.ask(Self.target(origin.url("/a.svg")))
            #expect(response.status == 200 && Array(response.body) == drawing)
            #expect(response["content-type"] == "image/svg+xml")
            #expect(response["content-security-policy"] == "script-src 'none'; frame-src 'none'; sandbox;")
        }
        try await Self.with(["svg": true]) {
            $0.rendering.limits.svg = .refuse
        } _: { bench in
            let response = await bench.ask(Self.target(origin.url("/a.svg")))
            #expect(response.status == 400 && Array(response.body) != drawing)
        }
    }

    @Test func `maximumRedirects limits only the URLs of Next js, also while failures are remembered`() async throws {
        let origin = try LoopbackOrigin { request in
            let left = Int(request.path.dropFirst("/hop/".count)) ?? 0
            return left > 0
                ? .response(302, ["Location": "/hop/\(left - 1)"], body: [])
                : .response(200, ["Content-Type": "image/jpeg"], body: HitTests.Bench.sample("night-tiny.jpg"))
        }
        defer { origin.stop() }
        func target(_ hops: Int) -> String { Self.target(origin.url("/hop/\(hops)")) }
        let remembering = { @Sendable (pipeline: inout PipelineConfiguration) in
            pipeline.caching.errorMaxAge = .seconds(60)
        }
        try await Self.with([:], remembering) { bench in
            #expect(await bench.ask(target(3)).status == 200)
            for _ in 1...2 {
                let response = await bench.ask(target(4))
                #expect(response.status == 508)
                #expect(Self.text(response) == "\"url\" parameter is valid but upstream response is invalid")
            }
            #expect(origin.requests.count == 8)
            let own = PercentText.encoded(origin.url("/hop/4"), keeping: "")
            #expect(await bench.ask("/variant/unsigned/thumbnail:20,png/" + own).status == 200)
            #expect(await bench.ask(target(4)).status == 200, "a stored original")
        }
        try await Self.with(["maximumRedirects": 5], remembering) { bench in
            #expect(await bench.ask(target(5)).status == 200)
            #expect(await bench.ask(target(6)).status == 508)
        }
        try await Self.with(["maximumRedirects": 5]) {
            $0.fetch.maxRedirects = 1
        } _: { bench in
            #expect(await bench.ask(target(2)).status == 508)
        }
    }

    @Test func `an answer past its time is sent once more and renewed behind it`() async throws {
        try await Self.with(["minimumCacheTTL": 100]) { bench in
            bench.answer.fields.withLock { $0 = [("Cache-Control", "no-cache, max-age=20")] }
            let target = Self.target(bench.origin.url("/a.jpg"))
            func handling() async -> String? { await bench.ask(target)["x-nextjs-cache"] }
            #expect(await handling() == "MISS")
            bench.advance(99)
            #expect(await handling() == "HIT" && bench.origin.requests.count == 1)
            bench.advance(2)
            #expect(await handling() == "STALE")
            try await waitWhile { bench.origin.requests.count < 2 }
            // The transport uses the clock of the system.
            bench.advance(-101)
            try await eventually { await handling() == "HIT" }
            #expect(bench.origin.requests.count == 2)
        }
    }

    @Test func `minimumCacheTTL does not keep a private response that must be validated`() async throws {
        try await HitTests.with { site, pipeline in
            site.grammars["next"] = Self.value([:])
            pipeline.caching.isPrivate = true
        } _: { bench in
            bench.answer.fields.withLock { $0 = [("Cache-Control", "private, no-cache, max-age=600")] }
            let target = Self.target(bench.origin.url("/a.jpg"))
            for count in 1...2 {
                #expect(await bench.ask(target).status == 200)
                #expect(bench.hit(target) == nil && bench.origin.requests.count == count)
            }
        }
    }

    @Test func `without unsigned, a server with keys refuses the URLs`() async throws {
        let key = try SigningKey(id: "k", hex: String(repeating: "0a", count: 16))
        try await HitTests.with { site, _ in
            site.allowUnsigned = false
            site.keys = [key]
            site.grammars["next"] = ["path": "/_next/image"]
        } _: { bench in
            let response = await bench.ask(Self.target(bench.origin.url("/a.jpg")))
            #expect(response.status == 403 && Self.text(response).contains("unsigned"))
        }
    }
}
