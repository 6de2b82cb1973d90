import PipelineSupport
import Glibc
import Synchronization
import Testing

@testable import Variants

struct OwnedThreadsTests {
    @Test func `jobs of one thread run in the order given, on a thread of their own`() async {
        let threads = OwnedThreads(count: 1)
        let seen = Mutex<[Int]>([])
        for number in 0..<3000 { threads.submit { seen.withLock { $0.append(number) } } }
        let other = await threads.run { pthread_self() }
        #expect(seen.withLock { $0 } == Array(0..<3000))
        #expect(pthread_equal(other, pthread_self()) == 0)
    }

    @Test func `draining waits for what runs and what waits`() {
        let threads = OwnedThreads(count: 2)
        let gate = ThreadGate()
        let done = Atomic<Int>(0)
        for _ in 0..<10 {
            threads.submit {
                gate.wait()
                done.add(1, ordering: .relaxed)
            }
        }
        gate.open()
        threads.drain()
        #expect(done.load(ordering: .relaxed) == 10)
    }

    @Test func `stopping ends the threads, and later jobs run on the caller's`() {
        let ended = Atomic<Int>(0)
        let threads = OwnedThreads(count: 3) { ended.add(1, ordering: .relaxed) }
        threads.stop()
        #expect(ended.load(ordering: .relaxed) == 3)
        let here = pthread_self()
        let ran = Mutex(false)
        threads.submit { ran.withLock { $0 = pthread_equal(here, pthread_self()) != 0 } }
        #expect(ran.withLock { $0 })
    }

    @Test func `a job that stops its own threads goes on, and they end after their last job`() {
        let ended = ThreadGate()
        let done = Atomic<Int>(0)
        let threads = OwnedThreads(count: 1) { ended.open() }
        // Until both jobs are queued.
        let gate = ThreadGate()
        threads.submit {
            gate.wait()
            threads.stop()
            done.add(1, ordering: .relaxed)
        }
        threads.submit { done.add(1, ordering: .relaxed) }
        gate.open()
        ended.wait()
        #expect(done.load(ordering: .relaxed) == 2)
    }

    @Test func `stopping without blocking returns after the last job, and later jobs run on the caller's`() async {
        let ended = Atomic<Int>(0)
        let done = Atomic<Int>(0)
        let threads = OwnedThreads(count: 3) { ended.add(1, ordering: .relaxed) }
        for _ in 0..<100 { threads.submit { done.add(1, ordering: .relaxed) } }
        await threads.stopAndWait()
        #expect(done.load(ordering: .relaxed) == 100 && ended.load(ordering: .relaxed) == 3)
        await threads.stopAndWait()
        let here = pthread_self()
        threads.submit { #expect(pthread_equal(here, pthread_self()) != 0) }
    }

    @Test func `threads without references end after their last job`() {
        let gate = ThreadGate()
        let ended = ThreadGate()
        let done = Atomic<Int>(0)
        do {
            let threads = OwnedThreads(count: 1) { ended.open() }
            for _ in 0..<5 {
                threads.submit {
                    gate.wait()
                    done.add(1, ordering: .relaxed)
                }
            }
        }
        gate.open()
        ended.wait()
        #expect(done.load(ordering: .relaxed) == 5)
    }
}

/// Holds threads until it is opened.
private final class ThreadGate: @unchecked Sendable {
    // @unchecked Sendable: a POSIX semaphore is made to be shared.
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

    init() { sem_init(semaphore, 0, 0) }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func open() { sem_post(semaphore) }

    /// Passes on what it was woken by, so that one opening wakes all.
    func wait() {
        while sem_wait(semaphore) != 0 {}
        sem_post(semaphore)
    }
}
