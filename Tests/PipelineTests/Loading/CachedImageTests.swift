@testable import PipelineFetching
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// The answers that memory gives at once.
@Suite(.timeLimit(.minutes(10))) struct CachedImageTests {
    private static func request(_ name: String, _ recipe: String? = "thumbnail:20") throws -> ImageRequest {
        ImageRequest(.url("http://origin.test/\(name)"), recipe: try recipe.map { try Recipe($0) })
    }

    private static func answer(_ fields: String...) -> ScriptedResponse {
        ScriptedResponse(200, fields.first ?? "Cache-Control: max-age=60").picture()
    }

    @Test(arguments: ["thumbnail:20", nil])
    func `memory answers as respond does, until it is stale, and then says so`(recipe: String?) async throws {
        try await withCache { _ in
            Self.answer()
        } _: { bench in
            let request = try Self.request("a", recipe)
            #expect(bench.pipeline.cachedImage(for: request) == nil)
            let first = try await bench.pipeline.respond(to: request)
            let cached = try #require(bench.pipeline.cachedImage(for: request))
            let again = try await bench.pipeline.respond(to: request)
            #expect(cached.bytes == first.bytes && !cached.isStale && cached.outcome == .memory)
            #expect(cached.key == again.key && cached.originalOutcome == again.originalOutcome)
            #expect(cached.digest == again.digest && cached.record == again.record && cached.isStorable)
            bench.clock.advance(61)
            #expect(bench.pipeline.cachedImage(for: request)?.isStale == true)
            #expect(bench.count == 1)
            _ = try await bench.pipeline.respond(to: request)
            #expect(bench.pipeline.cachedImage(for: request)?.isStale == false)
            #expect(bench.count == 2)
        }
    }

    @Test func `nothing behind memory is asked, and what may not answer does not`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.rendering.masks = "/"
            $0.cacheFolder = folder.path
        } origin: { request in
            request.url.name == "n" ? Self.answer("Cache-Control: no-store") : Self.answer()
        } _: { bench in
            let pipeline = bench.pipeline
            for name in ["a", "n"] { _ = try await pipeline.respond(to: Self.request(name)) }
            await pipeline.drain()
            #expect(pipeline.cachedImage(for: try Self.request("n")) == nil)
            #expect(pipeline.cachedImage(for: try Self.request("a", "thumbnail:21")) == nil)
            #expect(pipeline.cachedImage(for: try Self.request("a", "mask:b")) == nil)
            #expect(pipeline.cachedImage(for: ImageRequest(.bytes([1], name: "b"))) == nil)
            #expect(pipeline.cachedImage(for: ImageRequest(.url("no URL"))) == nil)
            #expect(pipeline.cachedImage(for: try Self.request("a")) != nil)
            // The folder still has it.
            pipeline.reduceMemory()
            #expect(pipeline.cachedImage(for: try Self.request("a")) == nil)
            #expect(try await pipeline.respond(to: Self.request("a")).outcome == .disk)
            #expect(pipeline.cachedImage(for: try Self.request("a")) != nil)
            _ = try await pipeline.purge(.source(.url("http://origin.test/a")), mode: .soft)
            #expect(pipeline.cachedImage(for: try Self.request("a"))?.isStale != false)
            _ = try await pipeline.purge(.source(.url("http://origin.test/a")))
            #expect(pipeline.cachedImage(for: try Self.request("a")) == nil)
            _ = try await pipeline.respond(to: Self.request("a"))
            await pipeline.shutdown()
            #expect(pipeline.cachedImage(for: try Self.request("a")) == nil)
        }
    }

    @Test func `an original that has changed is shown without a render of it`() async throws {
        try await withCache { _ in
            Self.answer()
        } _: { bench in
            let request = try Self.request("a", nil)
            _ = try await bench.pipeline.respond(to: request)
            bench.clock.advance(61)
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: max-age=60").picture("meadow-small.jpg") }
            let changed = try await bench.pipeline.respond(to: request)
            let cached = bench.pipeline.cachedImage(for: request)
            #expect(cached?.digest == changed.digest && cached?.isStale == false)
            #expect(bench.pipeline.load(request).status.phase == .finished && bench.count == 2)
            // No variant of it has been rendered, and the one of the former original is not shown in its place.
            #expect(bench.pipeline.cachedImage(for: try Self.request("a")) == nil)
        }
    }

    @Test func `Vary selects here too`() async throws {
        try await withCache { request in
            ScriptedResponse(200, "Cache-Control: max-age=60", "Vary: Accept-Language").picture(
                request.fields.first("accept-language") == "de" ? "night-tiny.jpg" : "meadow-small.jpg")
        } _: { bench in
            var german = try Self.request("a")
            german.fields = [HeaderField("Accept-Language", "de")]
            let first = try await bench.pipeline.respond(to: german)
            #expect(bench.pipeline.cachedImage(for: german)?.digest == first.digest)
            #expect(bench.pipeline.cachedImage(for: try Self.request("a")) == nil)
            let other = try await bench.pipeline.respond(to: Self.request("a"))
            #expect(other.digest != first.digest)
            #expect(bench.pipeline.cachedImage(for: german)?.digest == first.digest)
        }
    }

    @Test func `a file's picture is shown and counts as stale, since the file was not asked`() async throws {
        try await withCache { _ in
            Self.answer()
        } _: { bench in
            let request = ImageRequest(.file(Samples.original("night-tiny.jpg")), recipe: try Recipe("thumbnail:20"))
            let first = try await bench.pipeline.respond(to: request)
            let cached = try #require(bench.pipeline.cachedImage(for: request))
            #expect(cached.isStale && cached.bytes == first.bytes)
        }
    }

    @Test func `a load that memory can answer has ended when it is returned, and asks for what it may not`()
        async throws
    {
        try await withCache { _ in
            Self.answer()
        } _: { bench in
            let request = try Self.request("a")
            _ = try await bench.pipeline.load(request).response
            let load = bench.pipeline.load(request)
            guard case .success(let response)? = load.status.result else {
                Issue.record("not ended")
                return
            }
            #expect(response.outcome == .memory && load.status.cached?.digest == response.digest)
            #expect(await load.events.reduce(into: []) { $0.append($1.place) } == [0, 4])
            load.cancel()
            #expect(try await load.response.digest == response.digest && !load.status.isCancelled)
            // It takes no place, also while nothing may begin.
            let loader = ImageLoader(bench.pipeline)
            loader.suspend()
            #expect(loader.load(request).status.phase == .finished && loader.statistics.waiting == 0)
            for change in [{ $0.policy = .reload }, { $0.policy = .revalidate }] as [(inout ImageRequest) -> Void] {
                var asks = request
                change(&asks)
                _ = try await bench.pipeline.load(asks).response
            }
            #expect(bench.count == 3)
            bench.clock.advance(61)
            _ = try await bench.pipeline.load(request).response
            #expect(bench.count == 4)
        }
    }

    @Test func `a hit at once is counted as one`() async throws {
        try await withCache { _ in
            Self.answer()
        } _: { bench in
            let request = try Self.request("a")
            _ = try await bench.pipeline.respond(to: request)
            let before = bench.pipeline.memoryStatistics
            _ = bench.pipeline.cachedImage(for: request)
            let after = bench.pipeline.memoryStatistics
            #expect(after.variants.hits == before.variants.hits + 1 && after.records.hits == before.records.hits + 1)
            // A caller that gets nothing asks in full, which counts the miss.
            _ = bench.pipeline.cachedImage(for: try Self.request("a", "thumbnail:21"))
            #expect(bench.pipeline.memoryStatistics.variants.misses == after.variants.misses)
        }
    }
}
