import Glibc
import TestSupport
import Testing

@testable import Variants

/// Retries that a failed render prevents, and retries that it permits.
extension WorkerPoolTests {
    private static func recipes(_ fault: WorkerFault, _ count: Int, seconds: Double = 100) throws -> [RenderJob] {
        try (1...count).map { number in
            var job = try job(fault, seconds: seconds)
            job.recipe = try Recipe("scaled:\(101 - number)pct")
            return job
        }
    }

    @Test func `an original whose decoding crashed workers under two recipes is refused for a while, with the reason`()
        async throws
    {
        let pool = WorkerPool(Self.configuration())
        let jobs = try Self.recipes(.segv, 3)
        #expect(await Self.error(pool, jobs[0])?.code == .crashed)
        let error = await Self.error(pool, jobs[0])
        #expect(error?.code == .quarantined && error?.message.contains("SIGSEGV while it decoded") == true)
        #expect(error?.message.contains("retry in 60 s") == true, "\(error?.message ?? "")")
        #expect(pool.statistics.crashed == 1 && pool.statistics.refused == 1)
        // The second recipe may try; it crashes a worker too, and then no third one may.
        #expect(await Self.error(pool, jobs[1])?.code == .crashed)
        #expect(await Self.error(pool, jobs[2])?.code == .quarantined)
        let trying = WorkerPool(Self.configuration { $0.quarantine = .zero })
        for _ in 0..<2 { #expect(await Self.error(trying, try Self.job(.exit))?.code == .crashed) }
        await pool.shutdown()
        await trying.shutdown()
    }

    @Test func `a crash while encoding is blamed on the variant, however many recipes crash`() async throws {
        let pool = WorkerPool(Self.configuration())
        for job in try Self.recipes(.encodeSegv, 3) {
            let error = await Self.error(pool, job)
            #expect(error?.code == .crashed, "\(error?.message ?? "")")
            #expect(error?.message.contains("SIGSEGV while it encoded png") == true, "\(error?.message ?? "")")
            #expect(await Self.error(pool, job)?.code == .quarantined)
        }
        #expect(pool.statistics.crashed == 3 && pool.statistics.refused == 3)
        await pool.shutdown()
    }

    /// Kills the worker that `isReady` selects, and returns once it has ended.
    private static func killWorker(_ isReady: @escaping (Int) -> Bool) async throws {
        try await waitWhile { !workers().contains(where: isReady) }
        let worker = try #require(workers().first(where: isReady))
        kill(pid_t(worker), SIGKILL)
        try await waitWhile { workers().contains(worker) }
    }

    /// Clock ticks, a hundredth of a second, of CPU time that a process has used; 0 if it has ended.
    private static func ticks(_ process: Int) -> Int {
        let fields = FileText.read("/proc/\(process)/stat").split(separator: " ")
        return fields.count > 14 ? (Int(fields[13]) ?? 0) + (Int(fields[14]) ?? 0) : 0
    }

    @Test func `a render whose worker was killed from outside is made by another worker`() async throws {
        let pool = WorkerPool(Self.configuration())
        var job = try Self.job()
        // Some seconds of work; a worker's start is a small part of them.
        job.recipe = try Recipe("scaled:40,blur:20")
        let slow = job
        let render = Task { await Self.error(pool, slow) }
        try await Self.killWorker { Self.ticks($0) > 30 }
        #expect(await render.value == nil)
        #expect(pool.statistics.started == 2 && pool.statistics.crashed == 1 && pool.statistics.refused == 0)
        await pool.shutdown()
    }

    @Test(arguments: [WorkerFault.hang, .encodeHang])
    func `a render whose workers were killed from outside twice says so, and may be tried again at once`(
        fault: WorkerFault
    ) async throws {
        let pool = WorkerPool(Self.configuration())
        let job = try Self.job(fault)
        for _ in 0..<2 {
            let render = Task { await Self.error(pool, job) }
            for _ in 0..<2 {
                try await Self.untilOneHangs()
                try await Self.killWorker { _ in true }
            }
            let error = await render.value
            #expect(error?.code == .workerKilled, "\(error?.message ?? "no error")")
            #expect(error?.message.contains("was killed by SIGKILL while it") == true)
        }
        #expect(pool.statistics.crashed == 4 && pool.statistics.refused == 0)
        await pool.shutdown()
    }

    @Test func `each phase has its own deadline, and a passed one is repeated for a while`() async throws {
        for (fault, limit) in [(WorkerFault.hang, "limits.seconds"), (.encodeHang, "limits.encodeSeconds")] {
            let pool = WorkerPool(Self.configuration())
            let (seconds, encodeSeconds) = fault == .hang ? (0.05, 100) : (100, 0.05)
            var job = try Self.job(fault, seconds: seconds, encodeSeconds: encodeSeconds)
            let error = await Self.error(pool, job)
            #expect(error?.code == .deadline && error?.message.contains("0.05 s (\(limit))") == true)
            let again = await Self.error(pool, job)
            #expect(again?.code == .deadline, "\(again?.message ?? "")")
            #expect(
                again?.message.contains("not rendered, because 0 s ago") == true
                    && again?.message.contains(limit) == true)
            #expect(pool.statistics.killed == 1 && pool.statistics.refused == 1)
            // Another recipe of the same original is tried if the encoder took too long, and else refused as well.
            job.recipe = try Recipe("scaled:0.5")
            let other = await Self.error(pool, job)
            #expect(other?.message.contains("not rendered") == (fault == .hang), "\(other?.message ?? "")")
            #expect(other?.code == .deadline && pool.statistics.refused == (fault == .hang ? 2 : 1))
            await pool.shutdown()
        }
    }

    @Test func `a render that stops at its deadline is not tried again at once`() async throws {
        let pool = WorkerPool(Self.configuration())
        var job = try Self.job(seconds: 0.000_001)
        job.original = EncodedBytes(try RenderFixture.jpeg(RenderFixture.gradientImage(3000, 2000)))
        job.header = ImageHeader(format: .jpeg, encodedWidth: 3000, encodedHeight: 2000)
        // Takes seconds, and heeds stops.
        job.recipe = try Recipe("blur:100")
        for _ in 0..<2 { #expect(await Self.error(pool, job)?.code == .deadline) }
        #expect(pool.statistics.refused == 1)
        // The recipe was expected to take that long, so others of this original are tried.
        job.recipe = try Recipe("thumbnail:30")
        job.limits.timeout = .seconds(100)
        #expect(await Self.error(pool, job) == nil)
        await pool.shutdown()
    }
}
