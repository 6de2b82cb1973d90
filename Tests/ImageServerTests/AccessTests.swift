import HTTPCaching
import Pipeline
import PipelineFetching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import ImageServer

/// Permissions, which are checked for every request, including prepared answers.
@Suite struct AccessTests {
    private typealias Bench = HitTests.Bench

    private static func signing(_ settings: inout ServerConfiguration) throws {
        settings.signature = Signature(
            allowUnsigned: false,
            keys: [try SignatureTests.key(), try SignatureTests.key("old", "ffeeddccbbaa99887766554433221100")])
    }

    private static func signed(_ bench: Bench, key: Int = 0, expiry: Int? = nil) -> [String] {
        let key = bench.site.settings.signature.keys[key]
        return [
            key.path("variant", ["thumbnail:20,png", bench.source], expiry: expiry),
            key.path("original", [bench.source], expiry: expiry),
        ]
    }

    private static func detail(_ response: ServerResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    private static func note(_ response: ServerResponse) -> String { "\(response.status) \(response.note ?? "")" }

    @Test func `a signed path is a hit like an unsigned one, under each of its signatures`() async throws {
        try await HitTests.with({ settings, _ in try? Self.signing(&settings) }) { bench in
            for key in 0...1 {
                for target in Self.signed(bench, key: key) {
                    #expect(bench.hit(target) == nil)
                    let first = await bench.ask(target)
                    #expect(first.status == 200)
                    #expect(bench.hit(target)?.body == Array(first.body))
                }
            }
            // Neither signature nor key is part of what is cached.
            #expect(bench.origin.requests.count == 1)
            #expect(await Self.note(bench.ask(bench.variant)) == "403 bad-signature")
            #expect(bench.hit(bench.variant) == nil && bench.hit(bench.original) == nil)
        }
    }

    @Test func `a bit that changes anywhere is refused, by hits too, and the origin hears nothing`() async throws {
        try await HitTests.with({ settings, _ in try? Self.signing(&settings) }) { bench in
            for good in Self.signed(bench) + Self.signed(bench, expiry: 32_503_680_000) {
                #expect(await bench.ask(good).status == 200)
                let requests = bench.origin.requests.count
                let name = good.utf8.dropFirst().firstIndex(of: UInt8(ascii: "/"))
                let route = good.utf8.distance(from: good.utf8.startIndex, to: name ?? good.utf8.startIndex)
                for position in 0..<good.utf8.count {
                    for bit in 0..<8 {
                        var bytes = Array(good.utf8)
                        bytes[position] ^= 1 << bit
                        let target = String(decoding: bytes, as: UTF8.self)
                        #expect(bench.hit(target) == nil, "\(target)")
                        let status = await bench.ask(target).status
                        // Another first segment is another path, or none with a signature.
                        #expect(
                            status == 403 || position <= route && [400, 404].contains(status), "\(status) \(target)")
                    }
                }
                #expect(bench.origin.requests.count == requests)
            }
        }
    }

    @Test func `an answer is a hit until its path expires, and no cache in front keeps it longer`() async throws {
        try await HitTests.with({ settings, _ in try? Self.signing(&settings) }) { bench in
            let expiry = Int(bench.site.now()) + 30
            for target in Self.signed(bench, expiry: expiry) {
                #expect(await bench.ask(target).status == 200)
                let hit = try #require(bench.hit(target))
                let head = String(decoding: hit.head, as: UTF8.self)
                if target.hasPrefix("/variant/") {
                    let age = head.split(separator: "\r\n").first { $0.hasPrefix("Cache-Control: max-age=") }
                    #expect(age.flatMap { Int($0.dropFirst(23)) }.map { (1...30).contains($0) } == true, "\(head)")
                }
            }
            bench.advance(31)
            for target in Self.signed(bench, expiry: expiry) {
                #expect(bench.hit(target) == nil)
                let late = await bench.ask(target)
                #expect(Self.note(late) == "403 bad-signature" && Self.detail(late).contains("expired on"))
            }
            // Cached pictures serve other requests.
            for target in Self.signed(bench) {
                #expect(await bench.ask(target)["cache-status"]?.contains("hit") == true)
            }
        }
    }

