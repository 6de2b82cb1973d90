import TestSupport
import Testing

@testable import PipelineFleet

/// Batches on a server that is away, full or too old, and batches that stay untouched for long.
@Suite(.needsRedis) struct BatchQueueTroubleTests {
    private typealias Batch = BatchQueueTests.Batch
    private typealias Count = BatchQueueTests.Count

    @Test func `a batch that Redis has lost is a typed error`() async throws {
        let batch = try await Batch()
        let (worker, free) = (try batch.worker(), BatchWorker(try batch.server.configuration()))
        try await batch.submit(0..<2)
        let item = try #require(try await worker.next()?.first)
        batch.server.stop()
        let empty = try RedisTestServer(port: batch.server.port)
        try await eventually { try await batch.redis.reply(to: "PING") == .status("PONG") }
        let gone = BatchError.gone(batch.id)
        // Each connection has to notice first that the server has closed it.
        try await eventually { await thrown { try await batch.submitter.submit([[]], from: 2) } == gone }
        try await eventually { await thrown { try await batch.submitter.results(blockSeconds: 3600) } == gone }
        try await eventually { await thrown { try await worker.next(blockSeconds: 3600) } == gone }
        #expect(await thrown { try await batch.submitter.attach() } == gone)
        #expect(await thrown { try await batch.submitter.finish(total: 2) } == gone)
        #expect(await thrown { try await worker.complete(item, []) } == gone)
        #expect(await thrown { try await worker.state(of: batch.id) } == gone)
        #expect(try await worker.extend([item]) == [item])
        try await batch.redis.reply(to: "SADD", BatchID.index, RedisWord(batch.id.description))
        try await eventually { try await free.next() == [] }
        #expect(try await batch.redis.reply(to: "DBSIZE") == .integer(0))
        // A server that is short of memory may evict one of the keys.
        try await batch.submitter.create()
        try await batch.redis.reply(to: "DEL", batch.id.items)
        #expect(await thrown { try await batch.submitter.submit([[]], from: 0) } == gone)
        #expect(await thrown { try await worker.next() } == gone)
        try await batch.redis.reply(to: "XADD", batch.id.items, "*", "number", "0")
        #expect(await thrown { try await worker.next() } == gone)
        empty.stop()
    }

    @Test func `a batch goes on once its server is back`() async throws {
        let folder = ScratchFolder()
        func start(_ port: Int? = nil) throws -> RedisTestServer {
            try RedisTestServer(
                "--dir", folder.path, "--appendonly", "yes", "--appendfsync", "always", port: port)
        }
        let server = try start()
        var terms = BatchTerms()
        terms.leaseSeconds = 0.05
        terms.tries = 100
        let batch = try await Batch(terms, server: server)
        let total = 300
        try await batch.submit(0..<total)
        try await batch.submitter.finish(total: total)
        let done = Count()
        let results = try await withThrowingTaskGroup { group in
            for _ in 0..<2 {
                let worker = try batch.worker()
                group.addTask {
                    while let items = try await Self.patiently({ try await worker.next(blockSeconds: 60) }) {
                        for item in items { _ = try await Self.patiently { try await worker.complete(item, []) } }
                        done.add(items.count)
                    }
                }
            }
            try await waitWhile { done.value < 20 }
            server.stop()
            let again = try start(server.port)
            var results: [ItemResult] = []
            while results.count < total {
                results += try await Self.patiently {
                    try await batch.submitter.results(after: results.last?.entry ?? .start, blockSeconds: 1)
                }
            }
            try await group.waitForAll()
            again.stop()
            return results
        }
        #expect(results.map(\.number).sorted() == Array(0..<total))
        #expect(results.allSatisfy { $0.kind == .success })
    }

    @Test func `a worker without a batch serves all that are open, and new ones`() async throws {
        let one = try await Batch()
        let two = try await Batch(server: one.server)
        let newer = try await Batch(server: one.server)
        try await one.redis.reply(to: "HSET", newer.id.state, "format", "2")
        #expect(await thrown { try await newer.worker().next() } == .unknownFormat(newer.id))
        let damaged = try await Batch(server: one.server)
        let damages: [(RedisWord, RedisWord)] = [("lease", "nan"), ("lease", "1.5"), ("tries", "0"), ("keep", "x")]
        for (name, value) in damages {
            try await damaged.redis.reply(to: "HSET", damaged.id.state, name, value)
            #expect(await thrown { try await damaged.worker().next() } == .unknownFormat(damaged.id))
        }
        let worker = BatchWorker(try one.server.configuration())
        try await one.submit(0..<3)
        try await two.submit(0..<3)
        let items = try #require(try await worker.next(count: 6))
        #expect(items.count == 6)
        #expect(Set(items.map(\.batch)) == [one.id, two.id])
        for item in items { #expect(try await worker.complete(item, [])) }
        try await one.submitter.finish(total: 3)
        #expect(try await worker.next() == [])
        let open = try await one.redis.reply(to: "SMEMBERS", BatchID.index)
        #expect(
            Set(open.elements?.compactMap(\.text) ?? []) == [
                two.id.description, newer.id.description, damaged.id.description,
            ])
        // It is woken by batches that it knows, and looks for others.
        for isNew in [false, true] {
            var worker = worker
            if !isNew { worker.pollSeconds = 3600 }
            let waiting = Task { [worker] in try await worker.next(count: 5, blockSeconds: 3600) }
            try await eventually { try await one.redis.info("blocked_clients") == "1" }
            let batch = isNew ? try await Batch(server: one.server) : two
            try await batch.submit(isNew ? 0..<1 : 3..<4)
            #expect(try await waiting.value?.map(\.batch) == [batch.id])
        }
    }

