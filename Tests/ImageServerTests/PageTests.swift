import Glibc
import HTTPCaching
import PipelineSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// The page at `/`: its files, the clients that see the caches, and the samples as sources.
@Suite struct PageTests {
    private static func site(
        isOn: Bool = true, presets: [String: String] = [:], _ change: (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> Site {
        var configuration = PipelineConfiguration()
        configuration.cacheFolder = nil
        var settings = ServerConfiguration()
        settings.signature.allowUnsigned = true
        settings.playground = isOn
        settings.presets = try RecipePresets(presets)
        change(&settings)
        return try Site(pipeline: try ImagePipeline(configuration), settings: settings, now: { 1_800_000_000 })
    }

    private static func ask(
        _ site: Site, _ target: String, client: String? = "127.0.0.1", method: String = "GET",
        _ fields: [HeaderField] = [HeaderField("Host", "127.0.0.1:8080")]
    ) async -> ServerResponse {
        var request = ServerRequest(method: method, target: target, fields: fields)
        request.client = client
        return await site.respond(to: request)
    }

    private static var files: [String] {
        PageFile.all.map(\.name).filter { $0 != "index.html" }.map { "/page/\(PageFile.version)/\($0)" }
    }

    @Test func `the document names only files that are there`() async throws {
        let site = try Self.site()
        let document = await Self.ask(site, "/")
        #expect(document.status == 200 && document["Content-Type"] == "text/html; charset=utf-8")
        #expect(document["Cache-Control"] == "no-cache")
        let text = String(decoding: document.body, as: UTF8.self)
        for attribute in ["src=\"", "href=\""] {
            for part in text.split(separator: attribute).dropFirst() {
                let reference = part.prefix { $0 != "\"" }
                if reference.hasPrefix("#") { continue }
                #expect(Self.files.contains("/" + reference), "\(reference)")
            }
        }
        #expect(!text.contains("{version}"))
        await site.pipeline.shutdown()
    }

    @Test func `files are immutable, validated, and run nothing from elsewhere`() async throws {
        let site = try Self.site()
        #expect(Self.files.count > 8)
        for path in Self.files {
            let answer = await Self.ask(site, path)
            #expect(answer.status == 200 && !answer.body.isEmpty, "\(path)")
            #expect(answer["Cache-Control"] == "public, max-age=31536000, immutable", "\(path)")
            #expect(answer["X-Content-Type-Options"] == "nosniff", "\(path)")
            let policy = try #require(answer["Content-Security-Policy"])
            #expect(
                policy.hasPrefix(
                    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'")
            )
            let tag = try #require(answer["ETag"])
            let again = await Self.ask(site, path, client: nil, [HeaderField("If-None-Match", tag)])
            #expect(again.status == 304 && again.body.isEmpty, "\(path)")
        }
        await site.pipeline.shutdown()
    }

    @Test(arguments: [
        "/page", "/page/", "/page/0123456789ab/app.js", "/page/\(PageFile.version)/nothing.js",
        "/page/\(PageFile.version)/index.html", "/page/\(PageFile.version)/../app.js", "/page/samples/nothing.webp",
        "/page/samples/", "/page/variants/ab", "/page/variants/ab/cd", "/page/cache.json/x",
    ])
    func `other paths below the page are a 404`(_ target: String) async throws {
        let site = try Self.site()
        #expect(await Self.ask(site, target).status == 404)
        await site.pipeline.shutdown()
    }

    @Test func `a server without the page has none of its paths and no samples`() async throws {
        let site = try Self.site(isOn: false)
        for target in ["/", "/page/catalogue.json", "/page/cache.json", "/page/samples/dusk.webp"] + Self.files {
            #expect(await Self.ask(site, target).status == 404, "\(target)")
        }
        let variant = await Self.ask(site, "/variant/unsigned/thumbnail:50,png/sample:dusk")
        #expect(variant.status == 400, "\(String(decoding: variant.body, as: UTF8.self))")
        await site.pipeline.shutdown()
    }

    @Test func `every sample is a picture, and a source`() async throws {
        let site = try Self.site()
        #expect(PageSample.all.count == 3)
        for sample in PageSample.all {
            let original = await Self.ask(site, "/" + sample.path)
            #expect(original.status == 200 && original["Content-Type"] == sample.type)
            #expect(sha256Hex(Array(original.body)) == sample.digest && sample.bytes.count > 10_000)
            let variant = await Self.ask(site, "/variant/unsigned/thumbnail:50,png/sample:\(sample.name)")
            #expect(variant.status == 200 && variant["Content-Type"] == "image/png")
        }
        let unknown = await Self.ask(site, "/variant/unsigned/png/sample:nothing")
        #expect(unknown.status == 400)
        await site.pipeline.shutdown()
    }

    @Test func `the catalogue has every step, its words, and the presets`() async throws {
        let site = try Self.site(presets: ["card": "thumbnail:300x200:fill"])
        let text = String(decoding: await Self.ask(site, "/page/catalogue.json").body, as: UTF8.self)
        for name in ["thumbnail", "orient", "dpr", "webp", "auto"] { #expect(text.contains("{\"name\":\"\(name)\"")) }
        #expect(text.contains("\"words\":{\"gravity\":[\"centre\",\"north\""))
        #expect(text.contains("\"resample\":[\"fast\",\"balanced\",\"best\"]"))
        #expect(text.contains("\"presets\":[{\"name\":\"card\",\"recipe\":\"thumbnail:300x200:fill\"}]"))
        #expect(text.contains("\"unsigned\":true"))
        await site.pipeline.shutdown()
    }

    @Test(arguments: [
        ("127.0.0.1", "localhost:8080"), ("127.0.0.1", "127.0.0.1:8080"), ("::1", "[::1]:8080"),
        ("127.0.0.9", "localhost"), ("127.0.0.1", "127.0.0.9"),
    ])
    func `this machine sees the caches`(_ client: String, _ host: String) async throws {
        let site = try Self.site()
        let answer = await Self.ask(site, "/page/cache.json", client: client, [HeaderField("Host", host)])
        #expect(answer.status == 200 && answer["Cache-Control"] == "no-store")
        #expect(String(decoding: answer.body, as: UTF8.self).contains("\"tier\":\"memory\",\"kind\":\"variants\""))
        await site.pipeline.shutdown()
    }

    @Test func `operators see the URLs of the mounted grammars`() async throws {
        let site = try Self.site {
            $0.grammars = [
                "iiif": ["path": "/iiif", "unsigned": true], "next": ["path": "/_next/image", "unsigned": true],
                "imgproxy": ["path": "/img", "keys": [["key": "0a0b", "salt": "0c"]]],
            ]
        }
        func text(_ target: String, client: String? = "127.0.0.1") async -> String {
            let answer = await Self.ask(site, target, client: client, [HeaderField("Host", "127.0.0.1")])
            return String(decoding: answer.body, as: UTF8.self)
        }
        let texts = await text(
            "/page/urls.json?recipe=crop:90x80%2B1%2B2,grayscale,jpeg&source=https%3A%2F%2Fa.example%2Fb%3Fc")
        #expect(
            texts == #"[{"system":"iiif","target":"/iiif/3/https:%2F%2Fa.example%2Fb%3Fc/1,2,90,80/max/0/gray.jpg"},"#
                + #"{"system":"imgproxy","problem":"`grayscale` cannot be expressed in a URL of imgproxy"},"#
                + #"{"system":"next","problem":"`crop:90x80+1+2` cannot be expressed in a URL of next; write `thumbnail:WIDTHx,auto:QUALITY`"}]"#
        )
        #expect(await text("/page/urls.json?recipe=thumbnail:641x&source=a").contains(#""system":"next","problem":"#))
        #expect(await text("/page/urls.json?recipe=x&source=a").contains("unknown step"))
        #expect(await text("/page/catalogue.json").contains(#""systems":["iiif","imgproxy","next"]"#))
        #expect(await !text("/page/catalogue.json", client: "203.0.113.9").contains("systems"))
        await site.pipeline.shutdown()
    }

    /// A proxy's clients are not this machine, and a page elsewhere may resolve its own name to this address.
    @Test(arguments: [
        ("203.0.113.9", "127.0.0.1", []), (nil, "127.0.0.1", []), ("127.0.0.1", "pictures.example", []),
        ("127.0.0.1", "127.0.0.1.example", []), ("127.0.0.1", "127.evil.0.1", []),
        ("127.0.0.1", "127.0.0.1", [HeaderField("X-Forwarded-For", "203.0.113.9")]),
        ("127.0.0.1", "127.0.0.1", [HeaderField("Forwarded", "for=203.0.113.9")]),
        ("127.0.0.1", "127.0.0.1", [HeaderField("Via", "1.1 proxy")]),
    ])
    func `only operators see the caches and what they hold`(
        _ client: String?, _ host: String, _ fields: [HeaderField]
    ) async throws {
        let site = try Self.site()
        for target in ["/page/cache.json", "/page/urls.json?recipe=png&source=a", "/page/variants/ab/cd"] {
            let answer = await Self.ask(site, target, client: client, [HeaderField("Host", host)] + fields)
            #expect(answer.status == 403 && answer.note == "forbidden", "\(target)")
        }
        await site.pipeline.shutdown()
    }
}