    @Test func `of Cache-Control an expiry shortens times and ends grace`() {
        let stored = StoredResponse(
            status: 200,
            fields: [
                HeaderField("Cache-Control", "max-age=600, stale-if-error=60, must-revalidate"),
                HeaderField("Date", HTTPDate.text(unixSeconds: 1000)),
            ],
            requestTime: 1000, responseTime: 1000)
        let control = DerivedFreshness.cacheControl(of: stored, isStale: false, now: 1000)
        #expect(control == "max-age=600, must-revalidate, stale-if-error=60")
        #expect(VariantAnswer.limited(control, to: 30.9) == "max-age=30, must-revalidate")
        #expect(VariantAnswer.limited(control, to: 900) == "max-age=600, must-revalidate")
        #expect(VariantAnswer.limited("private, no-cache", to: 5) == "private, no-cache")
        #expect(VariantAnswer.limited("max-age=10, s-maxage=600", to: -1) == "max-age=0, s-maxage=0")
    }

    @Test func `if only presets are allowed, nothing else is rendered`() async throws {
        let presets = try RecipePresets(["card": "thumbnail:20,png"])
        try await HitTests.with({ settings, _ in
            settings.presets = presets
            settings.recipes.presetsOnly = true
        }) { bench in
            let preset = bench.variant.replacing("thumbnail:20,png", with: "@card")
            #expect(await bench.ask(preset).status == 200)
            #expect(bench.hit(preset) != nil)
            for recipe in ["thumbnail:20,png", "@card,grayscale", "grayscale,@card", "@card,@card", "auto"] {
                let target = bench.variant.replacing("thumbnail:20,png", with: recipe)
                let answer = await bench.ask(target)
                #expect([400, 403].contains(answer.status) && bench.hit(target) == nil, "\(recipe)")
            }
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `with presets alone, listed steps may follow a preset, and its freshness holds`() async throws {
        let presets = try RecipePresets(["card": "thumbnail:20,webp"])
        var rule = ClientFreshness(maxAge: .seconds(77))
        rule.isImmutable = true
        try await HitTests.with({ [rule] settings, _ in
            settings.presets = presets
            settings.recipes.presetsOnly = true
            // Neither is for what the operator has written.
            settings.recipes.sizes = [33]
            settings.recipes.steps = ["circle"]
            settings.presetFreshness = ["card": rule]
        }) { bench in
            func ask(_ recipe: String) async -> ServerResponse {
                await bench.ask(bench.variant.replacing("thumbnail:20,png", with: recipe))
            }
            for (recipe, width, format) in [
                ("@card", 20, ImageFormat.webp), ("@card,dpr:2", 40, .webp), ("@card,jpg", 20, .jpeg),
                ("@card,dpr:1.5,png", 30, .png),
            ] {
                let answer = await ask(recipe)
                let header = try ImageHeader.probe(Array(answer.body))
                #expect(max(header.width, header.height) == width && header.format == format, "\(recipe)")
                #expect(answer["cache-control"] == "max-age=77, immutable", "\(recipe)")
            }
            for recipe in [
                "@card,dpr:4", "@card,dpr:2.0", "@card,webp:80", "@card,grayscale,png", "png", "@card,@card",
            ] {
                let answer = await ask(recipe)
                #expect([400, 403].contains(answer.status), "\(recipe)")
            }
            let refused = await ask("thumbnail:20,png")
            #expect(Self.detail(refused).contains("dpr:1.5") && Self.detail(refused).contains("avif"))
        }
        var rules = RecipeRules()
        rules.presetsOnly = true
        rules.suffixes = ["grayscale", "jpg"]
        for recipe in ["@card,jpg", "@card,jpeg"] {
            #expect(try rules.refusal(of: Recipe(recipe, presets: .init(["card": "circle"])), text: recipe) == nil)
        }
        #expect(
            try rules.refusal(
                of: Recipe("@card,grayscale", presets: .init(["card": "circle"])), text: "@card,grayscale") == nil)
        #expect(
            try rules.refusal(of: Recipe("@card,webp", presets: .init(["card": "circle"])), text: "@card,webp") != nil)
    }

