import Glibc
@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing
import Tracing
import Variants

@testable import Pipeline

/// The queue of loads before a real pipeline.
@Suite(.timeLimit(.minutes(20))) struct ImageLoaderTests {
    private static func request(_ name: String, _ change: (inout ImageRequest) -> Void = { _ in }) throws
        -> ImageRequest
    {
        var request = ImageRequest(.url("http://origin.test/\(name)"), recipe: try Recipe("thumbnail:20"))
        change(&request)
        return request
    }

    private static func code(_ load: LoadTask) async -> PipelineError.Code? {
        do throws(PipelineError) {
            _ = try await load.response
            return nil
        } catch { return error.code }
    }

    private static func configuration(_ change: (inout LoaderConfiguration) -> Void = { _ in }) -> LoaderConfiguration {
        var configuration = LoaderConfiguration()
        configuration.maxConcurrentLoads = 1
        change(&configuration)
        return configuration
    }

    private static func picture() -> ScriptedResponse { ScriptedResponse(200, "Cache-Control: max-age=60").picture() }

    /// Runs `body` with an origin that answers once the door is open.
    private static func withDoor(_ body: (CachingBench, Door) async throws -> Void) async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return Self.picture()
        } _: {
            try await body($0, door)
        }
    }

    @Test func `one load begins after the other, raised ones first, and cancelled ones never`() async throws {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration())
            let first = loader.load(try Self.request("a"))
            await door.arrivals(1)
            let others = try "bcde".map { loader.load(try Self.request(String($0))) }
            let soon = loader.prefetch([try Self.request("f"), try Self.request("b")])
            #expect(loader.statistics.waiting == 5 && loader.statistics.prefetches == 1)
            others[2].priority = .high
            others[1].cancel()
            #expect(await Self.code(others[1]) == .cancelled)
            #expect(loader.statistics.waiting == 4 && bench.count == 1)
            door.open()
            for load in [first, others[0], others[2], others[3]] + soon { #expect(await Self.code(load) == nil) }
            #expect(bench.origin.requests.map(\.url.name) == ["a", "d", "b", "e", "f"])
            await waitOrRecord { loader.statistics.running > 0 }
            let statistics = loader.statistics
            #expect(statistics.waiting == 0 && statistics.prefetches == 0 && statistics.ended == 6)
        }
    }

    @Test func `while suspended what runs ends and nothing begins, and cancelAll ends all`() async throws {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration())
            let running = loader.load(try Self.request("a"))
            await door.arrivals(1)
            loader.suspend()
            let waiting = loader.load(try Self.request("b"))
            door.open()
            #expect(await Self.code(running) == nil)
            #expect(waiting.status.phase == .waiting && loader.statistics.isSuspended && bench.count == 1)
            loader.resume()
            #expect(await Self.code(waiting) == nil)
            loader.suspend()
            let cancelled = [loader.load(try Self.request("c"))] + loader.prefetch([try Self.request("d")])
            loader.cancelAll()
            for load in cancelled { #expect(await Self.code(load) == .cancelled) }
            loader.resume()
            #expect(await Self.code(loader.load(try Self.request("e"))) == nil)
            #expect(bench.count == 3)
        }
    }

    @Test(arguments: 0..<20) func `a load that has just joined keeps the fetch when the other one is cancelled`(
        _ round: Int
    ) async throws {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration())
            let soon = loader.prefetch([try Self.request("a")])
            await door.arrivals(1)
            let load = loader.load(try Self.request("a"))
            soon[0].cancel()
            #expect(await Self.code(soon[0]) == .cancelled)
            door.open()
            #expect(await Self.code(load) == nil)
            #expect(bench.count == 1)
        }
    }

    @Test func `work that went on for another load ends with that one`() async throws {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration())
            let loads = try (0..<3).map { _ in loader.load(try Self.request("a")) }
            await door.arrivals(1)
            for load in loads { load.cancel() }
            await waitOrRecord { bench.pipeline.fetches.waiting > 0 }
            #expect(loader.statistics.running == 0)
            door.open()
        }
    }

    @Test func `bytes are not digested on the caller's thread`() async throws {
        try await withCache { _ in
            ScriptedResponse(500)
        } _: { bench in
            let loader = ImageLoader(bench.pipeline)
            loader.suspend()
            let bytes = ImageRequest(.bytes([UInt8](repeating: 1, count: 32 << 20), name: "long"))
            let began = Self.threadMilliseconds
            for _ in 0..<10 { _ = (loader.load(bytes), loader.prefetch([bytes])) }
            // Twenty digests take half a second of the thread's time.
            #expect(Self.threadMilliseconds - began < 100)
            #expect(loader.statistics.waiting == 1)
            var named = ImageRequest(.bytes([1], name: "short"))
            for (id, count) in [("a", 2), ("a", 2), ("b", 3)] {
                named.sourceID = id
                _ = loader.load(named)
                #expect(loader.statistics.waiting == count)
            }
            loader.cancelAll()
        }
    }

    private static var threadMilliseconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) * 1_000 + Double(time.tv_nsec) / 1e6
    }

    @Test func `a suspended loader that is released ends what it holds back, one that runs does all of it`()
        async throws
    {
        try await Self.withDoor { bench, door in
            func released(isSuspended: Bool) throws -> (Weak, [LoadTask]) {
                let loader = ImageLoader(bench.pipeline, Self.configuration())
                if isSuspended { loader.suspend() }
                let loads = [loader.load(try Self.request("a")), loader.load(try Self.request("b"))]
                return (Weak(loader), loads + loader.prefetch([try Self.request("c")]))
            }
            let (held, ended) = try released(isSuspended: true)
            #expect(held.loader == nil)
            for load in ended { #expect(load.status.isCancelled && load.status.result != nil) }
            let (running, loads) = try released(isSuspended: false)
            await door.arrivals(1)
            #expect(running.loader != nil && bench.count == 1)
            door.open()
            for load in loads { #expect(await Self.code(load) == nil) }
            await waitOrRecord { running.loader != nil }
        }
    }

    @Test func `a prefetch that is raised by its handle is a load from then on`() async throws {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration())
            loader.suspend()
            let prefetches = loader.prefetch(try ["a", "b", "c"].map { try Self.request($0) })
            #expect(loader.statistics.prefetches == 3)
            prefetches[1].priority = .high
            #expect(loader.statistics.prefetches == 2)
            loader.cancelAll()
            door.open()
        }
    }

    private final class Weak {
        weak var loader: ImageLoader?
        init(_ loader: ImageLoader) { self.loader = loader }
    }

    @Test func `cancelAll begins nothing that waits`() async throws {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration())
            let loads = try (0..<1_000).map { number in
                loader.load(try Self.request("\(number % 10)") { $0.sourceID = "\(number)" })
            }
            await door.arrivals(1)
            loader.cancelAll()
            for load in loads { #expect(await Self.code(load) == .cancelled) }
            door.open()
            await bench.pipeline.drain()
            #expect(bench.count == 1 && loader.statistics.ended == 1_000)
        }
    }

    @Test func `a load belongs to the trace that asked for it, whatever lets it begin`() async throws {
        let door = Door()
        let seen = Mutex<[String?]>([])
        try await withCache { request in
            seen.withLock { $0.append(InstrumentationContext.current?[TraceName.self]) }
            await door.pass()
            return Self.picture()
        } _: { bench in
            let loader = ImageLoader(bench.pipeline, Self.configuration())
            var loads: [LoadTask] = []
            for name in ["a", "b", "c"] {
                var context = InstrumentationContext.topLevel
                context[TraceName.self] = name
                loads.append(
                    try InstrumentationContext.$current.withValue(context) { loader.load(try Self.request(name)) })
            }
            door.open()
            for load in loads { #expect(await Self.code(load) == nil) }
            #expect(seen.withLock { $0 } == ["a", "b", "c"])
        }
    }

    private enum TraceName: InstrumentationContextKey { typealias Value = String }

    @Test func `newer loads take the place of older ones, and abandoned ones go on into the cache`() async throws {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration { $0.maxWaiting = 2 })
            let runs = loader.load(try Self.request("a") { $0.finishWhenAbandoned = true })
            await door.arrivals(1)
            let waits = loader.load(try Self.request("b") { $0.finishWhenAbandoned = true })
            let dropped = loader.load(try Self.request("c"))
            #expect(await Self.code(waits) == .superseded)
            let last = loader.load(try Self.request("d"))
            #expect(await Self.code(dropped) == .superseded)
            let newest = loader.load(try Self.request("e"))
            #expect(await Self.code(last) == .superseded)
            #expect(runs.status.result == nil && !last.status.isCancelled)
            // Two of the same request are one place.
            let twin = loader.load(try Self.request("e"))
            door.open()
            for load in [runs, newest, twin] { #expect(await Self.code(load) == nil) }
            await bench.pipeline.drain()
            await waitOrRecord { loader.statistics.running + loader.statistics.waiting > 0 }
            #expect(bench.origin.requests.map(\.url.name) == ["a", "e", "b"])
            #expect(loader.statistics.superseded == 3)
            for (name, isCached) in [("a", true), ("b", true), ("c", false)] {
                let cached = bench.pipeline.load(try Self.request(name) { $0.policy = .cacheOnly })
                #expect((await Self.code(cached) == nil) == isCached)
            }
        }
    }

    @Test func `a load that runs when a newer one takes its place ends at once, or goes on into the cache`()
        async throws
    {
        try await Self.withDoor { bench, door in
            let loader = ImageLoader(bench.pipeline, Self.configuration { $0.maxWaiting = 1 })
            let first = loader.load(try Self.request("a"))
            await door.arrivals(1)
            let second = loader.load(try Self.request("b") { $0.finishWhenAbandoned = true })
            #expect(await Self.code(first) == .superseded)
            await door.arrivals(2)
            let newest = loader.load(try Self.request("c"))
            #expect(await Self.code(second) == .superseded)
            door.open()
            #expect(await Self.code(newest) == nil)
            await bench.pipeline.drain()
            let cached = bench.pipeline.load(try Self.request("b") { $0.policy = .cacheOnly })
            #expect(await Self.code(cached) == nil)
        }
    }
}
