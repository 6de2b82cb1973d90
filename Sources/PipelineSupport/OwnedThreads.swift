import Glibc

/// A few threads of our own for calls that block (libvips, SQLite, files), so that they do not block threads of the
/// cooperative pool.
///
/// Jobs start in the order given; callers bound how much they submit. The threads end after the last job once this
/// value is released, or with `stop()`.
package final class OwnedThreads: Sendable {
    private let queue = Queue()

    /// `atEnd` runs on each thread as its last call.
    package init(count: Int, atEnd: @escaping @Sendable () -> Void = {}) {
        for _ in 0..<count {
            var thread = pthread_t()
            let context = Unmanaged.passRetained(Start(queue: queue, atEnd: atEnd))
            queue.opened()
            if pthread_create(&thread, nil, { threadMain($0) }, context.toOpaque()) == 0 {
                pthread_detach(thread)
            } else {
                queue.ended()
                context.release()
            }
        }
    }

    deinit { queue.close() }

    /// Runs `job` on one of the threads and returns what it returns.
    package func run<Value: Sendable>(_ job: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            submit { continuation.resume(returning: job()) }
        }
    }

    /// Queues a job; after a stop, or if there are no threads, it runs at once on the caller's thread.
    package func submit(_ job: @escaping @Sendable () -> Void) {
        if !queue.append(job) { job() }
    }

    /// Returns when no job is waiting or running.
    package func drain() { queue.drain() }

    /// Drains, then stops the threads and waits for them to end.
    package func stop() {
        queue.drain()
        queue.close()
        queue.waitForEnd()
    }

    /// Closes the queue and returns once the last thread has ended, without blocking the calling thread.
    package func stopped() async {
        await withCheckedContinuation { continuation in queue.close { continuation.resume() } }
    }
}

/// The arguments of a new thread.
private final class Start: Sendable {
    let queue: Queue
    let atEnd: @Sendable () -> Void

    init(queue: Queue, atEnd: @escaping @Sendable () -> Void) {
        self.queue = queue
        self.atEnd = atEnd
    }
}

private func threadMain(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
    var hasRun = false
    while let job = start.queue.next(after: hasRun) {
        job()
        hasRun = true
    }
    start.atEnd()
    start.queue.ended()
    return nil
}

// @unchecked Sendable: everything mutable is touched only with `mutex` held.
private final class Queue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    /// Signals that jobs arrived or the queue was closed.
    private let arrived = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    /// Signals that no job waits or runs any more, or that a thread has ended.
    private let settled = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [@Sendable () -> Void] = []
    private var head = 0
    private var running = 0
    private var threads = 0
    private var isClosed = false
    private var atEnd: [@Sendable () -> Void] = []

    init() {
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

    func opened() { locked { threads += 1 } }

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

    /// False if no thread would run the job.
    func append(_ job: @escaping @Sendable () -> Void) -> Bool {
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
    func next(after hasRun: Bool) -> (@Sendable () -> Void)? {
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
    func close(_ end: (@Sendable () -> Void)? = nil) {
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
