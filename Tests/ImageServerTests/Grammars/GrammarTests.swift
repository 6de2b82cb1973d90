import HTTPCaching
import InMemoryTracing
import TestSupport
import Synchronization
import Testing
import Tracing
import Variants

@testable import ImageServer
@testable import Pipeline

/// A grammar is one file and one line in a list.
@Suite struct GrammarTests {
    /// `/tiny/{source}`: the source in 20 pixels.
    private struct TinyGrammar: Grammar {
        let name = "tiny"
        let template = "/tiny/{source}"
        let formats: [ImageFormat]? = []

        func read(
            _ target: RequestTarget, _ context: GrammarContext
        ) throws(Problem) -> RoutedRequest {
            let unsigned = RequestTarget("/tiny/unsigned/" + target.segments[1])
            let grant = try context.signature.grant(unsigned, now: context.now)
            return RoutedRequest(
                answer: .variant(recipe: "thumbnail:20,png"), source: try OwnPath(unsigned).source, grant: grant)
        }

        func shown(_ target: RequestTarget) -> String { "/tiny/…" }
    }

    @Test func `a new grammar has hits, logs, metrics, traces and cross-origin rules`() async throws {
        let tracer = InMemoryTracer()
        try await HitTests.with {
            $0.pictureRoutes += [TinyGrammar()]
            $0.crossOrigin = ["*"]
            $1.tracer = tracer
        } _: { bench in
            let target = "/tiny/" + bench.source
            let first = await bench.ask(target)
            #expect(first.status == 200 && first["content-type"] == "image/png")
            #expect(first["access-control-allow-origin"] == "*" && first.route?.name == "tiny")
            let hit = try #require(bench.hit(target))
            #expect(hit.status == 200 && hit.body == Array(first.body))
            let request = ServerRequest(target: target, fields: [HeaderField("Host", "a")])
            let entry = RequestLog.Entry(client: "::1", request: request, .init(hit), milliseconds: 1)
            #expect(RequestLog.line(entry).hasPrefix("::1 GET /tiny/… 200 "))
            #expect(entry.answer.route?.name == "tiny")
            let span = try #require(tracer.finishedSpans.first { $0.attributes.get("http.route") != nil })
            #expect(span.attributes.get("http.route") == .string("/tiny/{source}"))
            // Another grammar shares the variant.
            let variant = await bench.ask(bench.variant)
            #expect(variant.body == first.body && bench.origin.requests.count == 1)
        }
    }

    /// `/half/{source}`: the source at half its width, which depends on the original.
    private struct HalfGrammar: Grammar {
        let name = "half"
        let template = "/half/{source}"
        let formats: [ImageFormat]? = []
        var isOriginal = false

        func read(_ target: RequestTarget, _ context: GrammarContext) throws(Problem) -> RoutedRequest {
            let source = try OwnPath(RequestTarget("/half/unsigned/" + target.segments[1])).source
            let choice = RecipeChoice("half \(isOriginal)") { [isOriginal] (header) throws(PipelineError) in
                isOriginal ? nil : try? Recipe("thumbnail:\(header.width / 2)x,png")
            }
            return RoutedRequest(
                answer: .choice(choice), source: source, grant: try context.signature.grant(ifUnsigned: true))
        }

        func shown(_ target: RequestTarget) -> String { "/half/…" }
    }

    private static let drawing = Array(
        "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20' onload='a'><rect width='9' height='9'/></svg>"
            .utf8)

    private static func map(_ members: [String: GrammarValue]) -> GrammarValue {
        GrammarValue(.object(members.map { .init(name: $0.key, value: $0.value.json) }))
    }

    private static func withDrawing(
        _ svg: SVGHandling = .pass, _ body: (HitTests.Bench) async throws -> Void
    ) async throws {
        try await HitTests.with {
            $0.grammars = [
                "netlify": map(["path": "/netlify", "unsigned": true]),
                "astro": map(["path": "/astro", "unsigned": true]),
                "imaginary": map(["path": "/imaginary", "unsigned": true]),
                "ipx": map(["path": "/ipx", "unsigned": true]),
                "imgproxy": map([
                    "path": "/imgproxy", "unsigned": true, "autoFormats": ["webp"],
                ]),
            ]
            $1.rendering.inProcessFormats.insert(.svg)
            $1.rendering.limits.formats.insert(.svg)
            $1.rendering.limits.svg = svg
        } _: { bench in
            bench.answer.body.withLock { $0 = drawing }
            try await body(bench)
        }
    }

