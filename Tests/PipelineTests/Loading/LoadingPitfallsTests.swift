import Glibc
@testable import PipelineCaching
@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Faults that loaders of images are known to have.
@Suite(.timeLimit(.minutes(10))) struct LoadingPitfallsTests {
    private static func request(_ name: String, _ recipe: String? = "thumbnail:20") throws -> ImageRequest {
        ImageRequest(.url("http://origin.test/\(name)"), recipe: try recipe.map { try Recipe($0) })
    }

    private static func picture(_ name: String = "night-tiny.jpg") -> ScriptedResponse {
        ScriptedResponse(200, "Cache-Control: max-age=600").picture(name)
    }

    private static func code(_ load: LoadTask) async -> PipelineError.Code? {
        do throws(PipelineError) {
            _ = try await load.response
            return nil
        } catch { return error.code }
    }

    // MARK: Caching

    @Test(arguments: 0..<16) func `each tier is filled as the request says`(options: Int) async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: { _ in
            Self.picture()
        } _: { bench in
            var request = try Self.request("a")
            for options in [0, options] {
                request.storage = StorageOptions(rawValue: options)
                _ = try await bench.pipeline.respond(to: request)
                await bench.pipeline.drain()
                let memory = bench.pipeline.memoryStatistics
                let disk = try #require(await bench.pipeline.diskStatistics())
                let found = [memory.originals, disk.originals, memory.variants, disk.variants].map(\.entries)
                #expect(found == (0..<4).map { options >> $0 & 1 })
                #expect(memory.records.entries == found[0] && disk.records.entries == found[1])
            }
        }
    }

    @Test func `a stored original serves every recipe and none, without the origin, and what is made of it is stored`()
        async throws
    {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: { request in
            Self.picture(request.url.name == "g" ? "balloon.gif" : "night-tiny.jpg")
        } _: { bench in
            for name in ["a", "g"] {
                _ = try await bench.pipeline.respond(to: Self.request(name))
                for (recipe, outcomes) in [
                    ("thumbnail:24", [ImageResponse.Outcome.rendered, .disk]), (nil, [.disk, .disk]),
                ] {
                    for outcome in outcomes {
                        let other = try await bench.another()
                        var request = try Self.request(name, recipe)
                        request.policy = .cacheOnly
                        #expect(try await other.respond(to: request).outcome == outcome, "\(name) \(recipe ?? "")")
                        await other.shutdown()
                    }
                }
                #expect(try await bench.get(url: "http://origin.test/\(name)").handling.isHit)
            }
            #expect(bench.count == 2)
        }
    }

    @Test func `a picture too large for memory takes the earlier one's place`() async throws {
        try await withCache {
            $0.memory = MemoryBudgets(originals: 40_000, variants: 0, records: 40_000)
        } origin: { request in
            var answer = Self.picture()
            if request.fields.first("cache-control") != nil { answer.body += [UInt8](repeating: 0, count: 50_000) }
            return answer
        } _: { bench in
            let request = try Self.request("a", nil)
            let first = try await bench.pipeline.respond(to: request)
            #expect(bench.pipeline.cachedImage(for: request) != nil)
            var reload = request
            reload.policy = .reload
            reload.fields = [HeaderField("Cache-Control", "no-cache")]
            let second = try await bench.pipeline.respond(to: reload)
            #expect(second.digest != first.digest && bench.pipeline.cachedImage(for: request) == nil)
            bench.pipeline.tiers.memory.records.reduce(to: 0)
            #expect(bench.pipeline.cachedImage(for: request) == nil)
        }
    }

    @Test func `budgets that are changed at once are those of one of the callers`() async {
        for _ in 0..<200 {
            let store = MemoryStore<Int>(budget: 1 << 20, shards: 16)
            await withTaskGroup { group in
                for budget in [1 << 16, 1 << 18] { group.addTask { store.resize(to: budget) } }
            }
            for key in 0..<1_000 { store.insert(key, body: [UInt8](repeating: 0, count: 512), for: "\(key)") }
            let counters = store.counters
            #expect(counters.bytes <= counters.budget && counters.bytes > counters.budget / 2)
        }
    }

    @Test func `a prefetch of what is stale asks the origin`() async throws {
        try await withCache { _ in
            Self.picture()
        } _: { bench in
            _ = try await bench.pipeline.respond(to: Self.request("a"))
            bench.clock.advance(601)
            for load in ImageLoader(bench.pipeline).prefetch([try Self.request("a")]) { _ = try await load.response }
            #expect(bench.pipeline.cachedImage(for: try Self.request("a"))?.isStale == false && bench.count == 2)
        }
    }

    // MARK: Sources

    @Test(arguments: [0, 1]) func `nothing, or one byte, is no image, wherever it comes from`(count: Int) async throws {
        struct Provider: OriginalProvider {
            let count: Int
            func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
                .bytes([UInt8](repeating: 0x47, count: count), version: "1")
            }
        }
        let folder = ScratchFolder()
        let bytes = [UInt8](repeating: 0x47, count: count)
        folder.write(bytes, to: "a.gif")
        try await withCache {
            $0.providers = ["own": Provider(count: count)]
        } origin: { _ in
            ScriptedResponse(200, "Content-Type: image/gif", body: String(repeating: "G", count: count))
        } _: { bench in
            let here = [ImageSource.bytes(bytes, name: "b"), .file("\(folder.path)/a.gif")]
            for source in [.url("http://origin.test/a"), .url("own:a")] + here {
                for recipe in [try Recipe("thumbnail:20"), nil] {
                    #expect(await Self.code(bench.pipeline.load(ImageRequest(source, recipe: recipe))) == .notAnImage)
                }
            }
        }
    }

    /// Answers the second call and all later ones; does not heed cancellation.
    private final class Deaf: OriginalProvider {
        let door = Door()
        private let calls = Mutex(0)

        func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
            if path == "deaf" { await door.pass() }
            return .bytes(sample("originals/night-tiny.jpg"))
        }
    }

    @Test func `calls that never return hold their places for the time limit, and no longer`() async throws {
        let deaf = Deaf()
        try await withCache {
            $0.providers = ["deaf": deaf]
            $0.fetch.maxConcurrentTransfers = 1
            $0.fetch.totalTimeout = .seconds(0.2)
        } origin: { _ in
            ScriptedResponse(500)
        } _: { bench in
            let left = bench.pipeline.load(ImageRequest(.url("deaf:deaf")))
            await deaf.door.arrivals(1)
            left.cancel()
            #expect(await Self.code(left) == .cancelled)
            #expect(await Self.code(bench.pipeline.load(ImageRequest(.url("deaf:a")))) == nil)
            deaf.door.open()
        }
    }

    /// Reports progress out of order, and after its end.
    private struct Disorderly: Transport {
        let late = Door()

        func fetch(
            _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
        ) async throws(FetchError) -> FetchedResponse {
            let body = sample("originals/night-tiny.jpg")
            for received in [body.count, 10, body.count / 2] { onProgress?(received, body.count) }
            Task {
                await late.pass()
                onProgress?(1, body.count)
            }
            return FetchedResponse(
                status: 200, fields: [HeaderField("Cache-Control", "max-age=60")], body: body, requestTime: 0,
                responseTime: 0, finalURL: request.url, milliseconds: 1, redirects: [])
        }

        func shutdown() async {}
    }

    @Test func `progress never goes back, whatever a transport reports`() async throws {
        let transport = Disorderly()
        try await withCache {
            $0.transport = transport
        } origin: { _ in
            ScriptedResponse(500)
        } _: { bench in
            let load = bench.pipeline.load(try Self.request("a"))
            var received: [Int] = []
            for await event in load.events { if case .progress(let count, _) = event { received.append(count) } }
            transport.late.open()
            await transport.late.arrivals(1)
            #expect(received == received.sorted() && !received.isEmpty)
            #expect(load.status.received == load.status.expected && load.status.phase == .finished)
        }
    }

    @Test(arguments: ["", "Content-Length: 99999999999999999999\r\n", "Content-Length: 9223372036854775807\r\n"])
    func `the rest of a body may come with any length, or none`(length: String) async throws {
        let body = sample("originals/dusk-2mp.jpg")
        let cut = body.count / 2
        try await withPipeline {
            $0.fetch.maxRetries = 2
        } handler: { request in
            switch request["range"] {
            case "bytes=\(cut)-":
                return .raw(
                    "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\n\(length)"
                        + "Content-Range: bytes \(cut)-\(body.count - 1)/\(body.count)\r\n\r\n",
                    then: [.bytes(Array(body[cut...]))])
            default:
                return .raw(
                    "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: \(body.count)\r\n\r\n",
                    then: [.bytes(Array(body[..<cut]))])
            }
        } _: { bench, pipeline in
            let load = pipeline.load(try bench.request())
            for await event in load.events {
                guard case .progress(let received, let expected) = event else { continue }
                #expect(expected == body.count && received <= body.count)
            }
            // A length that no body has is an error of the origin.
            let code = await Self.code(load)
            #expect(code == nil || !length.isEmpty)
        }
    }
}
