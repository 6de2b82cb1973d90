import Glibc

/// A few threads of our own for calls that block (libvips, SQLite, files), so that they do not block threads of the
/// cooperative pool.
///
/// Jobs start in the order given; callers bound how much they submit. The threads end after the last job once this
/// value is released, or with `stop()`.
package final class OwnedThreads: Sendable {
    private let queue = JobQueue()

    /// `atEnd` runs on each thread as its last call.
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

    /// Runs `job` on one of the threads and returns what it returns.
    package func run<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            submit { continuation.resume(returning: job()) }
        }
    }

    /// Runs a job that may throw on one of the threads.
    package func result<Value: Sendable, Failure: Error>(
        _ job: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await run { Result { () throws(Failure) in try job() } }.get()
    }

    /// Whether the system could start none of the threads.
    package var isEmpty: Bool { queue.isEmpty }

    /// Queues a job; after a stop, or if there are no threads, it runs at once on the caller's thread.
    package func submit(_ job: @escaping @Sendable () -> Void) {
        if !queue.append(job) { job() }
    }

    /// Returns when no job is waiting or running.
    package func drain() { queue.drain() }

    /// Drains, then stops the threads and waits for them to end. A job of these threads cannot wait for its own end:
    /// if one calls this, the threads end after their last job.
    package func stop() {
        if queue.isRunHere { return queue.close() }
        queue.drain()
        queue.close()
        queue.waitForEnd()
    }

    /// Closes the queue and returns once the last thread has ended, without blocking the calling thread.
    package func stopped() async {
        await withCheckedContinuation { continuation in queue.close { continuation.resume() } }
    }
}

/// Starts a thread that ends with `body`; false, with `errno`, if the system cannot create one.
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

/// Jobs in the order given, for the threads that call `runAll`.
// @unchecked Sendable: everything mutable is touched only with `mutex` held.
package final class JobQueue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    /// Signals that jobs arrived or the queue was closed.
    private let arrived = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Signals that no job waits or runs any more, or that a thread has ended.
    private let settled = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [@Sendable () -> Void] = []
    private var head = 0
    private var running = 0
    private var threads = 0
    /// The threads within `runAll`.
    private var runners: [pthread_t] = []
    private var isClosed = false
    private var atEnd: [@Sendable () -> Void] = []

    package init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(arrived, nil)
        pthread_cond_init(settled, nil)
    }

    /// The threads retain the queue, so by now all have ended.
    deinit {
        pthread_cond_destroy(settled)
        pthread_cond_destroy(arrived)
        pthread_mutex_destroy(mutex)
        settled.deallocate()
        arrived.deallocate()
        mutex.deallocate()
    }

    var isEmpty: Bool { locked { threads == 0 } }

    /// Whether the calling thread runs the jobs of this queue.
    var isRunHere: Bool {
        let here = pthread_self()
        return locked { runners.contains { pthread_equal($0, here) != 0 } }
    }

    /// Announces a thread.
    package func opened() { locked { threads += 1 } }

    func ended() {
        let waiting = locked {
            threads -= 1
            pthread_cond_broadcast(settled)
            guard threads == 0 else { return [] as [@Sendable () -> Void] }
            defer { atEnd = [] }
            return atEnd
        }
        for tell in waiting { tell() }
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

    /// False if no thread would run the job.
    package func append(_ job: @escaping @Sendable () -> Void) -> Bool {
        let isTaken = locked {
            guard !isClosed, threads > 0 else { return false }
            jobs.append(job)
            return true
        }
        // Signal after releasing the mutex, or the woken thread would have to wait for it.
        if isTaken { pthread_cond_signal(arrived) }
        return isTaken
    }

    /// The next job once there is one; nil once the queue is closed and empty.
    ///
    /// - Parameter hasRun: whether the thread has just finished a job.
    private func next(after hasRun: Bool) -> (@Sendable () -> Void)? {
        locked {
            if hasRun { running -= 1 }
            while head == jobs.count {
                if running == 0 { pthread_cond_broadcast(settled) }
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

    /// - Parameter end: called once the last thread has run its last job; at once if there are no threads.
    package func close(_ end: (@Sendable () -> Void)? = nil) {
        let isOver = locked {
            isClosed = true
            pthread_cond_broadcast(arrived)
            if let end, threads > 0 { atEnd.append(end) }
            return threads == 0
        }
        if isOver { end?() }
    }

    func drain() { locked { while head < jobs.count || running > 0 { pthread_cond_wait(settled, mutex) } } }

    func waitForEnd() { locked { while threads > 0 { pthread_cond_wait(settled, mutex) } } }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
