@testable import HTTPCaching
@testable import PipelineFetching
import Testing

@testable import Pipeline

private let german = "Accept-Language: de"
private let english = "Accept-Language: en"

/// Answers in the requested language, with an entity tag for each language.
@Sendable private func byLanguage(_ request: FetchRequest) -> ScriptedResponse {
    let language = request.fields.first("accept-language") ?? "none"
    let tags = request.fields.first("if-none-match") ?? ""
    if tags.contains("\"\(language)\"") {
        return ScriptedResponse(304, "ETag: \"\(language)\"", "Vary: Accept-Language")
    }
    return ScriptedResponse(
        200, "Cache-Control: max-age=60", "Vary: Accept-Language", "ETag: \"\(language)\"", body: language)
}

struct SelectionTests {
    @Test func `each selection is stored and answered by itself, fields that are not named do not matter`() async throws
    {
        try await withCache(origin: byLanguage) { bench in
            #expect(try await bench.get(german).handling.forward == .uriMiss)
            #expect(try await bench.get(english).handling.forward == .varyMiss)
            for (field, text) in [(german, "de"), (english, "en"), (german, "de")] {
                let response = try await bench.get(field, "X-Request-Id: \(text)")
                #expect(response.handling.isHit && response.text == text)
            }
            #expect(try await bench.get().handling.forward == .varyMiss)
            #expect(bench.count == 3)
        }
    }

    @Test func `all selections come back from the disk`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: {
            byLanguage($0)
        } _: { bench in
            for field in [german, english] { _ = try await bench.get(field) }
            let other = try await bench.another()
            for (field, text) in [(german, "de"), (english, "en")] {
                let response = try await other.original(for: bench.request([field]))
                #expect(response.handling.isHit && response.text == text)
            }
            await other.shutdown()
        }
    }

    @Test func `every entity tag that is known is offered, and a 304 freshens the one it names`() async throws {
        try await withCache(origin: byLanguage) { bench in
            _ = try await bench.get(german)
            bench.clock.advance(10)
            _ = try await bench.get(english)
            bench.clock.advance(70)
            let response = try await bench.get(german)
            #expect(bench.sent("if-none-match") == "\"de\", \"en\"")
            #expect(response.text == "de" && response.handling.forwardStatus == 304)
            #expect(try await bench.get(german).handling.isHit)
            // The other one was not freshened.
            #expect(try await bench.get(english).handling.forwardStatus == 304)
        }
    }

    @Test func `a 304 for another selection's tag makes that body this selection's too`() async throws {
        try await withCache { request in
            request.fields.first("if-none-match") == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=60", "Vary: User-Agent", "ETag: \"one\"", body: "same")
                : ScriptedResponse(304, "ETag: \"one\"")
        } _: { bench in
            _ = try await bench.get("User-Agent: a")
            let second = try await bench.get("User-Agent: b")
            #expect(second.text == "same" && second.handling.forward == .varyMiss)
            #expect(second.handling.forwardStatus == 304 && second.handling.isStored)
            for agent in ["a", "b"] { #expect(try await bench.get("User-Agent: \(agent)").handling.isHit) }
            #expect(bench.count == 2)
        }
    }

    @Test(arguments: [true, false]) func `the sixteen most recent selections of a source are kept`(hasDisk: Bool)
        async throws
    {
        let folder = CacheFolder()
        try await withCache {
            if hasDisk { $0.cacheFolder = folder.path }
        } origin: {
            byLanguage($0)
        } _: { bench in
            for number in 0..<20 {
                bench.clock.advance(1)
                _ = try await bench.get("Accept-Language: \(number)")
            }
            let pipeline = hasDisk ? try await bench.another() : bench.pipeline
            if hasDisk { #expect(await pipeline.diskStatistics()?.records.entries == 16) }
            for number in [4, 19] {
                let request = bench.request(["Accept-Language: \(number)"])
                #expect(try await pipeline.original(for: request).handling.isHit)
            }
            let request = bench.request(["Accept-Language: 3"])
            #expect(try await pipeline.original(for: request).handling.forward == .varyMiss)
            if hasDisk { await pipeline.shutdown() }
        }
    }

    @Test func `an origin that begins to vary on something else is followed`() async throws {
        try await withCache { request in
            request.fields.first("if-none-match") == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=60", "Vary: Accept", "ETag: \"t\"", body: "b")
                : ScriptedResponse(304, "ETag: \"t\"", "Vary: Accept-Language")
        } _: { bench in
            _ = try await bench.get("Accept: a", german)
            bench.clock.advance(70)
            _ = try await bench.get("Accept: a", german)
            #expect(try await bench.get("Accept: other", german).handling.isHit)
            #expect(try await bench.get("Accept: a", english).handling.forward == .varyMiss)
        }
    }

    @Test func `selections of one picture make one variant`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=60", "Vary: User-Agent").picture()
        } _: { bench in
            let first = try await bench.image { $0.fields = [HeaderField("User-Agent", "a")] }
            let second = try await bench.image { $0.fields = [HeaderField("User-Agent", "b")] }
            #expect(first.outcome == .rendered && second.outcome == .memory && first.key == second.key)
            #expect(bench.count == 2)
        }
    }
}
