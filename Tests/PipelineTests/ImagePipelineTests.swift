@testable import HTTPCaching
@testable import PipelineCaching
@testable import PipelineFetching
import Glibc
import InMemoryLogging
import Logging
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

private let fresh: KeyValuePairs<String, String> = [
    "Content-Type": "image/jpeg", "Cache-Control": "max-age=600", "ETag": "\"1\"",
]
private let checked: KeyValuePairs<String, String> = [
    "Content-Type": "image/jpeg", "Cache-Control": "no-cache", "ETag": "\"1\"",
]

struct ImagePipelineTests {
    @Test func `a cold variant is rendered, a warm one is in memory, and another process reads the disk`() async throws
    {
        try await withPipeline { _ in
            picture("night-tiny.jpg", fresh)
        } _: { bench, pipeline in
            let cold = try await pipeline.respond(to: bench.request())
            #expect(cold.outcome == .rendered && cold.originalOutcome == .network && cold.key?.utf8.count == 64)
            let warm = try await pipeline.respond(to: bench.request())
            #expect(warm.outcome == .memory && warm.originalOutcome == .none && warm.bytes == cold.bytes)
            await pipeline.drain()
            let other = try bench.pipeline()
            let disk = try await other.respond(to: bench.request())
            await other.shutdown()
            #expect(disk.outcome == .disk && disk.bytes == cold.bytes && disk.key == cold.key)
            #expect(bench.origin.requests.count == 1 && bench.renderer.renders == 1)
        }
    }

    @Test func `the variant is kept after a 304 or identical bytes, but not after changed bytes`() async throws {
        try await withPipeline { request in
            request["if-none-match"] == "\"1\"" ? .response(304, checked) : picture("night-tiny.jpg", checked)
        } _: { bench, pipeline in
            let first = try await pipeline.respond(to: bench.request())
            let second = try await pipeline.respond(to: bench.request())
            #expect(second.outcome == .memory && second.originalOutcome == .revalidated && second.key == first.key)
            bench.answers { _ in picture("night-tiny.jpg", checked) }
            let equal = try await pipeline.respond(to: bench.request())
            #expect(equal.outcome == .memory && equal.originalOutcome == .network && equal.key == first.key)
            bench.answers { _ in picture("meadow-small.jpg", checked) }
            let changed = try await pipeline.respond(to: bench.request())
            #expect(changed.outcome == .rendered && changed.key != first.key)
            #expect(bench.origin.requests.count == 4 && bench.renderer.renders == 2)
        }
    }

