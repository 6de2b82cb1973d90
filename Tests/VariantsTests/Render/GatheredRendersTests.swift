import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Variants

@Suite struct GatheredRendersTests {
    private static func outcome(_ renderer: InProcessRenderer, _ job: RenderJob) async -> Result<Int, RenderError> {
        do throws(RenderError) {
            return .success(try await renderer.render(job).width)
        } catch {
            return .failure(error)
        }
    }

    /// Jobs of one original that may share a decode if they meet.
    private static func jobs(_ name: String, _ recipes: [String] = SharedDecodeTests.recipes) throws -> [RenderJob] {
        try recipes.map { recipe in
            var job = try RenderSamples.job(name, recipe + ",png", quality: .balanced)
            job.digest = name
            return job
        }
    }

    /// Submits jobs while the renderer's one thread is held, so that they wait together.
    private static func meeting(
        _ jobs: [RenderJob], meanwhile: ([Task<Result<Int, RenderError>, Never>]) -> Void = { _ in }
    ) async throws -> [Task<Result<Int, RenderError>, Never>] {
        let renderer = InProcessRenderer(threads: 1)
        let gate = BlockingGate()
        defer { gate.open() }
        var first = try RenderSamples.job("night-tiny.jpg", "thumbnail:5,png")
        let bytes = try first.original.bytes()
        let began = Flag()
        first.original = EncodedBytes(count: bytes.count) {
            began.set()
            gate.pass()
            return bytes
        }
        let holding = Task { [first] in await outcome(renderer, first) }
        try await waitWhile { !began.isSet }
        var tasks: [Task<Result<Int, RenderError>, Never>] = []
        for job in jobs {
            tasks.append(Task(priority: .medium) { await outcome(renderer, job) })
            try await waitWhile { renderer.waiting < tasks.count }
        }
        meanwhile(tasks)
        gate.open()
        _ = await holding.value
        return tasks
    }

    @Test func `what waits together runs on one thread and decodes once`() async throws {
        try VipsLibrary.load()
        let jobs = try Self.jobs("dusk-2mp.jpg")
        let threads = OwnedThreads(count: 2)
        let gathered = GatheredRenders(longLimit: 1)
        let results = Mutex<[(width: Int, decodes: Int)]>([])
        let gate = BlockingGate()
        for _ in 0..<2 { threads.submit { gate.pass() } }
        await withCheckedContinuation { continuation in
            for job in jobs {
                gathered.submit(job, RenderWork(job), id: gathered.newID(), to: threads) { job, pictures in
                    let width = (try? SharedDecodeTests.render(job, pictures))?.width ?? 0
                    let count = results.withLock { results in
                        results.append((width, pictures.decodes))
                        return results.count
                    }
                    if count == jobs.count { continuation.resume() }
                }
            }
            gate.open()
        }
        // The last is too small to share the decode of so small an original.
        #expect(results.withLock { $0.map(\.width).sorted() } == [64, 150, 300, 600, 1200])
        #expect(results.withLock { $0.filter { $0.width != 64 }.map(\.decodes) } == [1, 1, 1, 1])
        #expect(gathered.waiting == 0)
    }

    @Test func `the more urgent is rendered first`() async throws {
        let threads = OwnedThreads(count: 1)
        let gathered = GatheredRenders(longLimit: 1)
        let order = Mutex<[Int]>([])
        let gate = BlockingGate()
        threads.submit { gate.pass() }
        for (index, priority) in [TaskPriority.medium, .medium, .high].enumerated() {
            let job = try RenderSamples.job("night-tiny.jpg", "thumbnail:5,png")
            let work: GatheredRenders.Work = { _, _ in order.withLock { $0.append(index) } }
            await Task(priority: priority) {
                gathered.submit(job, RenderWork(job), id: gathered.newID(), to: threads, work)
            }.value
        }
        gate.open()
        threads.drain()
        #expect(order.withLock { $0 } == [2, 0, 1])
    }

