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
        _ jobs: [RenderJob], on renderer: InProcessRenderer = InProcessRenderer(maxConcurrentRenders: 1),
        urgent: Int? = nil, meanwhile: ([Task<Result<Int, RenderError>, Never>]) -> Void = { _ in }
    ) async throws -> [Task<Result<Int, RenderError>, Never>] {
        let gate = BlockingGate()
        defer { gate.open() }
        let began = Flag()
        let first = try held(RenderSamples.job("night-tiny.jpg", "thumbnail:5,png")) {
            began.set()
            gate.pass()
        }
        let holding = Task { await outcome(renderer, first) }
        try await waitWhile { !began.isSet }
        var tasks: [Task<Result<Int, RenderError>, Never>] = []
        for (index, job) in jobs.enumerated() {
            tasks.append(Task(priority: index == urgent ? .high : .medium) { await outcome(renderer, job) })
            try await waitWhile { renderer.waiting < tasks.count }
        }
        meanwhile(tasks)
        gate.open()
        _ = await holding.value
        return tasks
    }

    /// A job that calls `body` when its render begins.
    private static func held(_ job: RenderJob, _ body: @escaping @Sendable () -> Void) throws -> RenderJob {
        var job = job
        let bytes = try job.original.bytes()
        job.original = EncodedBytes(count: bytes.count) {
            body()
            return bytes
        }
        return job
    }

    @Test func `what waits together runs on one thread and decodes once`() async throws {
        let renderer = InProcessRenderer(maxConcurrentRenders: 1)
        let tasks = try await Self.meeting(Self.jobs("dusk-2mp.jpg"), on: renderer)
        var widths: [Int] = []
        for task in tasks { widths.append(try await task.value.get()) }
        // The last is too small to share the decode of so small an original.
        #expect(widths.sorted() == [64, 150, 300, 600, 1200] && renderer.shared == 3)
        #expect(renderer.waiting == 0)
    }

    @Test func `the more urgent is rendered first`() async throws {
        let order = Mutex<[Int]>([])
        let jobs = try (0..<3).map { index in
            try Self.held(WorkerPoolTests.job()) { order.withLock { $0.append(index) } }
        }
        for task in try await Self.meeting(jobs, urgent: 2) { #expect(try await task.value.get() == 30) }
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
        for index in jobs.indices { jobs[index].limits.timeout = .seconds(100) }
        jobs[0].limits.timeout = .seconds(0)
        jobs[1].limits.outputEdge = 10
        let tasks = try await Self.meeting(jobs)
        var codes: [RenderError.Code?] = []
        for task in tasks {
            if case .failure(let error) = await task.value { codes.append(error.code) } else { codes.append(nil) }
        }
        #expect(codes == [.deadline, .overLimit, nil, nil, nil])
    }

    @Test func `a short render does not wait for long ones`() async throws {
        let renderer = InProcessRenderer(maxConcurrentRenders: 2)
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
        let renderer = InProcessRenderer(maxConcurrentRenders: 2)
        let gate = BlockingGate()
        defer { gate.open() }
        let begun = Mutex<[Int]>([])
        let tasks = try (0..<3).map { index in
            var long = try Self.held(WorkerPoolTests.longJob()) {
                begun.withLock { $0.append(index) }
                gate.pass()
            }
            long.limits.timeout = .seconds(100)
            return Task { [long] in await Self.outcome(renderer, long) }
        }
        try await waitWhile { renderer.waiting < 2 || begun.withLock { $0.isEmpty } }
        #expect(try await Self.outcome(renderer, WorkerPoolTests.job()).get() == 30)
        #expect(begun.withLock { $0.count } == 1 && renderer.waiting == 2)
        tasks[begun.withLock { $0[0] }].cancel()
        gate.open()
        try await waitWhile { begun.withLock { $0.count < 2 } }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.value }
        #expect(renderer.waiting == 0)
    }

    @Test func `a waiter that becomes more urgent raises what waits`() async throws {
        let order = Mutex<[Int]>([])
        var jobs: [RenderJob] = []
        for index in 0..<4 {
            jobs.append(try Self.held(WorkerPoolTests.job()) { order.withLock { $0.append(index) } })
        }
        let tasks = try await Self.meeting(jobs) { tasks in tasks[2].escalatePriority(to: .high) }
        for task in tasks { #expect(try await task.value.get() == 30) }
        #expect(order.withLock { $0 } == [2, 0, 1, 3])
    }
}
