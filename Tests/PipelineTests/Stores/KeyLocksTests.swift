@testable import PipelineCaching
@testable import PipelineSupport
import Glibc
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Two values on one folder lock each other out as two processes do: each has an open file of its own.
@Suite struct KeyLocksTests {
    let folder = CacheFolder()

    init() { mkdir(folder.path, 0o700) }

    /// - Parameter least: how long to wait for an original at least; by default as long as at most.
    private func locks(_ limit: Duration = .seconds(60), least: Duration? = nil) -> KeyLocks {
        var waits = KeyLocks.Waits()
        (waits.original, waits.variant) = ((least ?? limit)...limit, limit)
        return KeyLocks(folder: folder.path, waits: waits)
    }

    @Test func `one holds a key, the others wait until it is released`() async throws {
        let (one, two) = (locks(), locks())
        let held = try #require(try await one.hold(.original, "a"))
        let waiting = Task { try await two.hold(.original, "a") }
        await waitOrRecord { two.counters.waited == 0 }
        // Neither another key nor the same of the other kind waits.
        for (kind, key) in [(KeyLocks.Kind.original, "b"), (.variant, "a")] {
            let other = try #require(try await two.hold(kind, key))
            two.release(other, isShared: true)
        }
        #expect(two.counters.held == 2)
        one.release(held, isShared: true)
        let next = try #require(try await waiting.value)
        #expect(next.isLocked && two.counters.held == 3 && two.counters.waited == 1)
        two.release(next, isShared: true)
    }

    @Test func `within a process the same key is held twice, and free when both have ended`() async throws {
        let (one, two) = (locks(), locks(.zero))
        let first = try #require(try await one.hold(.variant, "a"))
        let second = try #require(try await one.hold(.variant, "a"))
        one.release(first, isShared: true)
        #expect(try await two.hold(.variant, "a") == nil && two.counters.alone == 1)
        one.release(second, isShared: true)
        #expect(try await two.hold(.variant, "a")?.isLocked == true)
    }

    @Test func `if the last answer could not be shared no process waits, until one could be`() async throws {
        let (one, two) = (locks(), locks())
        let first = try #require(try await one.hold(.original, "a"))
        one.release(first, isShared: false)
        let alone = try #require(try await one.hold(.original, "a"))
        let beside = try #require(try await two.hold(.original, "a"))
        #expect(!alone.isLocked && !beside.isLocked && two.counters.alone == 1 && two.counters.waited == 0)
        one.release(alone, isShared: true)
        two.release(beside, isShared: nil)
        #expect(try await two.hold(.original, "a")?.isLocked == true)
    }

    @Test func `who leaves leaves at once, and what gave nothing is for the next`() async throws {
        let (one, two) = (locks(), locks())
        let held = try #require(try await one.hold(.original, "a"))
        let waiting = Task { try await two.hold(.original, "a") }
        await waitOrRecord { two.counters.waited == 0 }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { _ = try await waiting.value }
        one.release(held, isShared: nil)
        #expect(try await two.hold(.original, "a")?.isLocked == true)
    }

    @Test(.timeLimit(.minutes(1)))
    func `one that is stuck holds up an original for twice the usual time, not for the longest`() async throws {
        let (one, two) = (locks(.seconds(7200), least: .zero), locks(.seconds(7200), least: .zero))
        let stuck = try #require(try await one.hold(.original, "a"))
        // Before the first, the least is what is waited for.
        #expect(try await two.hold(.original, "a") == nil && two.counters.alone == 1)
        let usual = try #require(try await two.hold(.original, "b"))
        two.release(usual, isShared: true)
        #expect(try await two.hold(.original, "a") == nil && two.counters.alone == 2 && two.counters.waited >= 1)
        one.release(stuck, isShared: true)
        // A render is waited for as long as it may take.
        let rendering = try #require(try await one.hold(.variant, "a"))
        let waiting = Task { try await two.hold(.variant, "a") }
        await waitOrRecord { two.counters.waited < 2 }
        one.release(rendering, isShared: true)
        #expect(try await waiting.value?.isLocked == true)
    }

