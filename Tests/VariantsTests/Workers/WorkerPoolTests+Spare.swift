import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Variants

/// The worker that is ready beside the others.
extension WorkerPoolTests {
    /// A pool of one worker and one that is ready; `beforeWaiting` is called where others are to be waited for.
    private func pool(
        count: Int = 1, beforeWaiting: @escaping @Sendable () -> Void = {}
    ) async throws -> WorkerPool {
        let pool = WorkerPool(
            Self.configuration {
                $0.count = count
                // Renders that hang count as long, and others follow them.
                $0.longRenders = .max
                $0.beforeWaiting = beforeWaiting
            })
        try await pool.prepare()
        // It counts as started before it may be taken.
        try await waitWhile { !pool.hasSpare }
        return pool
    }

    /// A render that takes a while and stops when it is told to.
    private func slow() throws -> RenderJob {
        var job = try Self.job()
        job.original = EncodedBytes(try RenderFixture.jpeg(RenderFixture.gradientImage(1200, 900)))
        job.header = ImageHeader(format: .jpeg, width: 1200, height: 900)
        job.recipe = try Recipe("scaled:4")
        return job
    }

    /// Cancels such a render once a worker has it.
    private func cancelSlow(_ pool: WorkerPool) async throws {
        let job = try slow()
        let hasEnded = Flag()
        let others = pool.running
        let task = Task {
            defer { hasEnded.set() }
            return await Self.error(pool, job)
        }
        try await waitWhile { pool.running == others && !hasEnded.isSet }
        for _ in 0..<1000 { await Task.yield() }
        task.cancel()
        _ = await task.value
    }

    @Test func `a worker whose render is cancelled stops beside the slot's next one, and is ready again`() async throws
    {
        var hasReturned = false
        // On a machine that stands still it may be killed, or not have begun.
        for _ in 0..<20 where !hasReturned {
            let isLeft = Flag()
            let pool = try await pool { isLeft.set() }
            let before = pool.statistics
            try await cancelSlow(pool)
            #expect(await Self.error(pool, try Self.job()) == nil)
            try await waitWhile { !pool.hasSpare }
            hasReturned = isLeft.isSet && pool.statistics == before
            #expect(pool.statistics.crashed == 0 && Self.workers().count == 2)
            await pool.shutdown()
            #expect(Self.workers().isEmpty && Self.zombies() == 0)
        }
        #expect(hasReturned)
    }

    @Test(arguments: [false, true])
    func `a pool that ends lets a render finish whose worker was another slot's`(isReversed: Bool) async throws {
        let pool = try await pool(count: 2)
        let hanging = try Self.job(.hang)
        let task = Task { await Self.error(pool, hanging) }
        try await Self.untilOneHangs()
        // The other slot's worker becomes the spare, and then this slot's.
        try await cancelSlow(pool)
        try await waitWhile { !pool.hasSpare }
        task.cancel()
        _ = await task.value
        try await waitWhile { !pool.hasSpare }
        let children = isReversed ? Self.workers().reversed() : Self.workers()
        for child in children { kill(pid_t(child), SIGSTOP) }
        try await waitWhile { children.contains { !Self.isStopped($0) } }
        let job = try Self.job()
        let renders = (0..<2).map { _ in Task { await Self.error(pool, job) } }
        try await waitWhile { pool.running < 2 }
        let end = Task { await pool.shutdown() }
        // One slot after the other has nothing more to do.
        for child in children {
            kill(pid_t(child), SIGCONT)
            for _ in 0..<2000 { await Task.yield() }
        }
        for render in renders { #expect(await render.value == nil) }
        await end.value
        #expect(pool.statistics.crashed == 0 && Self.workers().isEmpty && Self.zombies() == 0)
    }

    @Test func `a slot does not wait for a worker that is to stop, and the next is started once that is gone`()
        async throws
    {
        let door = Door()
        let pool = try await pool { door.pass() }
        let children = Self.workers()
        try #require(children.count == 2)
        let hanging = try Self.job(.hang)
        let task = Task { await Self.error(pool, hanging) }
        try await Self.untilOneHangs()
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        #expect(await Self.error(pool, try Self.job()) == nil)
        // What hangs hangs still: what rendered was there before.
        #expect(pool.statistics.killed == 0 && pool.statistics.started == 2)
        #expect(children.allSatisfy { access("/proc/\($0)", F_OK) == 0 })
        door.open()
        try await waitWhile { pool.statistics.started < 3 }
        #expect(pool.statistics.killed == 1 && Self.zombies() == 0 && Self.workers().count == 2)
        await pool.shutdown()
        #expect(Self.workers().isEmpty && Self.zombies() == 0)
    }

    @Test func `one that crashes is replaced as well, and the one that is ready when it ends by itself`() async throws {
        let pool = try await pool()
        #expect(await Self.error(pool, try Self.job(.segv))?.code == .crashed)
        #expect(await Self.error(pool, try Self.job()) == nil)
        try await waitWhile { pool.statistics.started < 3 }
        for worker in Self.workers() { kill(pid_t(worker), SIGKILL) }
        // Idle workers: the slot's and the one beside it.
        try await waitWhile { pool.statistics.started < 5 }
        #expect(pool.statistics.crashed == 3 && Self.workers().count == 2)
        await pool.shutdown()
    }

    @Test func `a pool that ends while a worker is to stop ends after it, and blames no original`() async throws {
        let door = Door()
        let pool = try await pool { door.pass() }
        let hanging = try Self.job(.hang)
        let task = Task { await Self.error(pool, hanging) }
        try await Self.untilOneHangs()
        task.cancel()
        _ = await task.value
        try #require(pool.statistics.started == 2)
        let hasEnded = Flag()
        let end = Task {
            await pool.shutdown()
            hasEnded.set()
        }
        // The slot's worker has ended with its slot; what was killed is there still.
        try await waitWhile { Self.zombies() == 0 || !Self.workers().isEmpty }
        for _ in 0..<1000 { await Task.yield() }
        #expect(!hasEnded.isSet)
        door.open()
        await end.value
        #expect(Self.zombies() == 0 && pool.statistics.crashed == 0)
    }
}

/// A door that threads stand at until a test opens it, for good.
///
/// @unchecked Sendable because a semaphore is there to be used by several threads, and where it lies never changes.
private final class Door: @unchecked Sendable {
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    /// Returns once the door is open.
    func pass() {
        while sem_wait(semaphore) != 0 {}
        // For the next one.
        sem_post(semaphore)
    }

    func open() { sem_post(semaphore) }
}

/// Whether something has happened.
final class Flag: Sendable {
    private let state = Atomic(false)
    var isSet: Bool { state.load(ordering: .acquiring) }
    func set() { state.store(true, ordering: .releasing) }
}