    @Test func `a wait ends when its task is cancelled, and costs no try`() async throws {
        let batch = try await Batch()
        let worker = try batch.worker()
        let waiting = Task { try await worker.next(blockSeconds: 3600) }
        try await eventually { try await batch.redis.info("blocked_clients") == "1" }
        waiting.cancel()
        let error = await thrown { try await waiting.value }
        guard case .redis(let redis) = error else { throw try #require(error) }
        #expect(redis.code == .cancelled)
        try await batch.submit(0..<1)
        #expect(try await worker.next()?.map(\.attempt) == [1])
    }

    @Test func `an untouched batch expires, and an idle worker does not touch it`() async throws {
        let batch = try await Batch()
        let worker = try batch.worker()
        try await batch.submit(0..<2)
        let items = try #require(try await worker.next(count: 2))
        #expect(try await worker.complete(items[0], []))
        try await batch.age(items[1])
        func shorten() async throws {
            for key in batch.id.keys { try await batch.redis.reply(to: "PEXPIRE", key, "1000000") }
        }
        /// Whether the expiry of the keys that exist is far away.
        func isRenewed() async throws -> Bool {
            var times: [Bool] = []
            for key in batch.id.keys {
                guard case .integer(let time) = try await batch.redis.reply(to: "PTTL", key) else { continue }
                #expect(time != -1)
                if time >= 0 { times.append(time > 1_000_000) }
            }
            #expect(times.count >= 3)
            #expect(Set(times).count == 1)
            return times.contains(true)
        }
        #expect(try await isRenewed())
        let touches: [(String, Bool, () async throws -> Void)] = [
            ("take", true, { _ = try await worker.next() }),
            ("take none", false, { _ = try await worker.next() }),
            ("state", false, { _ = try await batch.submitter.state() }),
            ("submit", true, { try await batch.submit(2..<3) }),
            ("results", true, { _ = try await batch.submitter.results() }),
            ("attach", true, { _ = try await batch.submitter.attach() }),
        ]
        for (name, renews, touch) in touches {
            try await shorten()
            try await touch()
            #expect(try await isRenewed() == renews, "\(name)")
        }
        let item = try #require(try await worker.next()?.first)
        try await shorten()
        #expect(try await worker.complete(item, []))
        #expect(try await isRenewed())
    }

    @Test func `items are completed although the server is out of memory`() async throws {
        let batch = try await Batch()
        let worker = try batch.worker()
        try await batch.submit(0..<2)
        try await batch.redis.reply(to: "CONFIG", "SET", "maxmemory", "1")
        let error = await thrown { try await batch.submitter.submit([[]], from: 2) }
        #expect(error?.description.contains("OOM") == true)
        #expect(try await batch.submitter.state().submitted == 2)
        for item in try #require(try await worker.next(count: 2)) { #expect(try await worker.complete(item, [])) }
        #expect(try await batch.submitter.results().map(\.number) == [0, 1])
    }

    @Test func `an old server and foreign entries are typed errors`() async throws {
        let old = try await Batch(server: RedisTestServer("--rename-command", "XPENDING", ""))
        let error = await thrown { try await old.worker().next() }
        guard case .serverTooOld = error else { throw try #require(error) }
        #expect(error?.description.contains("require Redis 6.2") == true)
        let batch = try await Batch()
        try await batch.redis.reply(to: "XADD", batch.id.items, "*", "number", "x")
        try await batch.redis.reply(to: "XADD", batch.id.results, "*", "number", "1")
        for error in [
            await thrown { try await batch.worker().next() }, await thrown { try await batch.submitter.results() },
        ] {
            guard case .redis(let redis) = error else { throw try #require(error) }
            #expect(redis.code == .protocolViolation)
        }
        try await batch.redis.reply(to: "SET", batch.id.results, "x")
        #expect(await thrown { try await batch.submitter.results() }?.description.contains("WRONGTYPE") == true)
    }

    /// Repeats a call for as long as the server cannot be reached.
    private static func patiently<Value>(_ call: () async throws -> Value) async throws -> Value {
        while true {
            do { return try await call() } catch BatchError.redis(let error) where error.retrySeconds != nil {
                try await Task.sleep(for: .seconds(error.retrySeconds ?? 0))
            }
        }
    }

    /// The error that a call throws.
    private func thrown<Value>(_ call: () async throws -> Value) async -> BatchError? {
        do {
            _ = try await call()
            return nil
        } catch { return error as? BatchError }
    }
}