    @Test func `a process holds 256 keys at most, and goes on without holding up others`() async throws {
        let locks = locks()
        var held: [KeyLocks.Hold] = []
        for number in 0..<256 { held.append(try #require(try await locks.hold(.original, "\(number)"))) }
        #expect(try await locks.hold(.original, "one more") == nil)
        #expect(locks.counters.held == 256 && locks.counters.alone == 1)
        locks.release(held.removeLast(), isShared: true)
        #expect(try await locks.hold(.original, "one more")?.isLocked == true)
    }

    @Test(.timeLimit(.minutes(1)))
    func `what was made is not kept until the writer has come to it`() async throws {
        /// Reports its end.
        final class Made: Sendable {
            let ends: AsyncStream<Void>.Continuation
            init(_ ends: AsyncStream<Void>.Continuation) { self.ends = ends }
            deinit { ends.finish() }
        }
        var configuration = PipelineConfiguration()
        configuration.cacheFolder = folder.path
        let tiers = try Tiers(TiersConfiguration(configuration), readers: OwnedThreads(count: 1))
        let shared = SharedWork<Made, PipelineError>(.variant, tiers: tiers)
        let gate = Gate()
        tiers.links[0].queue.afterwards { try? await gate.pass() }
        let isChecked = Mutex(false)
        let (ended, ends) = AsyncStream<Void>.makeStream()
        _ = try await shared.value(
            for: "a", priority: .medium, finishWhenAbandoned: false, isShared: true,
            stored: { _ in
                isChecked.withLock { $0 = true }
                return .variant(digest([]), of: digest([]))
            },
            make: { () async throws(PipelineError) -> Made in Made(ends) })
        // The task that made it may still be ending.
        for await _ in ended {}
        gate.open()
        await tiers.close()
        #expect(isChecked.withLock { $0 })
    }

    @Test func `a folder that cannot be locked is counted, and everybody goes on`() async throws {
        let nowhere = KeyLocks(folder: folder.path + "/none", waits: KeyLocks.Waits())
        #expect(try await nowhere.hold(.original, "a") == nil && nowhere.counters.failed == 1)
        mkdir(folder.path + "/flights.lock", 0o700)
        let blocked = locks()
        #expect(try await blocked.hold(.original, "a") == nil && blocked.counters.failed == 1)
    }

    @Test func `a file that took the place of another is the one that is locked`() async throws {
        let (one, two) = (locks(), locks(.zero))
        let before = try #require(try await one.hold(.original, "a"))
        unlink(folder.path + "/flights.lock")
        let held = try #require(try await one.hold(.original, "a"))
        #expect(try await two.hold(.original, "a") == nil)
        one.release(before, isShared: true)
        #expect(try await two.hold(.original, "a") == nil)
        one.release(held, isShared: true)
        #expect(try await two.hold(.original, "a")?.isLocked == true)
    }
}

/// Two pipelines on one folder, as two processes are.
struct SharedFolderWorkTests {
    @Test func `a cold source is fetched once and each variant rendered once`() async throws {
        // However long a machine stands still: who waited too long would do the work as well.
        func patient(_ configuration: inout PipelineConfiguration) {
            (configuration.fetch.totalSeconds, configuration.limits.seconds) = (7200, 7200)
        }
        try await withPipeline(patient) { _ in
            picture("meadow-small.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=86400"])
        } _: { bench, pipeline in
            let others = try (0..<3).map { _ in try bench.pipeline(patient) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for pipeline in others + [pipeline] {
                    for width in [20, 30, 40] {
                        let request = try bench.request("/a.jpg", "thumbnail:\(width)")
                        group.addTask { _ = try await pipeline.respond(to: request) }
                    }
                }
                try await group.waitForAll()
            }
            #expect(bench.origin.requests.count == 1 && bench.renderer.renders == 3)
            let counters = (others + [pipeline]).map(\.sharingStatistics)
            #expect(counters.reduce(0) { $0 + $1.shared } > 0 && counters.allSatisfy { $0.failed == 0 })
            for other in others { await other.shutdown() }
        }
    }

    @Test func `what another process has just validated is not validated again`() async throws {
        // Of what the pipelines think, beside the time that transfers note.
        let later = Atomic<Int>(0)
        let now = { @Sendable in SystemClock.unix.seconds + Double(later.load(ordering: .relaxed)) }
        try await withPipeline {
            $0.now = now
        } handler: { request in
            request["if-none-match"] == nil
                ? picture("night-tiny.jpg", ["Cache-Control": "max-age=1000", "ETag": "\"1\""])
                : .response(304, ["Cache-Control": "max-age=90000", "ETag": "\"1\""])
        } _: { bench, pipeline in
            let other = try bench.pipeline { $0.now = now }
            let request = try bench.request()
            _ = try await pipeline.respond(to: request)
            await pipeline.drain()
            _ = try await other.respond(to: request)
            later.store(2000, ordering: .relaxed)
            #expect(try await pipeline.respond(to: request).originalOutcome == .revalidated)
            await pipeline.drain()
            // Its memory has the stale record still.
            let second = try await other.respond(to: request)
            #expect(second.outcome == .memory && !second.isStale && bench.origin.requests.count == 2)
            await other.shutdown()
        }
    }

    @Test(.timeLimit(.minutes(5)), arguments: [false, true])
    func `a low request that the queue refuses does not decide for a high one that has joined it`(
        isStored: Bool
    ) async throws {
        let ahead = Mutex(0.0)
        let now = { @Sendable in SystemClock.unix.seconds + ahead.withLock { $0 } }
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", ["Cache-Control": "max-age=60"]) }
        if isStored {
            let earlier = try bench.pipeline { $0.now = now }
            _ = try await earlier.respond(to: bench.request("/a"))
            await earlier.shutdown()
            ahead.withLock { $0 = 100 }
        }
        let (asked, asks) = AsyncStream<Void>.makeStream()
        let (door, closed) = (Gate(), Gate())
        let other = try bench.pipeline {
            $0.now = now
            $0.fetch.totalSeconds = 7200
            $0.transport = GatedTransport(asks: asks, door: door, control: "no-store")
        }
        let pipeline = try bench.pipeline {
            $0.now = now
            $0.fetch.totalSeconds = 7200
            $0.queue = 2
            $0.transport = GatedTransport(asks: asks, door: closed)
        }
        var next = asked.makeAsyncIterator()
        // Another process fetches the source, so that the low request waits before it is refused.
        let first = Task { try await other.respond(to: try bench.request("/a")) }
        await next.next()
        let joined = { @Sendable (priority: RequestPriority) in
            var request = try bench.request("/a")
            request.priority = priority
            return request
        }
        let low = Task { try await pipeline.respond(to: joined(.low)) }
        await waitOrRecord { pipeline.sharingStatistics.waited == 0 }
        let lower = Task { try await pipeline.respond(to: joined(.low)) }
        let high = Task { try await pipeline.respond(to: joined(.high)) }
        await waitOrRecord { pipeline.fetches.waiting < 3 }
        // Half of the queue is for low requests, and this fills it.
        let filling = Task { try await pipeline.respond(to: try bench.request("/b")) }
        await next.next()
        door.open()
        for task in [low, lower] {
            if isStored {
                let answer = try await task.value
                #expect(answer.isStale)
            } else {
                let error = await #expect(throws: PipelineError.self) { try await task.value }
                #expect(error?.code == .overloaded)
            }
        }
        await next.next()
        closed.open()
        let answer = try await high.value
        #expect(!answer.isStale)
        _ = try await (first.value, filling.value)
        for pipeline in [other, pipeline] { await pipeline.shutdown() }
        bench.origin.stop()
    }

    @Test func `an original that may not be stored is fetched by each, without waiting in line`() async throws {
        let bench = try PipelineBench { _ in .response(500, [:]) }
        let (asked, asks) = AsyncStream<Void>.makeStream()
        let door = Gate()
        let transport = GatedTransport(asks: asks, door: door, control: "no-store")
        let pipelines = try (0..<3).map { _ in try bench.pipeline { $0.transport = transport } }
        let request = try bench.request()
        var next = asked.makeAsyncIterator()
        let first = Task { try await pipelines[0].respond(to: request) }
        await next.next()
        let second = Task { try await pipelines[1].respond(to: request) }
        await waitOrRecord { pipelines[1].sharingStatistics.waited == 0 }
        door.open()
        #expect(try await first.value.outcome == .rendered)
        #expect(try await second.value.outcome == .rendered)
        await next.next()
        await pipelines[0].drain()
        // Now that it is known, the third does not wait for a second that is still asking.
        let closed = Gate()
        let slow = try bench.pipeline { $0.transport = GatedTransport(asks: asks, door: closed, control: "no-store") }
        let asking = Task { try await slow.respond(to: request) }
        await next.next()
        #expect(try await pipelines[2].respond(to: request).outcome == .rendered)
        #expect(pipelines[2].sharingStatistics.waited == 0)
        closed.open()
        #expect(try await asking.value.outcome == .rendered)
        for pipeline in pipelines + [slow] { await pipeline.shutdown() }
        bench.origin.stop()
    }
}
