import TestSupport
import Testing

@testable import Variants

/// Renders in workers that share a decode.
extension WorkerPoolTests {
    /// Jobs of one original, with a fault at its end.
    private static func sharing(
        _ fault: WorkerFault? = nil, _ edges: [Int] = [30, 24, 20, 16, 12], seconds: Double = 100
    ) throws -> [RenderJob] {
        let whole = try job(fault, seconds: seconds)
        let jobs = edges.map { edge in
            var job = whole
            job.recipe = RenderFixture.recipe(Thumbnail(box: PixelBox(width: edge, height: edge)))
            return job
        }
        let shared = try #require(SharedDecode(of: jobs, named: "gradient"))
        return jobs.map { job in
            var job = job
            job.shared = shared
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

    @Test func `renders that share a decode follow one another on one worker`() async throws {
        let pool = WorkerPool(Self.configuration { $0.count = 3 })
        let jobs = try Self.sharing()
        let tasks = jobs.map { job in Task { try await pool.render(job).bytes } }
        for (task, job) in zip(tasks, jobs) {
            #expect(try await task.value == RenderFixture.renderer.render(job).bytes)
        }
        #expect(
            pool.statistics
                == {
                    var one = WorkerStatistics(); one.started = 1; return one
                }())
        await pool.shutdown()
    }

    @Test func `an original of the same name is handed over once, another one again`() async throws {
        let pool = WorkerPool(Self.configuration())
        let jobs = try Self.sharing()
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
        var tasks: [Task<RenderError.Code?, Never>] = []
        for job in try Self.sharing(.segv) { tasks.append(Task { await Self.code(pool, job) }) }
        var codes: [RenderError.Code?] = []
        for task in tasks { codes.append(await task.value) }
        #expect(codes.count { $0 == .crashed } == 2 && codes.count { $0 == .quarantined } == 3)
        #expect(pool.statistics.crashed == 2 && pool.statistics.refused == 3)
        #expect(await Self.code(pool, try Self.job()) == nil)
        await pool.shutdown()
    }

    @Test func `each has its own deadline`() async throws {
        let pool = WorkerPool(Self.configuration())
        let tasks = try Self.sharing(.hang, seconds: 0.05).map { job in Task { await Self.code(pool, job) } }
        var codes: [RenderError.Code?] = []
        for task in tasks { codes.append(await task.value) }
        #expect(codes == Array(repeating: .deadline, count: 5) && pool.statistics.refused == 0)
        #expect(await Self.code(pool, try Self.job()) == nil)
        await pool.shutdown()
    }

    @Test func `a recipe that fails, or is over a limit, leaves the others`() async throws {
        let pool = WorkerPool(Self.configuration())
        var jobs = try Self.sharing()
        jobs[0].limits.outputEdge = 5
        jobs[2].recipe = RenderFixture.recipe(
            Thumbnail(box: PixelBox(width: 20, height: 20)), NamedMask(name: "star"))
        let tasks = jobs.map { job in Task { await Self.code(pool, job) } }
        var codes: [RenderError.Code?] = []
        for task in tasks { codes.append(await task.value) }
        #expect(codes == [.overLimit, nil, .maskUnavailable, nil, nil])
        #expect(pool.statistics.started == 1)
        await pool.shutdown()
    }

    @Test func `whichever is cancelled while they wait, the others are rendered`() async throws {
        for cancelled in 0..<3 {
            let pool = WorkerPool(Self.configuration())
            let hanging = try await Self.submitted(pool, try Self.job(.hang), behind: 0)
            var tasks: [Task<RenderError.Code?, Never>] = []
            for job in try Self.sharing(nil, [30, 20, 10]) {
                tasks.append(try await Self.submitted(pool, job, behind: 1 + tasks.count))
            }
            tasks[cancelled].cancel()
            #expect(await tasks[cancelled].value == .cancelled)
            hanging.cancel()
            #expect(await hanging.value == .cancelled)
            for index in 0..<3 where index != cancelled { #expect(await tasks[index].value == nil) }
            #expect(pool.waiting == 0)
            await pool.shutdown()
        }
    }

    @Test func `the one at work is cancelled alone, and all of them leave nothing behind`() async throws {
        let pool = WorkerPool(Self.configuration())
        let jobs = try Self.sharing(.hang, [30, 20, 10])
        let first = try await Self.submitted(pool, jobs[0], behind: 0)
        try await waitWhile { pool.running == 0 }
        let second = try await Self.submitted(pool, jobs[1], behind: 1)
        first.cancel()
        #expect(await first.value == .cancelled)
        try await waitWhile { pool.running == 0 }
        second.cancel()
        #expect(await second.value == .cancelled)
        #expect(await Self.code(pool, try Self.job()) == nil)
        #expect(pool.waiting == 0)
        await pool.shutdown()
    }
}
