import Glibc

/// A thread of our own for blocking calls, so that they never hold one of the cooperative pool. Jobs run in the order
/// they were given; the thread ends after the last one once nobody holds this value.
final class SerialThread: Sendable {
    private let queue = Queue()

    init() {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(queue).toOpaque()
        let failure = pthread_create(&thread, nil, { SerialThread.main($0) }, context)
        precondition(failure == 0, "no thread could be started: error \(failure)")
        pthread_detach(thread)
    }

    deinit { queue.close() }

    /// Runs the body on the thread and returns what it returns.
    func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            queue.append { continuation.resume(returning: body()) }
        }
    }

    /// Runs the body on the thread; nobody waits for it.
    func post(_ body: @escaping @Sendable () -> Void) { queue.append(body) }

    private static func main(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let context else { return nil }
        let queue = Unmanaged<Queue>.fromOpaque(context).takeRetainedValue()
        while let job = queue.next() { job() }
        return nil
    }

    /// Jobs waiting. `@unchecked Sendable`: everything mutable is touched under `mutex` only.
    private final class Queue: @unchecked Sendable {
        private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
        private var jobs: [@Sendable () -> Void] = []
        private var isClosed = false

        init() {
            pthread_mutex_init(mutex, nil)
            pthread_cond_init(condition, nil)
        }

        deinit {
            pthread_cond_destroy(condition)
            pthread_mutex_destroy(mutex)
            condition.deallocate()
            mutex.deallocate()
        }

        func append(_ job: @escaping @Sendable () -> Void) {
            pthread_mutex_lock(mutex)
            jobs.append(job)
            pthread_cond_signal(condition)
            pthread_mutex_unlock(mutex)
        }

        func close() {
            pthread_mutex_lock(mutex)
            isClosed = true
            pthread_cond_signal(condition)
            pthread_mutex_unlock(mutex)
        }

        func next() -> (@Sendable () -> Void)? {
            pthread_mutex_lock(mutex)
            defer { pthread_mutex_unlock(mutex) }
            while jobs.isEmpty {
                if isClosed { return nil }
                pthread_cond_wait(condition, mutex)
            }
            return jobs.removeFirst()
        }
    }
}