    @Test func `a recipe that fails fails alone`() async throws {
        var jobs = try Self.jobs(
            "meadow-small.jpg", ["thumbnail:600x600", "thumbnail:300x300,mask:none", "thumbnail:200x200"])
        jobs[1].masks = ["none": [1, 2, 3]]
        let tasks = try await Self.meeting(jobs)
        #expect(try await tasks[0].value.get() == 600)
        await #expect(throws: RenderError.self) { try await tasks[1].value.get() }
        #expect(try await tasks[2].value.get() == 200)
    }

    @Test func `cancelling some of them leaves the others`() async throws {
        let jobs = try Self.jobs("meadow-small.jpg", [500, 400, 300, 200, 100].map { "thumbnail:\($0)" })
        let tasks = try await Self.meeting(jobs) { tasks in
            tasks[0].cancel()
            tasks[3].cancel()
        }
        for index in [1, 2, 4] { #expect(try await tasks[index].value.get() == [500, 400, 300, 200, 100][index]) }
        for index in [0, 3] {
            let error = await #expect(throws: RenderError.self) { try await tasks[index].value.get() }
            #expect(error?.code == .cancelled)
        }
    }

    @Test func `a deadline and a limit are each render's own`() async throws {
        var jobs = try Self.jobs("meadow-small.jpg", [500, 400, 300, 200, 100].map { "thumbnail:\($0)" })
        // Slow in a debug build beside other tests.
        for index in jobs.indices { jobs[index].limits.seconds = 100 }
        jobs[0].limits.seconds = 0
        jobs[1].limits.outputEdge = 10
        let tasks = try await Self.meeting(jobs)
        var codes: [RenderError.Code?] = []
        for task in tasks {
            if case .failure(let error) = await task.value { codes.append(error.code) } else { codes.append(nil) }
        }
        #expect(codes == [.deadline, .overLimit, nil, nil, nil])
    }

    @Test func `a short render does not wait for long ones`() async throws {
        let renderer = InProcessRenderer(threads: 2)
        let (long, short) = (try WorkerPoolTests.longJob(), try WorkerPoolTests.job())
        let ended = Flag()
        let tasks = (0..<6).map { _ in
            Task {
                defer { ended.set() }
                return await Self.outcome(renderer, long)
            }
        }
        try await waitWhile { renderer.waiting < 5 }
        #expect(try await Self.outcome(renderer, short).get() == 30)
        #expect(!ended.isSet && renderer.waiting == 5)
        // Those that wait end at once, whatever the one that runs does.
        for task in tasks { task.cancel() }
        for task in tasks {
            let error = await #expect(throws: RenderError.self) { try await task.value.get() }
            #expect(error?.code == .cancelled)
        }
    }

    @Test func `a long render that waited begins when the previous one has ended`() async throws {
        let threads = OwnedThreads(count: 2)
        let gathered = GatheredRenders(longLimit: 1)
        let (long, short) = (try WorkerPoolTests.longJob(), try WorkerPoolTests.job())
        let gate = BlockingGate()
        let ends = Mutex<[Int]>([])
        for index in 0..<3 {
            gathered.submit(long, RenderWork(long), id: UInt64(index), to: threads) { _, _ in
                if index == 0 { gate.pass() }
                ends.withLock { $0.append(index) }
            }
        }
        try await waitWhile { gathered.waiting > 2 }
        await withCheckedContinuation { continuation in
            gathered.submit(short, RenderWork(short), id: 9, to: threads) { _, _ in
                ends.withLock { $0.append(9) }
                continuation.resume()
            }
        }
        gate.open()
        threads.drain()
        #expect(ends.withLock { $0 } == [9, 0, 1, 2] && gathered.waiting == 0)
    }

    @Test func `a waiter that becomes more urgent raises what waits`() async throws {
        let order = Mutex<[Int]>([])
        var jobs: [RenderJob] = []
        for index in 0..<4 {
            var job = try WorkerPoolTests.job()
            let bytes = try job.original.bytes()
            job.original = EncodedBytes(count: bytes.count) {
                order.withLock { $0.append(index) }
                return bytes
            }
            jobs.append(job)
        }
        let tasks = try await Self.meeting(jobs) { tasks in tasks[2].escalatePriority(to: .high) }
        for task in tasks { #expect(try await task.value.get() == 30) }
        #expect(order.withLock { $0 } == [2, 0, 1, 3])
    }
}