    @Test func `originals and descriptions are closed as soon as recipes are restricted, unless they are opened`()
        async throws
    {
        let presets = try RecipePresets(["card": "thumbnail:20,png"])
        let (watermark, allowed) = (try Recipe("circle"), try Recipe("thumbnail:20,png"))
        let restrictions: [@Sendable (inout RecipeRules) -> Void] = [
            { $0.presetsOnly = true }, { $0.steps = ["thumbnail", "png"] }, { $0.watermark = watermark },
            { $0.allowed = [allowed] },
        ]
        func note(_ site: Site, _ target: String) async -> String {
            Self.note(await site.respond(to: ServerRequest(target: target, fields: [HeaderField("Host", "a")])))
        }
        try await HitTests.with { bench in
            let info = bench.original.replacing("/original/", with: "/info/")
            for restrict in restrictions {
                var settings = bench.site.settings
                settings.presets = presets
                restrict(&settings.recipes)
                let site = try Site(pipeline: bench.pipeline, settings: settings, now: bench.site.now)
                let recipe = settings.recipes.presetsOnly ? "@card" : "thumbnail:20,png"
                let variant = bench.variant.replacing("thumbnail:20,png", with: recipe)
                #expect(await note(site, variant).hasPrefix("200 "))
                for target in [bench.original, info] { #expect(await note(site, target) == "403 route-closed") }
                settings.routes = [.variant, .original]
                let opened = try Site(pipeline: bench.pipeline, settings: settings, now: bench.site.now)
                #expect(await note(opened, bench.original).hasPrefix("200 "))
                #expect(await note(opened, info) == "403 route-closed")
            }
            // Steps of sizes restrict no recipe.
            var settings = bench.site.settings
            settings.recipes.sizes = RecipeRules.usualSizes
            let open = try Site(pipeline: bench.pipeline, settings: settings, now: bench.site.now)
            for target in [bench.variant, bench.original, info] { #expect(await note(open, target).hasPrefix("200 ")) }
            settings.routes = [.original]
            let closed = try Site(pipeline: bench.pipeline, settings: settings, now: bench.site.now)
            #expect(await note(closed, bench.variant) == "403 route-closed")
            #expect(closed.hit(method: "GET", target: bench.variant, fields: [HeaderField("Host", "a")]) == nil)
        }
    }

    @Test func `steps that are not listed are refused by name, unless a preset uses them`() throws {
        let presets = try RecipePresets(["soft": "blur:3"])
        var rules = RecipeRules()
        rules.steps = ["thumbnail", "jpeg", "dpr"]
        func admitted(_ text: String) throws -> Recipe {
            try rules.admitted(Recipe(text, presets: presets), text: text)
        }
        for text in ["thumbnail:20", "dpr:2,thumbnail:20,jpg", "@soft", "@soft,thumbnail:20,jpeg:80"] {
            #expect(try admitted(text) == Recipe(text, presets: presets))
        }
        for (text, name) in [
            ("blur:3", "blur"), ("thumbnail:20,webp", "webp"), ("@soft,circle", "circle"),
            ("thumbnail:20,auto", "auto"),
            ("frames:all,thumbnail:20", "frames"),
        ] {
            let problem = #expect(throws: Problem.self) { _ = try admitted(text) }
            #expect(problem?.kind == .recipeNotAllowed && problem?.detail?.hasPrefix("`\(name)` ") == true, "\(text)")
        }
        // All rules hold together; recipes in `recipes.allow` are made unchanged.
        rules.allowed = [try Recipe("thumbnail:21"), try Recipe("blur:3")]
        rules.sizes = RecipeRules.usualSizes
        #expect(try admitted("thumbnail:21") == Recipe("thumbnail:21"))
        #expect(throws: Problem.self) { _ = try admitted("thumbnail:22") }
        #expect(throws: Problem.self) { _ = try admitted("blur:3") }
    }

    private static func admitted(
        _ text: String, _ sizes: [Int] = RecipeRules.usualSizes, isStrict: Bool = false
    ) throws -> String {
        var rules = RecipeRules()
        rules.sizes = sizes
        rules.refusesOtherSizes = isStrict
        return try rules.admitted(Recipe(text), text: text).description
    }

    @Test func `10,000 widths make at most 11 variants, and usual ratios stay`() throws {
        for form in ["thumbnail:%", "thumbnail:%x", "thumbnail:x%", "thumbnail:%:fill,webp"] {
            // A recipe has edges up to 8,192; more is an error.
            let made = try (1...8192).map { try Self.admitted(form.replacing("%", with: String($0))) }
            #expect(Set(made).count == 11, "\(form)")
        }
        #expect(throws: RecipeError.self) { _ = try Recipe("thumbnail:10000") }
        for (text, expected) in [
            ("thumbnail:300x200", "thumbnail:330x220"), ("thumbnail:200x301:fill", "thumbnail:220x330:fill"),
            ("thumbnail:320x180:fill", "thumbnail:330x186:fill"), ("thumbnail:640x360:fill", "thumbnail:960x540:fill"),
            ("thumbnail:260x325", "thumbnail:264x330"), ("thumbnail:5000x10", "thumbnail:3840x1280"),
            ("dpr:2,thumbnail:150", "thumbnail:330x330"),
            ("crop:17x17,thumbnail:20,thumbnail:21", "crop:17x17,thumbnail:20x20,thumbnail:40x40"),
            ("thumbnail:330", "thumbnail:330x330"), ("grayscale", "grayscale"),
        ] { #expect(try Self.admitted(text) == Recipe(expected).description, "\(text)") }
    }

    @Test func `whatever boxes clients ask for, they make as many as the documentation says`() throws {
        // Four heights and forty widths of one thumbnail, as a page that is resized asks for them.
        let few = try Set(
            (20...60).flatMap { width in
                try [20, 30, 40, 60].map { try Self.admitted("thumbnail:\(width)x\($0):fill") }
            })
        #expect(few.count <= 3 * 13, "\(few.count)")
        let edges = [Int?.none] + stride(from: 1, through: 8192, by: 17).map { $0 } + [20, 40, 60, 3840]
        var sizes: Set<String> = []
        for width in edges {
            for height in edges where width != nil || height != nil {
                let box = (width.map(String.init) ?? "") + "x" + (height.map(String.init) ?? "")
                sizes.insert(try Self.admitted("thumbnail:" + box))
            }
        }
        let most = RecipeRules.usualSizes.count * SizeSteps.boxesOfEdge
        #expect(sizes.count <= most)
        let text = String(decoding: try #require(FuzzPlan.contents(FuzzPlan.root + "/docs/server.md")), as: UTF8.self)
        #expect(
            text.contains("at most \(most) sizes") && text.contains("at most \(SizeSteps.boxesOfEdge) sizes of each"))
    }

    @Test func `what the steps make of a box is a box that they leave as it is`() throws {
        for edges in [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [8192], Array(11...400)] {
            for edge in edges {
                for part in 1...16 {
                    let made = try Self.admitted("thumbnail:\(edge)x\(max(1, edge * part / 16)):fill", edges)
                    #expect(try Self.admitted(made, edges) == made)
                }
            }
        }
    }

    @Test func `strict sizes are refused with the next one`() throws {
        let sizes = [300, 100, 100]
        for text in [
            "thumbnail:300x100", "thumbnail:200x300:fill", "thumbnail:100", "thumbnail:300x", "thumbnail:x100",
        ] {
            #expect(try Self.admitted(text, sizes, isStrict: true) == Recipe(text).description)
        }
        for (text, next) in [
            ("thumbnail:101x5", "300x100"), ("thumbnail:99", "100"), ("thumbnail:301", "300"),
            ("thumbnail:300x77", "300x100"), ("thumbnail:99x", "100x"),
        ] {
            let problem = #expect(throws: Problem.self) { _ = try Self.admitted(text, sizes, isStrict: true) }
            #expect(problem?.kind == .invalidRecipe && problem?.detail?.hasSuffix("is \(next)") == true, "\(text)")
        }
    }

    @Test func `sizes between two steps are one variant, and each is a hit`() async throws {
        try await HitTests.with({ settings, _ in settings.recipes.sizes = RecipeRules.usualSizes }) { bench in
            var tags: Set<String?> = []
            for edge in 21...40 {
                let target = bench.variant.replacing("thumbnail:20", with: "thumbnail:\(edge)")
                tags.insert(await bench.ask(target)["etag"])
                #expect(bench.hit(target) != nil)
            }
            #expect(tags.count == 1 && tags.first != nil)
        }
    }

    @Test func `a short source stands for a URL below its base`() async throws {
        try await HitTests.with { bench in
            var settings = bench.site.settings
            settings.baseURLs = ["photos": bench.origin.url("/p/"), "top": bench.origin.url("")]
            let site = try Site(pipeline: bench.pipeline, settings: settings, now: bench.site.now)
            for source in ["photos:a/b.jpg", "photos:a/../b.jpg", "top:p/c.jpg"] {
                let target = "/variant/unsigned/thumbnail:20,png/" + PercentText.segment(source)
                let answer = await site.respond(to: ServerRequest(target: target, fields: [HeaderField("Host", "a")]))
                #expect(answer.status == 200, "\(source)")
                #expect(site.hit(method: "GET", target: target, fields: [HeaderField("Host", "a")]) != nil)
            }
            #expect(bench.origin.requests.map(\.target) == ["/p/a/b.jpg", "/p/b.jpg", "/p/c.jpg"])
            for source in [
                "photos:../x", "photos:a/../../x", "photos:%2e%2e/x", "photos:..%2fx", "photos:%252e%252e/x",
                "photos:..\\x",
                "none:x", "photos", "http:x", "Photos:x",
            ] {
                for path in ["/variant/unsigned/png/", "/original/unsigned/"] {
                    let answer = await site.respond(
                        to: ServerRequest(
                            target: path + PercentText.segment(source), fields: [HeaderField("Host", "a")]))
                    #expect(answer.status == 400, "\(source) \(answer.status)")
                }
            }
            #expect(bench.origin.requests.count == 3)
        }
    }

    @Test func `clients name buckets below a base URL, or those that sources.allow has`() async throws {
        let bucket = NamedObjects()
        for (allowed, source, status) in [
            (nil, "photos:a b.jpg", 200), (nil, "photos:../b.jpg", 400), (nil, "s3://photos/2026/a b.jpg", 403),
            ("s3://photos/2026", "s3://photos/2026/a%20b.jpg", 200), ("s3://photos/2026", "s3://other/2026/a.jpg", 403),
            ("*", "S3://photos/2026/a.jpg", 403),
        ] as [(String?, String, Int)] {
            var configuration = PipelineConfiguration()
            configuration.transports["s3"] = bucket
            configuration.fetch.sources = try HostPolicy(allow: allowed.map { [$0] } ?? [])
            let pipeline = try ImagePipeline(configuration)
            var settings = ServerConfiguration()
            settings.allowUnsigned = true
            settings.baseURLs = ["photos": "s3://photos/2026"]
            let site = try Site(pipeline: pipeline, configuration: settings)
            for path in ["/variant/unsigned/thumbnail:20,png/", "/original/unsigned/", "/info/unsigned/"] {
                let target = path + PercentText.segment(source)
                let answer = await site.respond(to: ServerRequest(target: target, fields: [HeaderField("Host", "a")]))
                #expect(answer.status == status, "\(target) \(Self.note(answer))")
            }
            await pipeline.shutdown()
        }
        #expect(bucket.names == ["s3://photos/2026/a%20b.jpg"])
    }

    @Test func `a source that is not allowed is refused, stored or not`() async throws {
        try await HitTests.with { bench in
            for target in [bench.variant, bench.original] { #expect(await bench.ask(target).status == 200) }
            await bench.pipeline.drain()
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = bench.folder + "/cache"
            configuration.fetch.allowPrivateAddresses = .all
            configuration.fetch.sources = try HostPolicy(allow: ["allowed.test"])
            let pipeline = try ImagePipeline(configuration)
            let site = try Site(pipeline: pipeline, settings: bench.site.settings, now: bench.site.now)
            for target in [bench.variant, bench.original] {
                let answer = await site.respond(to: ServerRequest(target: target, fields: [HeaderField("Host", "a")]))
                // The reason is for the log: it is not the client's to know.
                let note = Self.note(answer)
                #expect(
                    note.hasPrefix("403 source-refused: ")
                        && note.contains("the source does not match any pattern in `sources.allow`"))
                #expect(!String(decoding: answer.body, as: UTF8.self).contains("admits"))
                var request = ServerRequest(target: target, fields: [HeaderField("Host", "a")])
                request.isAdministrative = true
                let shown = await site.respond(to: request)
                #expect(
                    String(decoding: shown.body, as: UTF8.self).contains(
                        "the source does not match any pattern in `sources.allow`"))
                #expect(site.hit(method: "GET", target: target, fields: [HeaderField("Host", "a")]) == nil)
            }
            await pipeline.shutdown()
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `a client that misses too often gets 429, and what is cached is never limited`() async throws {
        try await HitTests.with({ settings, _ in settings.rate = RateLimit(rate: 0.01) }) { bench in
            func ask(_ recipe: String, client: String?) async -> ServerResponse {
                var request = ServerRequest(
                    target: bench.variant.replacing("thumbnail:20,png", with: recipe),
                    fields: [HeaderField("Host", "a")])
                request.client = client
                return await bench.site.respond(to: request)
            }
            #expect(await ask("thumbnail:20,png", client: "192.0.2.1").status == 200)
            let refused = await ask("thumbnail:21,png", client: "192.0.2.1")
            #expect(
                Self.note(refused) == "429 too-many-requests"
                    && (refused["retry-after"].flatMap { Int($0) }.map { (1...100).contains($0) } == true))
            #expect(refused["cache-control"] == "no-store")
            // Another spelling of the same picture is not prepared, but cached.
            #expect(await ask("thumbnail:20x20,png", client: "192.0.2.1").status == 200)
            #expect(bench.hit(bench.variant) != nil)
            #expect(await ask("thumbnail:22,png", client: "192.0.2.2").status == 200)
            let original = await bench.site.respond(
                to: {
                    var request = ServerRequest(
                        target: bench.original + "2", fields: [HeaderField("Host", "a")])
                    request.client = "192.0.2.1"
                    return request
                }())
            #expect(Self.note(original) == "429 too-many-requests")
            bench.advance(100)
            #expect(await ask("thumbnail:21,png", client: "192.0.2.1").status == 200)
        }
    }

    @Test func `buckets fill at the rate, and few clients are remembered`() {
        let limit = RateLimit(rate: 2, limit: 100)
        for _ in 0..<20 { #expect(limit.take("a", now: 0) == nil) }
        #expect(limit.take("a", now: 0) == 1)
        #expect(limit.take("a", now: 0.5) == nil && limit.take("a", now: 0.5) == 1)
        // A clock that was set back gives nothing away, and takes nothing.
        #expect(limit.take("a", now: -100) == 1 && limit.take("b", now: -100) == nil)
        for client in 0..<10_000 { _ = limit.take("c\(client)", now: 0) }
        #expect(limit.count <= 200)
        #expect(RateLimit(rate: 0.001).take("a", now: 0) == nil)
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"), ("2001:0db8:1:2::9", "2001:db8:1:2"),
        ("2001:db8::1", "2001:db8::"), ("::1", ":::"), ("fe80::1%eth0", "fe80:::"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("", ""),
    ])
    func `an IPv6 client is its network`(_ address: String, _ network: String) {
        #expect(RateLimit.network(address) == network)
    }
}

/// A bucket in which every name is the same picture.
private final class NamedObjects: Transport {
    private let asked = Mutex<Set<String>>([])
    var names: Set<String> { asked.withLock { $0 } }

    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        asked.withLock { _ = $0.insert(request.url.normalized) }
        return FetchedResponse(
            to: request,
            fields: [HeaderField("Cache-Control", "max-age=60"), HeaderField("Content-Type", "image/jpeg")],
            body: HitTests.Bench.sample("night-tiny.jpg"))
    }

    func shutdown() async {}
}
