import Glibc
import Pipeline

/// The line on a terminal that says what a command waits for, once it has waited for a second.
///
/// @unchecked Sendable: everything mutable is touched only with `mutex` held.
final class WaitLine: @unchecked Sendable {
    /// What is going on. Pure: time comes in, text goes out.
    struct Progress: Sendable {
        /// What is done with the original once it is there; nil: it is only fetched.
        var afterwards: String?
        private var isAsking = false
        private var received = 0
        private var expected: Int?

        init(afterwards: String?) { self.afterwards = afterwards }

        mutating func take(_ event: LoadEvent) {
            switch event {
            case .requesting: isAsking = true
            case .progress(let received, let expected): (self.received, self.expected) = (received, expected)
            case .cached, .finished: break
            }
        }

        func text(seconds: Double) -> String {
            var text = "working"
            if isAsking, received == 0 {
                text = "waiting for the origin"
            } else if received > 0, received == expected, let afterwards {
                text = afterwards
            } else if received > 0 {
                text = "fetched " + Readable.bytes(received) + (expected.map { " of " + Readable.bytes($0) } ?? "")
            }
            return text + " · " + Readable.duration(seconds: seconds)
        }
    }

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let descriptor: Int32
    private let began = ContinuousClock.now
    private var progress: Progress
    private var isEnded = false
    private var isShown = false
    private var thread: pthread_t?

    /// Starts the thread that shows the line.
    ///
    /// - Parameter descriptor: a terminal's.
    init(on descriptor: Int32, afterwards: String?) {
        self.descriptor = descriptor
        progress = Progress(afterwards: afterwards)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<WaitLine>.fromOpaque(context).takeRetainedValue().show() }
                return nil
            }, context.toOpaque())
        // Without a thread there is no line; the command goes on.
        if status == 0 { self.thread = thread } else { context.release() }
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    func take(_ event: LoadEvent) { locked { progress.take(event) } }

    /// Takes the line away; nothing is written afterwards.
    func end() {
        let thread = locked { () -> pthread_t? in
            isEnded = true
            pthread_cond_signal(changed)
            defer { self.thread = nil }
            return self.thread
        }
        if let thread { pthread_join(thread, nil) }
    }

    private func show() {
        var wait = 1.0
        while let text = next(after: wait) {
            wait = 0.2
            isShown = true
            send(ProgressLine.clear + text.prefix(max(10, ProgressLine.columns(of: descriptor) - 1)))
        }
        if isShown { send(ProgressLine.clear) }
    }

    /// The text after so many seconds; nil at the end.
    private func next(after seconds: Double) -> String? {
        var until = timespec()
        clock_gettime(CLOCK_MONOTONIC, &until)
        let nanoseconds = until.tv_nsec + Int(seconds * 1e9)
        until.tv_sec += nanoseconds / 1_000_000_000
        until.tv_nsec = nanoseconds % 1_000_000_000
        return locked {
            while !isEnded, pthread_cond_timedwait(changed, mutex, &until) != ETIMEDOUT {}
            let elapsed = (ContinuousClock.now - began) / .seconds(1)
            return isEnded ? nil : progress.text(seconds: elapsed)
        }
    }

    private func send(_ text: String) {
        // A closed terminal has nobody to be told of it.
        try? AtomicOutput.write(Array(text.utf8), toDescriptor: descriptor, named: "standard error")
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
