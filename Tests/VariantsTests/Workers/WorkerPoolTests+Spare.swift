import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Variants

/// The worker that is ready beside the others.
extension WorkerPoolTests {
    /// A pool of one worker and one that is ready; burials wait at `door`.
    private func pool(_ door: Door? = nil) async throws -> WorkerPool {
        let pool = WorkerPool(Self.configuration { $0.beforeBurial = { door?.pass() } })
        try await pool.prepare()
        // It counts as started before it may be taken.
        try await waitWhile { !pool.hasSpare }
        return pool
    }

    @Test func `a worker that is killed is replaced before it is gone, and gone before the next is started`()
        async throws
    {
        let door = Door()
        let pool = try await pool(door)
        let children = Self.workers()
        try #require(children.count == 2)
        let hanging = try Self.job(.hang)
        let task = Task { await Self.error(pool, hanging) }
        try await Self.untilOneHangs()
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        #expect(await Self.error(pool, try Self.job()) == nil)
        // Nobody has waited for the dead one yet: what rendered was there before.
        #expect(pool.statistics.killed == 1 && pool.statistics.started == 2)
        #expect(children.allSatisfy { access("/proc/\($0)", F_OK) == 0 })
        door.open()
        try await waitWhile { pool.statistics.started < 3 }
        #expect(Self.zombies() == 0 && Self.workers().count == 2)
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

    @Test func `a pool that ends while a killed worker is waited for ends after it`() async throws {
        let door = Door()
        let pool = try await pool(door)
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
        #expect(Self.zombies() == 0)
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
