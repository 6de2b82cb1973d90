@testable import HTTPCaching
@testable import PipelineFetching
import Testing

@testable import Pipeline

/// An operator's settings for the freshness of one origin's responses (`hosts`: freshness).
struct HostFreshnessTests {
    private static func with(
        _ origin: String = "http://origin.test", _ change: (inout HostSettings) -> Void,
        answer: @escaping @Sendable (FetchRequest) -> ScriptedResponse, _ body: (CachingBench) async throws -> Void
    ) async throws {
        var settings = HostSettings()
        change(&settings)
        let hosts = [try HostOrigin(origin): settings]
        try await withCache({ $0.fetch.hosts = hosts }, origin: { answer($0) }, body)
    }

    @Test(arguments: [
        ("Cache-Control: No-Store, max-age=60", HostFreshness.Directive.noStore), ("Cache-Control: no-store", .noStore),
        ("Cache-Control: max-age=60, private", .private), ("Cache-Control: no-cache, max-age=60", .noCache),
        ("CDN-Cache-Control: max-age=60, no-store;a=1", .noStore),
    ])
    func `directives that are ignored forbid nothing, to this origin alone`(
        line: String, directive: HostFreshness.Directive
    ) async throws {
        for (origin, ignored, isHit) in [
            ("http://origin.test", directive, true), ("https://origin.test", directive, false),
            ("http://origin.test", directive == .private ? .noStore : .private, false),
        ] {
            try await Self.with(origin) {
                $0.ignoredDirectives = [ignored.rawValue]
                if !line.contains("max-age"), isHit { $0.minFreshness = .seconds(60) }
            } answer: { _ in
                ScriptedResponse(200, line).picture()
            } _: { bench in
                let first = try await bench.get()
                // The sent fields are the stored ones.
                let told = first.fields.filter { $0.name.lowercased().hasSuffix("cache-control") }
                #expect(told.contains { $0.value.lowercased().contains(directive.rawValue) } != isHit, "\(told)")
                #expect(try await bench.get().handling.isHit == isHit, "\(origin) \(ignored)")
                _ = try await bench.image()
                #expect((bench.count == 1) == isHit)
            }
        }
    }

    @Test func `fields that private and no-cache name are still for one user, and validated`() {
        var freshness = HostFreshness()
        freshness.ignored = Set(HostFreshness.Directive.allCases)
        let given = [
            HeaderField("Cache-Control", #"private="a, no-store", no-cache, no-cache="b", x=1"#),
            HeaderField("X", "private"),
        ]
        let fields = freshness.fields(given, CachingConfiguration())
        #expect(fields == [HeaderField("Cache-Control", #"private="a, no-store", no-cache="b", x=1"#), given[1]])
    }

    @Test(arguments: ["Cache-Control: max-age=5", "Expires: 0", "Age: 300", "Cache-Control: max-age=30, s-maxage=0"])
    func `atLeast counts from the arrival of a 200, and of each 304`(line: String) async throws {
        try await Self.with {
            $0.minFreshness = .seconds(60)
        } answer: {
            $0.fields.first("if-none-match") == nil
                ? ScriptedResponse(200, line, "ETag: \"a\"", body: "b") : ScriptedResponse(304, line, "ETag: \"a\"")
        } _: { bench in
            for count in 1...2 {
                _ = try await bench.get()
                #expect(bench.count == count)
                bench.clock.advance(59)
                #expect(try await bench.get().handling.isHit)
                bench.clock.advance(1)
            }
        }
    }

    @Test(arguments: [
        (200, "Cache-Control: max-age=3600", true), (404, "X: 0", false), (403, "X: 0", false),
        (500, "Cache-Control: max-age=0", false), (302, "Location: /b", false),
    ])
    func `atLeast shortens nothing, and leaves other statuses alone`(
        status: Int, line: String, isHit: Bool
    ) async throws {
        try await Self.with {
            $0.minFreshness = .seconds(60)
        } answer: { _ in
            ScriptedResponse(status, line, body: "b")
        } _: { bench in
            _ = try await bench.get { $0.followsRedirects = false }
            bench.clock.advance(30)
            #expect(try await bench.get { $0.followsRedirects = false }.handling.isHit == isHit)
            bench.clock.advance(1800)
            #expect(try await bench.get { $0.followsRedirects = false }.handling.isHit == isHit)
        }
    }

    @Test(arguments: [200, 404]) func `atMost ends freshness, also what a 304 gives`(status: Int) async throws {
        try await Self.with {
            $0.maxFreshness = .seconds(60)
        } answer: {
            $0.fields.first("if-none-match") == nil
                ? ScriptedResponse(status, "Cache-Control: max-age=3600", "Age: 20", "ETag: \"a\"", body: "b")
                : ScriptedResponse(304, "ETag: \"a\"")
        } _: { bench in
            for count in 1...2 {
                _ = try await bench.get()
                #expect(bench.count == count)
                bench.clock.advance(59)
                #expect(try await bench.get().handling.isHit)
                bench.clock.advance(1)
            }
        }
    }

    /// A redirect limits what it led to, unless its own origin's setting says otherwise.
    @Test(arguments: [("http://origin.test", 2), ("http://other.test", 3)])
    func `each response on the way goes by its own origin's`(origin: String, count: Int) async throws {
        try await Self.with(origin) {
            $0.minFreshness = .seconds(60)
            $0.ignoredDirectives = ["no-store"]
        } answer: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=3600", body: "b")
                .after(ScriptedResponse(302, "Cache-Control: no-store"), at: "http://other.test/b")
        } _: { bench in
            for seconds in [59.0, 1, 0] {
                _ = try await bench.get()
                bench.clock.advance(seconds)
            }
            #expect(bench.count == count)
        }
    }
}