    @Test func `an SVG stays SVG for each system, unless the URL names another format`() async throws {
        try await Self.withDrawing { bench in
            let first = await bench.ask("/variant/unsigned/thumbnail:80/" + bench.source)
            #expect(first.status == 200 && first["content-type"] == "image/svg+xml")
            #expect(
                first["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
                    && first["x-content-type-options"] == "nosniff")
            let text = String(decoding: first.body, as: UTF8.self)
            #expect(text.contains("width=\"80\"") && !text.contains("onload"))
            let webp = [HeaderField("Accept", "image/webp,*/*")]
            for target in [
                "/netlify?url=\(bench.source)&w=30", "/astro?href=\(bench.source)&f=svg&w=30",
                "/ipx/w_30/\(bench.source)",
                "/imgproxy/a/w:30/plain/\(bench.source)", "/imgproxy/a/w:30/plain/\(bench.source)@svg",
            ] {
                let answer = await bench.ask(target, webp)
                #expect(answer.status == 200 && answer["content-type"] == "image/svg+xml", "\(target)")
                // The SVG has its own size, and all URLs share the variant.
                #expect(answer.picture?.size == "40x20", "\(target)")
                #expect(String(decoding: answer.body, as: UTF8.self).contains("onload") == false)
            }
            for (target, type) in [
                ("/netlify?url=\(bench.source)&w=30&fm=png", "image/png"),
                ("/astro?href=\(bench.source)", "image/webp"),
                ("/ipx/w_30,f_auto/\(bench.source)", "image/webp"), ("/ipx/w_30,f_png/\(bench.source)", "image/png"),
                (
                    "/imaginary/pipeline?operations=%5B%7B%22operation%22:%22smartcrop%22,%22params%22:%7B%22width%22:9,%22height%22:9%7D%7D%5D&url=\(bench.source)",
                    "image/png"
                ),
                ("/imgproxy/a/w:30/plain/\(bench.source)@png", "image/png"),
            ] {
                let answer = await bench.ask(target, webp)
                #expect(answer.status == 200 && answer["content-type"] == type, "\(target)")
            }
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `an SVG is drawn or refused for each system if the configuration says so`() async throws {
        try await Self.withDrawing(.raster) { bench in
            for target in [
                "/netlify?url=\(bench.source)&w=30", "/imgproxy/a/w:30/plain/\(bench.source)",
                "/variant/unsigned/thumbnail:20/" + bench.source,
            ] {
                let answer = await bench.ask(target)
                #expect(answer.status == 200 && answer["content-type"] != "image/svg+xml", "\(target)")
            }
        }
        try await Self.withDrawing(.refuse) { bench in
            for target in [
                "/netlify?url=\(bench.source)&w=30", "/imgproxy/a/w:30/plain/\(bench.source)@png",
                "/variant/unsigned/thumbnail:20/" + bench.source,
            ] {
                let answer = await bench.ask(target)
                #expect((400..<500).contains(answer.status), "\(target)")
                #expect(String(decoding: answer.body, as: UTF8.self).contains("`svg` is `refuse`"), "\(target)")
            }
        }
    }

    @Test func `a choice that depends on the original shares the variant of the plain recipe`() async throws {
        try await HitTests.with { site, _ in
            site.pictureRoutes += [HalfGrammar()]
        } _: { bench in
            let first = await bench.ask("/half/" + bench.source)
            let width = try #require(first.picture).size.split(separator: "x")[0]
            let plain = await bench.ask("/variant/unsigned/thumbnail:\(width)x,png/" + bench.source)
            #expect(first.status == 200 && plain.picture == first.picture && plain.body == first.body)
            #expect(plain["cache-status"]?.contains("detail=memory") == true, "the variant was rendered again")
            #expect(try #require(bench.hit("/half/" + bench.source)).body == Array(first.body))
        }
    }

    @Test func `a choice that settles to no recipe sends the original`() async throws {
        try await HitTests.with { site, _ in
            site.pictureRoutes += [HalfGrammar(isOriginal: true)]
        } _: { bench in
            for _ in 0..<2 {
                let response = await bench.ask("/half/" + bench.source)
                #expect(Array(response.body) == HitTests.Bench.sample("night-tiny.jpg"))
                #expect(response["content-type"] == "image/jpeg")
            }
            #expect(bench.hit("/half/" + bench.source)?.status == 200)
        }
    }

    @Test(arguments: [
        ("/", "begin with `/`"), ("", "expected text"), ("next", "must be a path"), ("/a//b", "must be a path"),
        ("/a/", "must be a path"), ("/a/../b", "must be a path"), ("/a?b", "must be a path"),
        ("/variant", "overlaps"), ("/variant/next", "overlaps"), ("/health", "overlaps"),
    ])
    func `a path that is malformed or belongs to the server is refused`(path: String, words: String) {
        var configuration = ServerConfiguration()
        configuration.grammars["next"] = ["path": GrammarValue(.string(path))]
        let error = #expect(throws: InvalidSetting.self) { try configuration.mountedGrammars() }
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `a mounted grammar excludes rules for recipes, and unknown systems and members are refused`() {
        func message(_ grammars: [String: GrammarValue], presetsOnly: Bool = false) -> String? {
            var configuration = ServerConfiguration()
            configuration.grammars = grammars
            configuration.recipes.presetsOnly = presetsOnly
            do { _ = try configuration.mountedGrammars() } catch { return error.message }
            return nil
        }
        #expect(message(["next": ["path": "/_next/image"]]) == nil)
        #expect(message(["next": ["path": "/_next/image"]], presetsOnly: true)?.contains("recipes.presetsOnly") == true)
        #expect(message(["nxt": ["path": "/_next/image"]])?.contains("unknown system") == true)
        #expect(message(["next": ["path": "/_next/image", "with": 1]])?.contains("unknown member `with`") == true)
        #expect(message(["next": ["path": 1]])?.contains("expected text") == true)
        #expect(message(["next": "/_next/image"])?.contains("expected a map") == true)
    }

    @Test func `a path below the first segments of a grammar belongs to it`() throws {
        var configuration = ServerConfiguration()
        configuration.grammars["next"] = ["path": "/_next/image"]
        configuration.pictureRoutes += try configuration.mountedGrammars()
        for (target, name) in [
            ("/_next/image?url=a", "next"), ("/_next/image", "next"), ("/_next/image/x", "next"),
            ("/_next/images", nil), ("/_next", nil), ("/variant/a/b/c", "variant"),
        ] as [(String, String?)] {
            #expect(configuration.route(of: RequestTarget(target))?.name == name, "\(target)")
        }
    }
}
