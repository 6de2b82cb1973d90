import PipelineSupport
import Synchronization

/// Stores changes in the background. The queue in front of the tier is bounded, because the tier may be slow or stop
/// responding.
///
/// Queueing holds a lock for one append and never waits for the tier. Changes beyond the limit are dropped and counted.
/// Changes are stored in order, one call at a time. Small changes that are waiting share a call and therefore a
/// transaction, which costs half as much as storing them one by one.
final class WriteBehind: Sendable {
    /// One change to store.
    struct Write: Sendable {
        var change: EntryChange
        /// The bytes counted against the limit, in addition to `overhead`.
        var bytes: Int
        /// Whether the write may share a call with others. A long write would make other writers wait for all of them.
        var isSmall: Bool
        /// Called once. The argument is true if the change was stored, and false if it failed or was dropped.
        var end: @Sendable (_ isStored: Bool) -> Void
    }

    /// The number of bytes charged for each write in addition to `bytes`. A freshened record has no bytes, but takes up
    /// memory while it is waiting.
    static let overhead = 1_024
    /// The maximum number of small changes per transaction, for which other writers wait.
    static let maxTogether = 16

    private enum Step: Sendable {
        case write(Write)
        /// A job that runs once everything queued before it has been stored or has failed.
        case job(@Sendable () async -> Void)
    }

    private struct Queue {
        var steps: [Step] = []
        var head = 0
        var bytes = 0
        var dropped = 0
        var isRunning = false

        var isEmpty: Bool { head == steps.count }

        /// Removes one step and releases its body, because the array shrinks only occasionally.
        private mutating func next() -> Step {
            defer {
                steps[head] = .job {}
                head += 1
            }
            return steps[head]
        }

        mutating func take() -> [Step] {
            guard !isEmpty else { return [] }
            var batch = [next()]
            if case .write(let first) = batch[0], first.isSmall {
                while batch.count < WriteBehind.maxTogether, !isEmpty, case .write(let next) = steps[head],
                    next.isSmall
                {
                    batch.append(self.next())
                }
            }
            if isEmpty || head >= 1_024 {
                steps.removeFirst(head)
                head = 0
            }
            return batch
        }
    }

    private let queue = Mutex(Queue())
    private let limit: Int
    private let store: @Sendable ([EntryChange]) async throws(StoreError) -> Void
    private let failed: @Sendable (StoreError) -> Void

    /// - Parameters:
    ///   - limit: the number of bytes that may be waiting.
    ///   - store: stores all changes. If it throws, it may have stored some or none of them.
    ///   - failed: called for each change that could not be stored.
    init(
        limit: Int, store: @escaping @Sendable ([EntryChange]) async throws(StoreError) -> Void,
        failed: @escaping @Sendable (StoreError) -> Void
    ) {
        self.limit = limit
        self.store = store
        self.failed = failed
    }

    /// The number of writes dropped because the queue was full.
    var dropped: Int { queue.withLock { $0.dropped } }

    /// The number of bytes that are waiting or being written.
    var waiting: Int { queue.withLock { $0.bytes } }

    /// Queues a change. If too many bytes are already waiting, drops the change and returns false.
    @discardableResult
    func submit(_ write: Write) -> Bool {
        let isQueued = queue.withLock { queue in
            let bytes = write.bytes + Self.overhead
            guard queue.bytes + bytes <= limit else {
                queue.dropped += 1
                return false
            }
            queue.bytes += bytes
            queue.steps.append(.write(write))
            return true
        }
        if isQueued { start() } else { write.end(false) }
        return isQueued
    }

    /// Runs a job once everything queued so far has been stored or has failed. The caller limits the number of jobs.
    func afterQueuedWrites(_ job: @escaping @Sendable () async -> Void) {
        queue.withLock { $0.steps.append(.job(job)) }
        start()
    }

    /// Runs a job once everything queued so far has been stored or has failed, and returns its result.
    func run<Result: Sendable>(_ job: @escaping @Sendable () async -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            afterQueuedWrites { continuation.resume(returning: await job()) }
        }
    }

    /// Returns when everything queued so far has been stored or has failed.
    func drain() async { await run {} }

    /// Starts the task that empties the queue, unless it is running.
    private func start() {
        let starts = queue.withLock { queue in
            defer { queue.isRunning = true }
            return !queue.isRunning
        }
        guard starts else { return }
        Task.detached { [self] in
            while let steps = next() { await perform(steps) }
        }
    }

    /// Returns the next steps. Returns nil once if no steps are left.
    private func next() -> [Step]? {
        queue.withLock { queue in
            let steps = queue.take()
            if steps.isEmpty { queue.isRunning = false }
            return steps.isEmpty ? nil : steps
        }
    }

    private func perform(_ steps: [Step]) async {
        var writes: [Write] = []
        for step in steps {
            switch step {
            case .job(let job): return await job()
            case .write(let write): writes.append(write)
            }
        }
        // The error is not reported, because each change is tried again individually, so that only a failing change is
        // lost and counted.
        let areStored = writes.count > 1 ? (try? await store(writes.map(\.change))) != nil : false
        for write in writes {
            var isStored = areStored
            if !areStored {
                do throws(StoreError) {
                    try await store([write.change])
                    isStored = true
                } catch {
                    failed(error)
                }
            }
            write.end(isStored)
        }
        let bytes = writes.reduce(0) { $0 + $1.bytes + Self.overhead }
        queue.withLock { $0.bytes -= bytes }
    }
}
