@testable import HTTPCaching
@testable import PipelineCaching
@testable import PipelineFetching
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// A 200 that is not a decodable image: for variants the origin is asked again soon, and the last good picture stays.
@Suite(.timeLimit(.minutes(20))) struct BrokenAnswersTests {
    /// Mistakes of an origin, or a CDN before it.
    enum Breakage: String, CaseIterable {
        case empty, page, pageByType, cut

        func answer(_ control: String, tag: String = "\"broken\"") -> ScriptedResponse {
            let type = self == .pageByType ? "text/html" : "image/jpeg"
            var answer = ScriptedResponse(200, "Cache-Control: \(control)", "Content-Type: \(type)", "ETag: \(tag)")
            switch self {
            case .empty: break
            case .page, .pageByType: answer.body = Array("<html>come back later</html>".utf8)
            case .cut:
                answer = answer.picture("meadow-small.jpg")
                answer.body.removeLast(answer.body.count / 2)
            }
            return answer
        }

        var code: PipelineError.Code { self == .cut ? .undecodable : .notAnImage }
    }

    private static func picture(_ control: String, _ name: String = "night-tiny.jpg", tag: String = "\"a\"")
        -> ScriptedResponse
    {
        ScriptedResponse(200, "Cache-Control: \(control)", "Content-Type: image/jpeg", "ETag: \(tag)").picture(name)
    }

    private func refusal(_ bench: CachingBench, _ recipe: String = "thumbnail:40") async -> PipelineError.Code? {
        await bench.imageRefusal { $0.recipe = try? Recipe(recipe) }?.code
    }

    @Test(arguments: Breakage.allCases)
    func `it is asked for again after errorMaxAge, not after its freshness`(breakage: Breakage) async throws {
        try await withCache {
            $0.acceptedTypes = ["image/*"]
        } origin: { _ in
            breakage.answer("max-age=31536000, immutable")
        } _: { bench in
            for _ in 0..<3 { #expect(await refusal(bench) == breakage.code) }
            #expect(bench.count == 1)
            bench.clock.advance(2)
            #expect(await refusal(bench) == breakage.code)
            #expect(bench.count == 2)
            // A truncated body has the validators of the complete one, which the origin would confirm.
            #expect(bench.sent("if-none-match") == nil)
            bench.origin.answers { _ in Self.picture("max-age=600", tag: "\"broken\"") }
            bench.clock.advance(2)
            for outcome in [ImageResponse.Outcome.rendered, .memory] {
                let image = try await bench.image()
                #expect(image.outcome == outcome)
            }
            #expect(bench.count == 3 && bench.sent("if-none-match") == nil)
        }
    }

    @Test func `errorMaxAge bounds how often, 0 not at all`() async throws {
        for (age, count) in [(30, 1), (0, 3)] {
            try await withCache {
                $0.caching.errorMaxAge = .seconds(age)
            } origin: { _ in
                Breakage.empty.answer("max-age=600")
            } _: { bench in
                for _ in 0..<3 { #expect(await refusal(bench) == .notAnImage) }
                #expect(bench.count == count)
                bench.clock.advance(29)
                _ = await refusal(bench)
                #expect(bench.count == (age == 0 ? 4 : 1))
            }
        }
    }

    @Test(arguments: Breakage.allCases, ["max-age=600", "no-store"])
    func `the last good picture stays, stale`(breakage: Breakage, control: String) async throws {
        try await withCache {
            $0.acceptedTypes = ["image/*"]
            $0.cacheFolder = nil
        } origin: { _ in
            Self.picture("max-age=1")
        } _: { bench in
            let good = try await bench.image()
            bench.clock.advance(2)
            bench.origin.answers { _ in breakage.answer(control) }
            for _ in 0..<2 {
                let stale = try await bench.image()
                #expect(stale.isStale && stale.bytes == good.bytes)
            }
            // Another recipe, too: the picture's body is still there.
            #expect(try await bench.image("thumbnail:20").isStale)
            #expect(bench.count == 2)
            // The origin is well again, and confirms the picture.
            bench.clock.advance(2)
            bench.origin.answers { request in
                request.fields.first("if-none-match") == "\"a\""
                    ? ScriptedResponse(304, "ETag: \"a\"") : ScriptedResponse(500)
            }
            let again = try await bench.image()
            #expect(!again.isStale && again.bytes == good.bytes && again.outcome == .memory && bench.count == 3)
            // Or sends another.
            bench.clock.advance(2)
            bench.origin.answers { _ in Self.picture("max-age=600", "grey.jpg", tag: "\"b\"") }
            let new = try await bench.image()
            #expect(!new.isStale && new.bytes != good.bytes)
            #expect(try await bench.image().bytes == new.bytes && bench.count == 4)
        }
    }

    @Test(arguments: Breakage.allCases)
    func `where staleness is forbidden the error shows, and the picture comes back`(breakage: Breakage) async throws {
        try await withCache { _ in
            Self.picture("max-age=1, must-revalidate")
        } _: { bench in
            let good = try await bench.image()
            bench.clock.advance(2)
            bench.origin.answers { _ in breakage.answer("max-age=600") }
            #expect(await refusal(bench) == breakage.code)
            bench.clock.advance(2)
            bench.origin.answers { _ in ScriptedResponse(304, "ETag: \"a\"") }
            let again = try await bench.image()
            #expect(again.bytes == good.bytes && again.outcome == .memory && bench.sent("if-none-match") == "\"a\"")
        }
    }

    @Test(arguments: [Breakage.empty, .page, .cut])
    func `a raw response is reused as RFC 9111 says, beside the picture`(breakage: Breakage) async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: { _ in
            Self.picture("max-age=1")
        } _: { bench in
            let good = try await bench.image()
            bench.clock.advance(2)
            let broken = breakage.answer("max-age=600")
            bench.origin.answers { _ in broken }
            #expect(try await bench.get().body == broken.body)
            #expect(bench.count == 2)
            let again = try await bench.get()
            #expect(again.body == broken.body && again.handling.isHit && bench.count == 2)
            let stale = try await bench.image()
            #expect(stale.isStale && stale.bytes == good.bytes)
            #expect(try await bench.get().handling.isHit)
            // Another process finds both.
            let other = try await bench.another()
            let raw = try await other.original(for: bench.request([]))
            #expect(raw.handling.isHit && raw.body == broken.body)
            let image = try await other.respond(
                to: ImageRequest(.url(CachingBench.url), recipe: Recipe("thumbnail:40")))
            #expect(image.bytes == good.bytes && image.isStale)
            await other.shutdown()
        }
    }

    @Test func `a new picture takes the place of the old one once a variant of it is rendered`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: { _ in
            Self.picture("max-age=1")
        } _: { bench in
            let old = try await bench.image()
            bench.clock.advance(2)
            bench.origin.answers { _ in Self.picture("max-age=600", "grey.jpg", tag: "\"b\"") }
            #expect(try await bench.get().handling.isStored)
            let records = bench.pipeline.tiers.memory
            #expect(records.peek(source: CachingBench.url)?.count == 2)
            let new = try await bench.image()
            #expect(new.bytes != old.bytes && !new.isStale && bench.count == 2)
            let left = try #require(records.peek(source: CachingBench.url))
            #expect(left.map(\.digest) == [new.record.digest] && left.allSatisfy { !$0.isProvisional })
            let hit = try await bench.image()
            #expect(bench.pipeline.memoryAnswer(for: hit) != nil)
            let other = try await bench.another()
            let stored = try await other.respond(
                to: ImageRequest(.url(CachingBench.url), recipe: Recipe("thumbnail:40")))
            #expect(stored.bytes == new.bytes && !stored.isStale && bench.count == 2)
            let whole = try await other.original(for: bench.request([]))
            #expect(whole.handling.isHit && whole.body == sample("originals/grey.jpg"))
            await other.shutdown()
        }
    }

    @Test func `behind stale-while-revalidate a broken answer changes nothing, a new picture comes next`() async throws
    {
        try await withCache { _ in
            Self.picture("max-age=1, stale-while-revalidate=600")
        } _: { bench in
            let good = try await bench.image()
            for breakage in [Breakage.cut, .empty] {
                bench.clock.advance(3)
                bench.origin.answers { _ in breakage.answer("max-age=600") }
                for _ in 0..<3 {
                    #expect(try await bench.image().bytes == good.bytes)
                    await bench.pipeline.drain()
                }
            }
            bench.clock.advance(3)
            bench.origin.answers { _ in Self.picture("max-age=600", "grey.jpg", tag: "\"b\"") }
            #expect(try await bench.image().bytes == good.bytes)
            await bench.pipeline.drain()
            let new = try await bench.image()
            #expect(new.bytes != good.bytes && !new.isStale)
        }
    }

    @Test(arguments: [404, 410, 500, 503, 403])
    func `without errorMaxAge some errors are remembered for two seconds, for variants`(status: Int) async throws {
        try await withCache { _ in
            ScriptedResponse(status)
        } _: { bench in
            let isRemembered = status != 403
            for _ in 0..<3 { _ = await refusal(bench) }
            #expect(bench.count == (isRemembered ? 1 : 3))
            let before = bench.count
            bench.clock.advance(2)
            _ = await refusal(bench)
            #expect(bench.count == before + 1)
            for _ in 0..<2 {
                let raw = try await bench.get()
                #expect(raw.status == status)
            }
            #expect(bench.count == before + 3)
        }
    }
}
