import TestSupport
import Testing

@testable import Variants

/// Renders in workers that share a decode.
extension WorkerPoolTests {
    /// Jobs of one original, with a fault at its end, that may share a decode if they meet.
    private static func recipes(
        _ fault: WorkerFault? = nil, _ edges: [Int] = [30, 24, 20, 16, 12], seconds: Double = 100
    ) throws -> [RenderJob] {
        let whole = try job(fault, seconds: seconds)
        return try edges.map { edge in
            var job = whole
            job.recipe = try Recipe("thumbnail:\(edge)")
            job.digest = "gradient"
            return job
        }
    }

    private static func code(_ pool: WorkerPool, _ job: RenderJob) async -> RenderError.Code? {
        await error(pool, job)?.code
    }

    /// A task that has got as far as the pool when this returns.
    private static func submitted(
        _ pool: WorkerPool, _ job: RenderJob, behind count: Int
    ) async throws -> Task<RenderError.Code?, Never> {
        let task = Task { await code(pool, job) }
        try await waitWhile { pool.waiting + pool.running <= count }
        return task
    }

    /// Submits jobs while other renders hold the pool's workers, so that they wait together, in this order.
    private static func meeting(
        _ pool: WorkerPool, workers: Int = 1, _ jobs: [RenderJob],
        meanwhile: ([Task<RenderError.Code?, Never>]) async -> Void = { _ in }
    ) async throws -> [Task<RenderError.Code?, Never>] {
        var holding: [Task<RenderError.Code?, Never>] = []
        for _ in 0..<workers { holding.append(try await submitted(pool, try job(.encodeHang), behind: holding.count)) }
        try await waitWhile { pool.running < workers }
        var tasks: [Task<RenderError.Code?, Never>] = []
        for job in jobs { tasks.append(try await submitted(pool, job, behind: workers + tasks.count)) }
        await meanwhile(tasks)
        for task in holding { task.cancel() }
        for task in holding { #expect(await task.value == .cancelled) }
        return tasks
    }

    @Test func `renders that wait together share a decode, one after another on one worker`() async throws {
        let pool = WorkerPool(Self.configuration { $0.maxConcurrentRenders = 2 })
        let jobs = try Self.recipes()
        let codes = try await Self.meeting(pool, workers: 2, jobs)
        for code in codes { #expect(await code.value == nil) }
        #expect(pool.statistics.shared == 4 && pool.waiting == 0)
        await pool.shutdown()
    }

    @Test func `what met has the bytes of a decode made for exactly these, and what comes later those of its own`()
        async throws
    {
        let pool = WorkerPool(Self.configuration())
        let jobs = try SharedDecodeTests.jobs("mountains-12mp.jpg", ["thumbnail:500", "thumbnail:200", "thumbnail:90"])
        let holding = try await Self.submitted(pool, try Self.job(.hang), behind: 0)
        try await waitWhile { pool.running == 0 }
        var tasks: [Task<[UInt8], any Error>] = []
        for decided in jobs {
            var job = decided
            (job.digest, job.shared) = (decided.shared?.name, nil)
            tasks.append(Task { [job] in try await pool.render(job).bytes })
            try await waitWhile { pool.waiting + pool.running <= tasks.count }
        }
        holding.cancel()
        for (task, decided) in zip(tasks, jobs) {
            #expect(try await task.value == RenderFixture.renderer.render(decided).bytes)
        }
        var late = jobs[2]
        (late.digest, late.shared) = (late.shared?.name, nil)
        let alone = try await pool.render(late).bytes
        #expect(try await alone == RenderFixture.renderer.render(late).bytes)
        #expect(try await tasks[2].value != alone)
        #expect(pool.statistics.shared == 2)
        await pool.shutdown()
    }

    @Test func `renders of two originals that wait share with their own kind`() async throws {
        let pool = WorkerPool(Self.configuration())
        var jobs = try Self.recipes()
        for index in [1, 3] { jobs[index].digest = "another" }
        for code in try await Self.meeting(pool, jobs) { #expect(await code.value == nil) }
        #expect(pool.statistics.shared == 3)
        await pool.shutdown()
    }

    @Test func `an original of the same name is handed over once, another one again`() async throws {
        let pool = WorkerPool(Self.configuration())
        let whole = try Self.recipes()
        let shared = try #require(SharedDecode(of: whole.map(RenderPlan.init(alone:)), named: "gradient"))
        let jobs = whole.map { job in
            var job = job
            job.shared = shared
            return job
        }
        for job in jobs { #expect(try await pool.render(job).bytes == RenderFixture.renderer.render(job).bytes) }
        let other = try SharedDecodeTests.jobs("night-tiny.jpg", ["thumbnail:20", "thumbnail:10"])
        for job in other + jobs + other {
            #expect(try await pool.render(job).bytes == RenderFixture.renderer.render(job).bytes)
        }
        var single = jobs[0]
        single.shared = nil
        #expect(try await pool.render(single).bytes == RenderFixture.renderer.render(single).bytes)
        #expect(try await pool.render(jobs[1]).bytes == RenderFixture.renderer.render(jobs[1]).bytes)
        await pool.shutdown()
    }

    @Test func `an original that ends its worker is refused after two recipes, whatever else waits for it`()
        async throws
    {
        let pool = WorkerPool(Self.configuration())
        var codes: [RenderError.Code?] = []
        for task in try await Self.meeting(pool, try Self.recipes(.segv)) { codes.append(await task.value) }
        #expect(codes == [.crashed, .crashed, .quarantined, .quarantined, .quarantined])
        #expect(pool.statistics.crashed == 2 && pool.statistics.refused == 3)
        #expect(await Self.code(pool, try Self.job()) == nil)
        await pool.shutdown()
    }

    @Test func `if the worker dies with the first, the others are decoded by the next worker`() async throws {
        let pool = WorkerPool(Self.configuration())
        var jobs = try Self.recipes()
        jobs[0].original = try Self.job(.segv).original
        var codes: [RenderError.Code?] = []
        for task in try await Self.meeting(pool, jobs) { codes.append(await task.value) }
        #expect(codes == [.crashed, nil, nil, nil, nil] && pool.statistics.shared == 4)
        await pool.shutdown()
    }

    @Test func `after the first has passed its deadline, the others are refused`() async throws {
        let pool = WorkerPool(Self.configuration())
        let tasks = try await Self.meeting(pool, try Self.recipes(.hang, seconds: 0.05))
        var codes: [RenderError.Code?] = []
        for task in tasks { codes.append(await task.value) }
        #expect(codes == Array(repeating: .deadline, count: 5) && pool.statistics.refused == 4)
        #expect(await Self.code(pool, try Self.job()) == nil)
        await pool.shutdown()
    }

    @Test func `a recipe that fails, or is over a limit, leaves the others`() async throws {
        let pool = WorkerPool(Self.configuration())
        var jobs = try Self.recipes()
        jobs[0].limits.outputEdge = 5
        jobs[2].recipe = try Recipe("thumbnail:20,mask:star")
        var codes: [RenderError.Code?] = []
        for task in try await Self.meeting(pool, jobs) { codes.append(await task.value) }
        #expect(codes == [.overLimit, nil, .maskUnavailable, nil, nil] && pool.statistics.shared == 4)
        await pool.shutdown()
    }

    @Test func `whichever is cancelled while they wait, the others are rendered`() async throws {
        for cancelled in 0..<3 {
            let pool = WorkerPool(Self.configuration())
            let tasks = try await Self.meeting(pool, try Self.recipes(nil, [30, 20, 12])) { tasks in
                tasks[cancelled].cancel()
                #expect(await tasks[cancelled].value == .cancelled)
            }
            for index in 0..<3 where index != cancelled { #expect(await tasks[index].value == nil) }
            #expect(pool.waiting == 0 && pool.statistics.shared == 1)
            await pool.shutdown()
        }
    }

    @Test func `those that follow are cancelled while they wait and while they run, and leave nothing behind`()
        async throws
    {
        let pool = WorkerPool(Self.configuration())
        let tasks = try await Self.meeting(pool, try Self.recipes(.hang, [30, 20, 16, 12]))
        try await waitWhile { pool.running != 1 || pool.waiting != 3 }
        // One of the followers, the one at work, then its followers.
        for (index, left) in [(2, 3), (0, 2), (1, 1), (3, 0)] {
            tasks[index].cancel()
            #expect(await tasks[index].value == .cancelled)
            try await waitWhile { pool.running != min(1, left) || pool.waiting != max(0, left - 1) }
        }
        #expect(await Self.code(pool, try Self.job()) == nil)
        #expect(pool.statistics.shared == 2)
        await pool.shutdown()
    }
}
