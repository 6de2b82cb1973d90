import HTTPCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline
@testable import PipelineFetching

/// The number of requests that may wait for the network and for renders, and the answers to further callers.
@Suite struct BacklogTests {
    private func work(_ backlog: Backlog, _ priority: RequestPriority, _ gate: Gate) -> Task<Void, any Error> {
        Task { try await backlog.run(priority) { () async throws(PipelineError) in try await gate.pass() } }
    }

    @Test func `what is more urgent finds room, and all room is free again at the end`() async throws {
        let (backlog, gate) = (Backlog("renders", limit: 10), Gate())
        var working: [Task<Void, any Error>] = []
        for (priority, room) in [(RequestPriority.low, 5), (.normal, 9), (.high, 10)] {
            while backlog.count < room {
                let count = backlog.count
                working.append(work(backlog, priority, gate))
                await waitOrRecord { backlog.count == count }
            }
            let refused = await #expect(throws: PipelineError.self) {
                try await backlog.run(priority) { () async throws(PipelineError) in }
            }
            #expect(refused?.code == .overloaded && refused?.retryAfter == .seconds(1))
            #expect(
                refused?.message
                    == "\(room) renders are in progress or waiting, which is the limit (`server.queue`); try again in 1 s"
            )
        }
        #expect(backlog.refused == 3)
        gate.open()
        for task in working { try await task.value }
        #expect(backlog.count == 0)
        try await backlog.run(.low) { () async throws(PipelineError) in }
    }

    @Test func `work that fails makes room too, and without a bound nothing is refused`() async throws {
        let backlog = Backlog("fetches", limit: 1)
        for _ in 0..<3 {
            let error = await #expect(throws: PipelineError.self) {
                try await backlog.run(.low) { () async throws(PipelineError) in throw .cancelled }
            }
            #expect(error?.code == .cancelled)
        }
        let unbounded = Backlog("fetches", limit: nil)
        let gate = Gate()
        let working = (0..<100).map { _ in work(unbounded, .low, gate) }
        await waitOrRecord { unbounded.count < 100 }
        gate.open()
        for task in working { try await task.value }
        #expect(unbounded.refused == 0)
    }

    @Test func `one origin leaves a quarter to the others`() async throws {
        let (backlog, gate) = (Backlog("fetches", limit: 40), Gate())
        func begin(_ origin: String, _ count: Int) async -> [Task<Void, any Error>] {
            var working: [Task<Void, any Error>] = []
            for _ in 0..<count {
                let before = backlog.count
                working.append(
                    Task {
                        try await backlog.run(.normal, of: origin) { () async throws(PipelineError) in
                            try await gate.pass()
                        }
                    })
                await waitOrRecord { backlog.count == before }
            }
            return working
        }
        // Normal work has room for 36.
        var working = await begin("http://slow.example", 27)
        let refused = await #expect(throws: PipelineError.self) {
            try await backlog.run(.normal, of: "http://slow.example") { () async throws(PipelineError) in }
        }
        #expect(refused?.code == .overloaded)
        #expect(
            refused?.message
                == "27 fetches from http://slow.example are in progress or waiting, which is the limit (`server.queue`); try again in 1 s"
        )
        working += await begin("http://other.example", 9)
        #expect(backlog.count == 36 && backlog.refused == 1)
        gate.open()
        for task in working { try await task.value }
        try await backlog.run(.normal, of: "http://slow.example") { () async throws(PipelineError) in }
        #expect(backlog.count == 0)
    }

    @Test func `one network has an eighth of all, and beside many origins a few of each find room`() async throws {
        let (backlog, gate) = (Backlog("fetches", limit: 10), Gate())
        var working: [Task<Void, any Error>] = []
        func begin(_ origin: String, _ network: String, _ count: Int) async {
            for _ in 0..<count {
                let before = backlog.count
                working.append(
                    Task {
                        try await backlog.run(.normal, of: origin, in: network) { () async throws(PipelineError) in
                            try await gate.pass()
                        }
                    })
                await waitOrRecord { backlog.count == before }
            }
        }
        func refusal(_ origin: String, _ network: String) async -> String? {
            do throws(PipelineError) {
                try await backlog.run(.normal, of: origin, in: network) { () async throws(PipelineError) in }
                return nil
            } catch {
                return error.message
            }
        }
        // Normal work of one network has room for nine.
        for number in 0..<3 { await begin("http://10.0.0.\(number)", "10.0.0.0", 3) }
        #expect(
            await refusal("http://10.0.0.9", "10.0.0.0")
                == "9 fetches from 10.0.0.0 are in progress or waiting, which is the limit (`server.queue`); try again in 1 s"
        )
        for number in 1..<5 { await begin("http://10.0.\(number).1", "10.0.\(number).0", 6) }
        // 33 of 72 places are taken now. Beyond 36, only origins with little work get one.
        await begin("http://10.0.5.1", "10.0.5.0", 4)
        #expect(
            await refusal("http://10.0.5.1", "10.0.5.0")
                == "37 fetches are in progress or waiting, which is the limit (`server.queue`); try again in 1 s")
        for number in 6..<17 { await begin("http://10.0.\(number).1", "10.0.\(number).0", 3) }
        await begin("http://other.example", "other.example", 2)
        #expect(backlog.count == 72)
        #expect(
            await refusal("http://new.example", "new.example")
                == "72 fetches are in progress or waiting, which is the limit (`server.queue`); try again in 1 s")
        gate.open()
        for task in working { try await task.value }
        #expect(backlog.count == 0 && backlog.refused == 3)
    }

    /// Holds what is asked of `/held`; answers the rest.
    private struct HoldingTransport: Transport {
        let asks: AsyncStream<Void>.Continuation
        let gate: Gate

        func fetch(
            _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
        ) async throws(FetchError) -> FetchedResponse {
            if request.url.description.hasSuffix("/held") {
                asks.yield()
                // A cancelled wait ends like an open gate.
                try? await gate.pass()
            }
            let now = SystemClock.unix.seconds
            return FetchedResponse(
                status: 200,
                fields: [HeaderField("Content-Type", "image/x"), HeaderField("Cache-Control", "max-age=60")],
                body: Array("body".utf8), requestTime: now, responseTime: now, finalURL: request.url)
        }

        func shutdown() async {}
    }

    @Test func `a fetch beyond the bound fails at once, or gives the stale original`() async throws {
        let (asks, asked) = AsyncStream<Void>.makeStream()
        let gate = Gate()
        let ahead = Mutex(0.0)
        var configuration = PipelineConfiguration()
        configuration.maxWaiting = 1
        configuration.transport = HoldingTransport(asks: asked, gate: gate)
        configuration.now = { SystemClock.unix.seconds + ahead.withLock { $0 } }
        let pipeline = try ImagePipeline(configuration)
        let request = { @Sendable (name: String) in OriginalRequest(url: "http://a.example/" + name) }
        #expect(try await pipeline.original(for: request("known")).status == 200)
        ahead.withLock { $0 = 100 }
        let held = Task { try await pipeline.original(for: request("held")) }
        for await _ in asks { break }
        let refused = await #expect(throws: PipelineError.self) { try await pipeline.original(for: request("new")) }
        #expect(refused?.code == .overloaded && refused?.retryAfter != nil)
        let stale = try await pipeline.original(for: request("known"))
        #expect(stale.status == 200 && stale.handling.forward == .stale)
        gate.open()
        #expect(try await held.value.status == 200)
        #expect(try await pipeline.original(for: request("new")).status == 200)
        await pipeline.shutdown()
    }
}