    @Test func `no-store answers and keeps nothing`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "no-store"])
        } _: { bench, pipeline in
            let first = try await pipeline.respond(to: bench.request())
            let second = try await pipeline.respond(to: bench.request())
            #expect(first.outcome == .rendered && second.outcome == .rendered)
            #expect(bench.origin.requests.count == 2)
            await pipeline.drain()
            #expect(await pipeline.diskStatistics()?.variants.entries == 0)
            #expect(pipeline.memoryStatistics.variants.entries == 0)
        }
    }

    @Test func `Vary keeps one original for each selection`() async throws {
        try await withPipeline { request in
            picture(
                request["x-kind"] == "b" ? "meadow-small.jpg" : "night-tiny.jpg",
                ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600", "Vary": "X-Kind"])
        } _: { bench, pipeline in
            var a = try bench.request()
            a.fields = [HeaderField("X-Kind", "a")]
            var b = a
            b.fields = [HeaderField("X-Kind", "b")]
            let keys = [try await pipeline.respond(to: a).key, try await pipeline.respond(to: b).key]
            #expect(keys[0] != keys[1])
            #expect(try await pipeline.respond(to: a).key == keys[0])
            #expect(try await pipeline.respond(to: b).key == keys[1])
            #expect(bench.origin.requests.count == 2)
        }
    }

    @Test func `a hundred requests for five variants cause one fetch and five renders`() async throws {
        try await withPipeline { _ in
            picture("meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            let requests = try (0..<100).map { try bench.request("/a.jpg", "thumbnail:\(20 + $0 % 5)") }
            let count = try await withThrowingTaskGroup(of: ImageResponse.self) { group in
                for request in requests { group.addTask { try await pipeline.respond(to: request) } }
                return try await group.reduce(0) { count, _ in count + 1 }
            }
            #expect(count == 100 && bench.origin.requests.count == 1 && bench.renderer.renders == 5)
        }
    }

    @Test(arguments: [true, false])
    func `what a purge overtakes is stored nowhere`(hasDisk: Bool) async throws {
        let (asked, asks) = AsyncStream<Void>.makeStream()
        let door = Gate()
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", fresh) }
        let pipeline = try bench.pipeline {
            if !hasDisk { $0.cacheFolder = nil }
            $0.transport = GatedTransport(asks: asks, door: door)
        }
        let request = try bench.request()
        let running = Task { try await pipeline.respond(to: request) }
        for await _ in asked { break }
        _ = try await pipeline.purge(.source(request.source))
        door.open()
        #expect(try await running.value.outcome == .rendered)
        await pipeline.drain()
        #expect(pipeline.memoryStatistics.originals.entries == 0 && pipeline.memoryStatistics.variants.entries == 0)
        if hasDisk { #expect(await pipeline.diskStatistics()?.variants.entries == 0) }
        bench.origin.stop()
        await pipeline.shutdown()
    }

    @Test func `purge removes originals and variants, and bytes store after it`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", fresh)
        } _: { bench, pipeline in
            let request = try bench.request()
            _ = try await pipeline.respond(to: request)
            let result = try await pipeline.purge(.source(request.source))
            #expect(result.records == 1 && result.variants == 1)
            #expect(pipeline.memoryStatistics.variants.entries == 0)
            #expect(try await pipeline.respond(to: request).outcome == .rendered)
            let held = ImageRequest(.bytes(sample("originals/night-tiny.jpg"), name: "held"), recipe: request.recipe)
            // Equal bytes share their variants, whatever brought them.
            #expect(try await pipeline.respond(to: held).outcome == .memory)
            _ = try await pipeline.purge(.source(held.source))
            #expect(try await pipeline.respond(to: held).outcome == .rendered)
            await pipeline.drain()
            #expect(await pipeline.diskStatistics()?.variants.entries == 1)
        }
    }

    @Test(arguments: [true, false])
    func `many sources are purged at once, from memory and from disk`(hasDisk: Bool) async throws {
        let bench = try PipelineBench { request in
            picture(request.path.contains("other") ? "grey.jpg" : "night-tiny.jpg", fresh)
        }
        let pipeline = try bench.pipeline { if !hasDisk { $0.cacheFolder = nil } }
        let requests = ["/a/1", "/a/2", "/other/1"].map { path in
            ImageRequest(.url(bench.origin.url(path)), recipe: try? Recipe("thumbnail:20"))
        }
        for request in requests { _ = try await pipeline.respond(to: request) }
        let result = try await pipeline.purge(.prefix(bench.origin.url("/a/")))
        if hasDisk { #expect(result.sources == 2 && result.records == 2 && result.variants == 1) }
        // Entries outside the prefix stay in memory.
        #expect(pipeline.memoryStatistics.variants.entries == 1)
        #expect(try await pipeline.respond(to: requests[2]).outcome == .memory)
        #expect(try await pipeline.respond(to: requests[0]).outcome == .rendered)
        await pipeline.drain()
        #expect(bench.origin.requests.count == 4)
        _ = try await pipeline.purge(.host("127.0.0.1"))
        #expect(pipeline.memoryStatistics.variants.entries == 0 && pipeline.memoryStatistics.originals.entries == 0)
        if hasDisk { #expect(await pipeline.diskStatistics()?.records.entries == 0) }
        bench.origin.stop()
        await pipeline.shutdown()
    }

    @Test func `a file system without room costs no answer, and is warned of once`() async throws {
        let log = InMemoryLogHandler()
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", fresh) }
        let pipeline = try bench.pipeline {
            $0.disk.freeSpace = 1 << 62
            $0.logger = Logger(label: "test") { _ in log }
        }
        for path in ["/a", "/b"] {
            let request = ImageRequest(.url(bench.origin.url(path)), recipe: try Recipe("thumbnail:20"))
            #expect(try await pipeline.respond(to: request).bytes.isEmpty == false)
            #expect(try await pipeline.respond(to: request).outcome == .memory)
        }
        await pipeline.drain()
        let counters = await pipeline.diskStatistics()
        // The variant of equal bytes is made once.
        #expect(counters?.originals.refused == 2 && counters?.records.entries == 0)
        #expect(counters?.variants.refused == 1)
        #expect(log.entries.count == 1)
        #expect(log.entries.first?.message.description.contains("bytes are free") == true)
        bench.origin.stop()
        await pipeline.shutdown()
    }

    @Test func `stores that are refused together are counted once each, when they are tried alone`() throws {
        let folder = CacheFolder()
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 1 << 62
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        let body = bytes(100, seed: 1)
        let entry = variant("a", of: digest([1]), body)
        #expect(throws: StoreError.self) {
            try store.inOneTransaction { () throws(StoreError) in
                _ = try store.storeVariant(entry, body: body, generation: 1)
            }
        }
        let together = try store.statistics()
        #expect(together.variants.refused == 0 && together.originals.refused == 0)
        #expect(throws: StoreError.self) { try store.storeVariant(entry, body: body, generation: 1) }
        #expect(try store.statistics().variants.refused == 1)
        store.close()
    }

    @Test func `cancelling the only waiter is answered at once`() async throws {
        let (asked, asks) = AsyncStream<Void>.makeStream()
        let door = Gate()
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", fresh) }
        let pipeline = try bench.pipeline { $0.transport = GatedTransport(asks: asks, door: door) }
        let request = try bench.request()
        let only = Task { try await pipeline.respond(to: request) }
        for await _ in asked { break }
        only.cancel()
        let error = await #expect(throws: PipelineError.self) { try await only.value }
        #expect(error?.code == .cancelled)
        bench.origin.stop()
        await pipeline.shutdown()
    }

    @Test func `a dead origin leaves the stale picture`() async throws {
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", checkedByAge) }
        let pipeline = try bench.pipeline()
        let request = try bench.request()
        _ = try await pipeline.respond(to: request)
        bench.origin.stop()
        let stale = try await pipeline.respond(to: request)
        #expect(stale.isStale && stale.originalOutcome == .stale && stale.outcome == .memory)
        await pipeline.shutdown()
    }

    @Test func `events come in order, cold and warm`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", fresh)
        } _: { bench, pipeline in
            for expected in [["fetching", "progress", "rendering", "finished"], ["cached", "finished"]] {
                let load = pipeline.load(try bench.request())
                #expect(await names(of: load) == expected)
            }
        }
    }

    @Test func `failures have their codes and never show credentials`() async throws {
        try await withPipeline { request in
            switch request.path {
            case "/404": .response(404)
            case "/500": .response(500)
            case "/html": .response(200, ["Content-Type": "image/jpeg"], body: sample("broken/html-as.jpg"))
            case "/typed": .response(200, ["Content-Type": "text/html"], body: sample("broken/html-as.jpg"))
            case "/empty": .response(200, ["Content-Type": "image/jpeg"])
            case "/giant": .response(200, ["Content-Type": "image/png"], body: sample("broken/giant-header.png"))
            default: .response(200, ["Content-Type": "image/jpeg"], body: sample("broken/truncated.jpg"))
            }
        } _: { bench, pipeline in
            let codes: [(String, PipelineError.Code)] = [
                ("/404", .notFound), ("/500", .fetchFailed), ("/html", .notAnImage), ("/typed", .notAnImage),
                ("/empty", .notAnImage), ("/giant", .overLimit), ("/truncated", .undecodable),
            ]
            for (path, code) in codes {
                let url = "http://user:secret@127.0.0.1:\(bench.origin.port)\(path)"
                let error = await refusal(pipeline, ImageRequest(.url(url), recipe: try Recipe("thumbnail:40")))
                #expect(error?.code == code, "\(path)")
                #expect(error?.message.contains("secret") == false)
            }
            var missing = try bench.request("/never")
            missing.policy = .cacheOnly
            #expect(await refusal(pipeline, missing)?.code == .notCached)
            let masked = try bench.request("/x", "mask:absent")
            #expect(await refusal(pipeline, masked)?.code == .maskUnavailable)
        }
    }

    @Test func `a changed file gives a new variant, an unchanged one a hit`() async throws {
        try await withPipeline { _ in
            .response(404)
        } _: { bench, pipeline in
            let path = bench.cache.path + "/own.jpg"
            let write = { (name: String) in
                bench.cache.write(sample("originals/" + name), to: "own.jpg")
            }
            write("night-tiny.jpg")
            let request = ImageRequest(.file(path), recipe: try Recipe("thumbnail:40"))
            let first = try await pipeline.respond(to: request)
            #expect(first.outcome == .rendered)
            #expect(try await pipeline.respond(to: request).outcome == .memory)
            write("meadow-small.jpg")
            let changed = try await pipeline.respond(to: request)
            #expect(changed.outcome == .rendered && changed.key != first.key)
        }
    }

    @Test func `an answer says where the original's body came from if a render needed it`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let first = try await pipeline.respond(to: bench.request("/a.jpg", "thumbnail:20"))
            let second = try await pipeline.respond(to: bench.request("/a.jpg", "thumbnail:30"))
            let again = try await pipeline.respond(to: bench.request("/a.jpg", "thumbnail:30"))
            #expect(first.originalOutcome == .network && first.outcome == .rendered)
            #expect(second.originalOutcome == .memory && second.outcome == .rendered)
            #expect(again.originalOutcome == .none && again.outcome == .memory)
        }
    }

    @Test func `limits.bytes bounds what is fetched, too`() async throws {
        try await withPipeline {
            $0.rendering.limits.bytes = 500
        } handler: { _ in
            .response(200, ["Content-Type": "image/png"], body: bytes(501, seed: 1))
        } _: { bench, pipeline in
            let error = await #expect(throws: PipelineError.self) {
                _ = try await pipeline.original(for: OriginalRequest(url: bench.origin.url("/a")))
            }
            #expect(error?.code == .overLimit)
        }
    }

    @Test func `a file that several ask for at once is read once`() async throws {
        try await withPipeline { _ in
            .response(404)
        } _: { _, pipeline in
            let request = ImageRequest(
                .file(Samples.original("mountains-12mp.jpg")), recipe: try Recipe("thumbnail:40"))
            let admitted = try await pipeline.admit(request) { _ in }
            let finding = await pipeline.lookUp(admitted)
            // They meet unless the machine is so busy that one begins when another one has ended.
            for _ in 0..<50 {
                async let one = pipeline.original(finding, admitted)
                async let two = pipeline.original(finding, admitted)
                guard case .bytes(let here)? = try await one.body, case .bytes(let there)? = try await two.body else {
                    Issue.record("no body")
                    return
                }
                #expect(!here.isEmpty && here == there)
                let isOne = here.withUnsafeBytes { here in
                    there.withUnsafeBytes { $0.baseAddress == here.baseAddress }
                }
                if isOne { return }
            }
            Issue.record("it is read by each")
        }
    }
}

private let checkedByAge: KeyValuePairs<String, String> = [
    "Content-Type": "image/jpeg", "Cache-Control": "max-age=0", "ETag": "\"1\"",
]

/// Answers with a picture once its door is open, and says when it is asked.
struct GatedTransport: Transport {
    let asks: AsyncStream<Void>.Continuation
    let door: Gate
    var control = "max-age=600"

    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        asks.yield()
        // A cancelled wait ends like an open door. The pipeline's waiter has left before.
        try? await door.pass()
        let now = SystemClock.unix.seconds
        let fields = [HeaderField("Content-Type", "image/jpeg"), HeaderField("Cache-Control", control)]
        return FetchedResponse(
            status: 200, fields: fields, body: sample("originals/night-tiny.jpg"),
            requestTime: now, responseTime: now, finalURL: request.url)
    }

    func shutdown() async {}
}
