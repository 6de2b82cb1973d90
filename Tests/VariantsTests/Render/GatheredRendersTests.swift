import PipelineSupport
import Synchronization
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

    @Test func `what shares a decode runs on the thread of the first and decodes once`() async throws {
        try VipsLibrary.load()
        let jobs = try SharedDecodeTests.jobs("dusk-2mp.jpg")
        let threads = OwnedThreads(count: 2)
        let gathered = GatheredRenders()
        let results = Mutex<[(width: Int, decodes: Int)]>([])
        let gate = Mutex(())
        // The first cannot begin before the last is there.
        await withCheckedContinuation { continuation in
            gate.withLock { _ in
                for job in jobs {
                    gathered.submit(job.shared, to: threads) { pictures in
                        gate.withLock { _ in }
                        let width = (try? SharedDecodeTests.render(job, pictures))?.width ?? 0
                        let count = results.withLock { results in
                            results.append((width, pictures.decodes))
                            return results.count
                        }
                        if count == jobs.count { continuation.resume() }
                    }
                }
            }
        }
        #expect(results.withLock { $0.map(\.width) } == [1200, 600, 300, 150, 64])
        #expect(results.withLock { $0.map(\.decodes) } == [1, 1, 1, 1, 1])
    }

    @Test func `a recipe that fails fails alone`() async throws {
        var jobs = try SharedDecodeTests.jobs(
            "meadow-small.jpg", ["thumbnail:600x600", "thumbnail:300x300,mask:none", "thumbnail:64x64"])
        jobs[1].masks = ["none": [1, 2, 3]]
        let renderer = InProcessRenderer(threads: 2)
        let tasks = jobs.map { job in Task { await Self.outcome(renderer, job) } }
        #expect(try await tasks[0].value.get() == 600)
        await #expect(throws: RenderError.self) { try await tasks[1].value.get() }
        #expect(try await tasks[2].value.get() == 64)
    }

    @Test func `cancelling some of them leaves the others`() async throws {
        let jobs = try SharedDecodeTests.jobs("meadow-small.jpg", [500, 400, 300, 200, 100].map { "thumbnail:\($0)" })
        let renderer = InProcessRenderer(threads: 1)
        let tasks = jobs.map { job in Task { await Self.outcome(renderer, job) } }
        tasks[0].cancel()
        tasks[3].cancel()
        for index in [1, 2, 4] { #expect(try await tasks[index].value.get() == [500, 400, 300, 200, 100][index]) }
        for index in [0, 3] {
            if case .failure(let error) = await tasks[index].value { #expect(error.code == .cancelled) }
        }
    }

    @Test func `a deadline and a limit are each render's own`() async throws {
        var jobs = try SharedDecodeTests.jobs("meadow-small.jpg", [500, 400, 300, 200, 100].map { "thumbnail:\($0)" })
        // Slow in a debug build beside other tests.
        for index in jobs.indices { jobs[index].limits.seconds = 100 }
        jobs[0].limits.seconds = 0
        jobs[1].limits.pixels = 1000
        let renderer = InProcessRenderer(threads: 2)
        let tasks = jobs.map { job in Task { await Self.outcome(renderer, job) } }
        var codes: [RenderError.Code?] = []
        for task in tasks {
            if case .failure(let error) = await task.value { codes.append(error.code) } else { codes.append(nil) }
        }
        #expect(codes == [.deadline, .overLimit, nil, nil, nil])
    }
}
