import Synchronization
import TestSupport
import Testing

@testable import Variants

/// What renders that wait have to wait for.
extension WorkerPoolTests {
    /// A render of some seconds.
    static func longJob() throws -> RenderJob {
        var job = try job()
        job.recipe = try Recipe("thumbnail:5000:up,blur:60")
        return job
    }

    @Test func `a short render does not wait for long ones`() async throws {
        let pool = WorkerPool(Self.configuration { $0.count = 2 })
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

    @Test func `if no other client is kept waiting, all workers do long renders`() async throws {
        let pool = WorkerPool(
            Self.configuration {
                $0.count = 2
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
            // As a child task, as work that is shared is.
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
