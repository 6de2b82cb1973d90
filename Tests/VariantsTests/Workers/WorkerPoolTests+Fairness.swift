import Synchronization
import TestSupport
import Testing

@testable import Variants

/// The waits of waiting renders.
extension WorkerPoolTests {
    /// A render of some seconds.
    static func longJob() throws -> RenderJob {
        var job = try job()
        job.recipe = try Recipe("thumbnail:5000:up,blur:60")
        return job
    }

    @Test func `a short render does not wait for long ones`() async throws {
        let pool = WorkerPool(Self.configuration { $0.maxConcurrentRenders = 2 })
        let (long, short) = (try Self.longJob(), try Self.job())
        let ended = Flag()
        let tasks = (0..<6).map { _ in
            Task {
                defer { ended.set() }
                return await Self.error(pool, long)
            }
        }
        try await waitWhile { pool.running + pool.waiting < 6 }
        #expect(await Self.error(pool, short) == nil)
        #expect(!ended.isSet && pool.waiting == 5)
        try await waitWhile { pool.running > 1 }
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.value?.code == .cancelled) }
        await pool.shutdown()
    }

    @Test func `renders that outlive their estimates leave one worker to short ones`() async throws {
        let pool = WorkerPool(Self.configuration { $0.maxConcurrentRenders = 2 })
        let unforeseen = try Self.job(.hang)
        let tasks = (0..<5).map { _ in Task { await Self.error(pool, unforeseen) } }
        try await waitWhile { pool.running + pool.waiting < 5 }
        #expect(await Self.error(pool, try Self.job()) == nil)
        try await waitWhile { pool.long != 1 || pool.running != 1 || pool.waiting != 4 }
        // None has been lost: each ends when its caller cancels it, as it runs or as it waits.
        for (index, task) in tasks.enumerated() {
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            try await waitWhile { pool.running + pool.waiting > 4 - index }
        }
        #expect(await Self.error(pool, try Self.job()) == nil)
        await pool.shutdown()
    }

    @Test func `a render that left its worker is made when it may be long`() async throws {
        let pool = WorkerPool(Self.configuration { $0.maxConcurrentRenders = 2 })
        let holding = Task { await Self.error(pool, try Self.job(.hang)) }
        try await waitWhile { pool.long == 0 }
        let slow = Task { await Self.error(pool, try Self.job(.slow)) }
        try await waitWhile { pool.running != 1 || pool.waiting != 1 }
        #expect(await Self.error(pool, try Self.job()) == nil)
        #expect(pool.waiting == 1)
        holding.cancel()
        #expect(try await slow.value == nil)
        #expect(try await holding.value?.code == .cancelled)
        await pool.shutdown()
    }

    @Test func `with one worker, a render that outlives its estimate keeps it`() async throws {
        let pool = WorkerPool(Self.configuration())
        let slow = Task { await Self.error(pool, try Self.job(.slow)) }
        try await waitWhile { pool.long == 0 }
        #expect(await Self.error(pool, try Self.job()) == nil)
        #expect(try await slow.value == nil && pool.statistics.started == 1 && pool.statistics.killed == 0)
        await pool.shutdown()
    }

    @Test func `while no other render waits, all workers do long ones`() async throws {
        let pool = WorkerPool(
            Self.configuration {
                $0.maxConcurrentRenders = 2
                $0.longRenders = .max
            })
        let long = try Self.longJob()
        let tasks = (0..<2).map { _ in Task { await Self.error(pool, long) } }
        try await waitWhile { pool.running < 2 }
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.value?.code == .cancelled) }
        await pool.shutdown()
    }

    @Test func `a waiter that becomes more urgent raises what waits`() async throws {
        let pool = WorkerPool(Self.configuration())
        let holding = Task { [job = try Self.job(.hang)] in await Self.error(pool, job) }
        try await waitWhile { pool.running == 0 }
        let order = Mutex<[Int]>([])
        var tasks: [Task<RenderError?, Never>] = []
        for index in 0..<4 {
            var job = try Self.job()
            let bytes = try job.original.bytes()
            job.original = EncodedBytes(count: bytes.count) {
                order.withLock { $0.append(index) }
                return bytes
            }
            // A child task, like shared work.
            tasks.append(
                Task(priority: .low) { [job] in
                    await withTaskGroup(of: RenderError?.self) { group in
                        group.addTask { await Self.error(pool, job) }
                        return await group.next() ?? nil
                    }
                })
            try await waitWhile { pool.waiting <= index }
        }
        tasks[2].escalatePriority(to: .high)
        holding.cancel()
        for task in tasks { #expect(await task.value == nil) }
        #expect(order.withLock { $0 } == [2, 0, 1, 3])
        await pool.shutdown()
    }

    @Test func `a program that is started as a worker and does not become one starts no worker`() async throws {
        let program = try builtProgram("store-worker")
        let pool = WorkerPool(Self.configuration { $0.executable = program })
        let error = await Self.error(pool, try Self.job())
        let message = error?.message ?? ""
        #expect(error?.code == .workerUnavailable && message.contains("generation 1 workerUnavailable"), "\(message)")
        #expect(!message.contains("generation 2"), "\(message)")
        #expect(message.contains("RenderWorker.runIfAsked()"), "\(message)")
        await pool.shutdown()
    }
}
