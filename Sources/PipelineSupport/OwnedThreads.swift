import Glibc

/// A few threads for calls that block (libvips, SQLite, files), so that such calls do not block threads of Swift's
/// cooperative pool.
///
/// Jobs start in the order in which they were submitted. Callers must limit the number of jobs that they submit. The
/// threads exit after the last job once this object has been released, or when `stop()` is called.
package final class OwnedThreads: Sendable {
    private let queue = JobQueue()

    /// - Parameter atEnd: called on each thread before it exits.
    package init(count: Int, atEnd: @escaping @Sendable () -> Void = {}) {
        for _ in 0..<count {
            queue.opened()
            let isStarted = startThread { [queue] in
                queue.runAll()
                atEnd()
                queue.ended()
            }
            if !isStarted { queue.ended() }
        }
    }

    deinit { queue.close() }

    /// Runs `job` on one of the threads and returns its result.
    @inlinable package func run<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            submit { continuation.resume(returning: job()) }
        }
    }

    /// Runs a throwing job on one of the threads and returns its result.
    @inlinable package func result<Value: Sendable, Failure: Error>(
        _ job: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await run { Result { () throws(Failure) in try job() } }.get()
    }

    /// Whether the system could not start any of the threads.
    package var isEmpty: Bool { queue.isEmpty }

    /// Queues a job. After `stop()`, or if there are no threads, the job runs immediately on the caller's thread.
    package func submit(_ job: @escaping @Sendable () -> Void) {
        if !queue.append(job) { job() }
    }

    /// Returns when no job is waiting or running.
    package func drain() { queue.drain() }

    /// Drains the queue, then stops the threads and waits for them to exit. If a job on these threads calls this
    /// method, it does not wait, because it cannot wait for its own end. The threads then exit after their last job.
    package func stop() {
        if queue.isRunHere { return queue.close() }
        queue.drain()
        queue.close()
        queue.waitForEnd()
    }

    /// Closes the queue and returns after the last thread has exited, without blocking the calling thread.
    package func stopAndWait() async {
        await withCheckedContinuation { continuation in queue.close { continuation.resume() } }
    }
}

/// Starts a thread that runs `body` and then exits. Returns false and sets `errno` if the system cannot create a
/// thread.
package func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
    var thread = pthread_t()
    let context = Unmanaged.passRetained(ThreadBody(body))
    let status = pthread_create(
        &thread, nil,
        { context in
            if let context { Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().body() }
            return nil
        }, context.toOpaque())
    guard status == 0 else {
        context.release()
        errno = status
        return false
    }
    pthread_detach(thread)
    return true
}

private final class ThreadBody: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

/// A queue of jobs, in the order in which they were submitted, for the threads that call `runAll`.
// @unchecked Sendable: all mutable state is accessed only while holding `mutex`.
package final class JobQueue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    /// Signals that a job has arrived or the queue has been closed.
    private let arrived = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Signals that no job is waiting or running any more, or that a thread has exited.
    private let becameIdle = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [@Sendable () -> Void] = []
    private var head = 0
    private var running = 0
    private var threads = 0
    /// The threads that are in `runAll`.
    private var runners: [pthread_t] = []
    private var isClosed = false
    private var atEnd: [@Sendable () -> Void] = []

    package init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(arrived, nil)
        pthread_cond_init(becameIdle, nil)
    }

    /// The threads retain the queue, so all of them have already exited.
    deinit {
        pthread_cond_destroy(becameIdle)
        pthread_cond_destroy(arrived)
        pthread_mutex_destroy(mutex)
        becameIdle.deallocate()
        arrived.deallocate()
        mutex.deallocate()
    }

    var isEmpty: Bool { locked { threads == 0 } }

    /// Whether the calling thread runs jobs of this queue.
    var isRunHere: Bool {
        let here = pthread_self()
        return locked { runners.contains { pthread_equal($0, here) != 0 } }
    }

    /// Registers a thread.
    package func opened() { locked { threads += 1 } }

    func ended() {
        let waiting = locked {
            threads -= 1
            pthread_cond_broadcast(becameIdle)
            guard threads == 0 else { return [] as [@Sendable () -> Void] }
            defer { atEnd = [] }
            return atEnd
        }
        for resume in waiting { resume() }
    }

    /// Runs jobs until the queue is closed and empty.
    package func runAll() {
        let here = pthread_self()
        locked { runners.append(here) }
        defer { locked { runners.removeAll { pthread_equal($0, here) != 0 } } }
        var hasRun = false
        while let job = next(after: hasRun) {
            job()
            hasRun = true
        }
    }

    /// Adds a job. Returns false if no thread would run it.
    package func append(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = locked {
            guard !isClosed, threads > 0 else { return false }
            jobs.append(job)
            return true
        }
        // Signal after releasing the mutex, because otherwise the woken thread would have to wait for it.
        if isTaken { pthread_cond_signal(arrived) }
        return isTaken
    }

    /// Waits for the next job. Returns nil when the queue is closed and empty.
    ///
    /// - Parameter hasRun: whether the thread has just finished a job.
    private func next(after hasRun: Bool) -> (@Sendable () -> Void)? {
        locked {
            if hasRun { running -= 1 }
            while head == jobs.count {
                if running == 0 { pthread_cond_broadcast(becameIdle) }
                if isClosed { return nil }
                pthread_cond_wait(arrived, mutex)
            }
            let job = jobs[head]
            head += 1
            if head == jobs.count {
                jobs.removeAll(keepingCapacity: true)
                head = 0
            } else if head >= 1024 {
                jobs.removeFirst(head)
                head = 0
            }
            running += 1
            return job
        }
    }

    /// Closes the queue. Jobs that are already queued still run.
    ///
    /// - Parameter end: called after the last thread has run its last job, or immediately if there are no threads.
    package func close(_ end: (@Sendable () -> Void)? = nil) {
        let isOver = locked {
            isClosed = true
            pthread_cond_broadcast(arrived)
            if let end, threads > 0 { atEnd.append(end) }
            return threads == 0
        }
        if isOver { end?() }
    }

    func drain() { locked { while head < jobs.count || running > 0 { pthread_cond_wait(becameIdle, mutex) } } }

    func waitForEnd() { locked { while threads > 0 { pthread_cond_wait(becameIdle, mutex) } } }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
