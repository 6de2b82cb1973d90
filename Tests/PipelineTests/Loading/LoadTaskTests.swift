@testable import HTTPCaching
@testable import PipelineFetching
import PipelineCaching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// The handle of one load.
@Suite(.timeLimit(.minutes(20))) struct LoadTaskTests {
    private static func request(_ recipe: String? = "thumbnail:40", _ name: String = "a") throws -> ImageRequest {
        ImageRequest(.url("http://origin.test/\(name)"), recipe: try recipe.map { try Recipe($0) })
    }

    private static func code(_ load: LoadTask) async -> PipelineError.Code? {
        do throws(PipelineError) {
            _ = try await load.response
            return nil
        } catch { return error.code }
    }

    @Test func `any number of tasks receive the same events, during the load and after it`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=60").picture()
        } _: { bench in
            let load = bench.pipeline.load(try Self.request())
            #expect(load.status.result == nil && load.request.recipe != nil && load == load)
            let digests = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<5 { group.addTask { try await load.response.digest } }
                await door.arrivals(1)
                #expect(load.status.phase == .fetching)
                door.open()
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            let again = try await load.response
            #expect(digests == [again.digest] && bench.count == 1)
            let status = load.status
            #expect(status.phase == .finished && !status.isCancelled && status.received == again.record.length)
            let result = try status.result?.get()
            #expect(result?.digest == again.digest)
            #expect(await names(of: load) == ["fetching", "progress", "rendering", "finished"])
        }
    }

    @Test func `stale pictures are shown first, and the load ends with the new one`() async throws {
        // With `stale-while-revalidate` a request without a handle gets the stale one.
        for directive in ["", ", stale-while-revalidate=600"] {
            try await withCache { _ in
                ScriptedResponse(200, "Cache-Control: max-age=60\(directive)", "ETag: \"1\"").picture()
            } _: { bench in
                let first = try await bench.image()
                bench.clock.advance(61)
                bench.origin.answers { _ in
                    ScriptedResponse(200, "Cache-Control: max-age=60\(directive)", "ETag: \"2\"").picture("grey.jpg")
                }
                let load = bench.pipeline.load(try Self.request())
                let told = await names(of: load)
                #expect(told == ["cached,", "fetching", "progress", "rendering", "finished"])
                #expect(load.status.cached?.digest == first.digest && load.status.cached?.isStale == true)
                let new = try await load.response
                #expect(!new.isStale && new.digest != first.digest && bench.count == 2)
                // Confirmed by the origin, it is not rendered again.
                bench.clock.advance(61)
                bench.origin.answers { _ in ScriptedResponse(304, "Cache-Control: max-age=60", "ETag: \"2\"") }
                let confirmed = bench.pipeline.load(try Self.request())
                let toldThen = await names(of: confirmed)
                #expect(toldThen == ["cached,", "fetching", "finished"])
                #expect(try await confirmed.response.originalOutcome == .revalidated)
                // Without an answer the stale one is what there is.
                bench.clock.advance(61)
                bench.origin.answers { request throws(FetchError) in
                    throw FetchError(.unreachable, request.url, "down")
                }
                let stale = try await bench.pipeline.load(Self.request()).response
                #expect(stale.isStale && stale.digest == new.digest)
            }
        }
    }

    @Test func `a handle that shows nothing stale first ends with what a request without one gets`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=60, stale-while-revalidate=600", "ETag: \"1\"").picture()
        } _: { bench in
            _ = try await bench.image()
            bench.clock.advance(61)
            let load = bench.pipeline.load(try Self.request(), showsStale: false)
            let told = await names(of: load)
            let response = try await load.response
            #expect(told == ["cached,", "finished"] && response.isStale)
            await bench.pipeline.drain()
            #expect(bench.count == 2)
        }
    }

    @Test func `who joins has the same events, whatever they make of the original`() async throws {
        let door = Door()
        let origin = SlowProgress(door)
        try await withCache {
            $0.transport = origin
        } origin: { _ in
            ScriptedResponse(500)
        } _: { bench in
            let loads = try ["thumbnail:40", "thumbnail:40", "thumbnail:20", nil].map {
                bench.pipeline.load(try Self.request($0))
            }
            await door.arrivals(1)
            await bench.waiting(4)
            // Half of the body has come.
            for load in loads {
                for await event in load.events {
                    guard case .progress(let received, let expected) = event else { continue }
                    #expect(expected == origin.body.count && received == expected! / 2)
                    break
                }
            }
            door.open()
            for (index, load) in loads.enumerated() {
                let rendering = index < 3 ? ["rendering"] : []
                #expect(await names(of: load) == ["fetching", "progress"] + rendering + ["finished"])
                let status = load.status
                #expect(status.received == origin.body.count && status.expected == origin.body.count)
            }
            #expect(origin.count == 1)
        }
    }

    @Test func `files and bytes have the events too`() async throws {
        try await withCache { _ in
            ScriptedResponse(500)
        } _: { bench in
            let picture = sample("originals/night-tiny.jpg")
            for (source, recipe, warm) in [
                (ImageSource.file(Samples.original("night-tiny.jpg")), "thumbnail:30", ["cached", "finished"]),
                (.bytes(picture, name: "upload"), "thumbnail:31", ["cached", "finished"]),
            ] {
                for expected in [["fetching", "progress", "rendering", "finished"], warm] {
                    let load = bench.pipeline.load(ImageRequest(source, recipe: try Recipe(recipe)))
                    let told = await names(of: load)
                    #expect(told == expected)
                    #expect(load.status.received == (expected.contains("progress") ? picture.count : 0))
                }
            }
        }
    }

    @Test func `cancelling one load does not stop work that other loads share`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=60").picture()
        } _: { bench in
            let (one, other) = (bench.pipeline.load(try Self.request()), bench.pipeline.load(try Self.request()))
            await bench.waiting(2)
            one.cancel()
            one.cancel()
            #expect(await Self.code(one) == .cancelled && one.status.isCancelled)
            #expect(await names(of: one).last == "failed:")
            door.open()
            let width = try await other.response.width
            #expect(width == 40 && bench.count == 1)
            // Too late to do anything.
            other.cancel()
            #expect(!other.status.isCancelled && other.status.phase == .finished)
        }
    }

    @Test(arguments: [true, false])
    func `the last task that is cancelled takes the load with it, a load that no task waits for runs on`(
        reads: Bool
    ) async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=60").picture()
        } _: { bench in
            let load = bench.pipeline.load(try Self.request())
            await bench.waiting(1)
            let first = Task { reads ? await names(of: load).last : "\(String(describing: await Self.code(load)))" }
            let second = Task { await Self.code(load) }
            await waitOrRecord { load.waiting < 2 }
            first.cancel()
            _ = await first.value
            #expect(load.status.result == nil)
            second.cancel()
            #expect(await second.value == .cancelled)
            #expect(load.status.isCancelled)
            await waitOrRecord { bench.pipeline.fetches.waiting > 0 }

            let alone = bench.pipeline.load(try Self.request())
            // A reader that leaves is not cancelled.
            for await event in alone.events { if case .fetching = event { break } }
            door.open()
            #expect(try await alone.response.width == 40)
        }
    }

    @Test func `a load waits for its delay alone, after what is cached was shown`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=60").picture()
        } _: { bench in
            var patient = try Self.request()
            patient.delay = .seconds(1000)
            // Nobody else waits for it: neither for the fetch nor for the render.
            let waits = bench.pipeline.load(patient)
            _ = try await bench.pipeline.load(Self.request()).response
            #expect(waits.status.phase == .waiting)
            // Cached pictures are not delayed.
            #expect(try await bench.pipeline.load(patient).response.outcome == .memory)
            patient.recipe = try Recipe("thumbnail:20")
            let renders = bench.pipeline.load(patient)
            bench.clock.advance(61)
            patient.recipe = try Recipe("thumbnail:40")
            let stale = bench.pipeline.load(patient)
            for await event in stale.events {
                #expect(event.text == "cached, stale")
                break
            }
            #expect(renders.status.result == nil && stale.status.phase == .waiting && bench.count == 1)
            for load in [waits, renders, stale] { load.cancel() }
            for load in [waits, renders, stale] { #expect(await Self.code(load) == .cancelled) }
        }
    }

    @Test func `priority is raised at any time, and lowered before the load has begun`() async throws {
        let door = Door()
        let seen = Mutex<[TaskPriority]>([])
        try await withCache { _ in
            seen.withLock { $0.append(Task.currentPriority) }
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=60").picture()
        } _: { bench in
            let load = LoadTask(try Self.request())
            load.priority = .low
            #expect(load.priority == .low)
            let pipeline = bench.pipeline
            load.begin { (request, onEvent) async throws(PipelineError) in
                #expect(request.priority == .low)
                return try await pipeline.respond(to: request, onEvent: onEvent)
            }
            await door.arrivals(1)
            load.priority = .high
            load.priority = .low
            #expect(load.priority == .high)
            door.open()
            _ = try await load.response
            #expect(seen.withLock { $0 } == [.utility])
        }
    }
}

/// A transport that has sent half of a picture, and sends the rest when it may.
private final class SlowProgress: Transport {
    let body = sample("originals/meadow-small.jpg")
    private let door: Door
    private let asked = Mutex(0)

    init(_ door: Door) { self.door = door }

    var count: Int { asked.withLock { $0 } }

    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        asked.withLock { $0 += 1 }
        onProgress?(body.count / 2, body.count)
        await door.pass()
        onProgress?(body.count, body.count)
        return FetchedResponse(
            status: 200, fields: [HeaderField("Cache-Control", "max-age=60")], body: body, requestTime: 0,
            responseTime: 0, finalURL: request.url, milliseconds: 1, redirects: [])
    }

    func shutdown() async {}
}
