import PipelineSupport
import Synchronization

/// Stores in the background: a bounded queue in front of a tier that may be slow, or stall altogether.
///
/// Queueing holds a lock for one append and never waits for the tier. Changes beyond the bound are dropped and counted.
/// They are stored in order, one call at a time; small ones that wait share a call, and so a transaction, which costs
/// half as much as storing them one by one.
final class WriteBehind: Sendable {
    /// One change to be stored.
    struct Write: Sendable {
        var change: EntryChange
        /// Bytes counted against the bound, in addition to `overhead`.
        var bytes: Int
        /// Whether it may share a call with others; a long write would make other writers wait for all of them.
        var isSmall: Bool
        /// Runs once, after the change was stored, failed or was dropped.
        var end: @Sendable () -> Void
    }

    /// Bytes charged per write in addition to its own: a freshened record has none, but takes memory while it waits.
    static let overhead = 1_024
    /// The maximum number of small changes in one transaction, for which other writers wait.
    static let mostTogether = 16

    private enum Step: Sendable {
        case write(Write)
        /// A job that runs once everything queued before it is stored or has failed.
        case job(@Sendable () async -> Void)
    }

    private struct Queue {
        var steps: [Step] = []
        var head = 0
        var bytes = 0
        var dropped = 0
        var isRunning = false

        var isEmpty: Bool { head == steps.count }

        /// Takes one step and leaves no body behind: the array shrinks only now and then.
        private mutating func next() -> Step {
            defer {
                steps[head] = .job {}
                head += 1
            }
            return steps[head]
        }

        mutating func take() -> [Step] {
            guard !isEmpty else { return [] }
            var taken = [next()]
            if case .write(let first) = taken[0], first.isSmall {
                while taken.count < WriteBehind.mostTogether, !isEmpty, case .write(let next) = steps[head],
                    next.isSmall
                {
                    taken.append(self.next())
                }
            }
            if isEmpty || head >= 1_024 {
                steps.removeFirst(head)
                head = 0
            }
            return taken
        }
    }

    private let queue = Mutex(Queue())
    private let limit: Int
    private let store: @Sendable ([EntryChange]) async throws(StoreError) -> Void
    private let failed: @Sendable (StoreError) -> Void

    /// - Parameters:
    ///   - limit: bytes that may wait.
    ///   - store: stores all of them or, if it throws, perhaps none.
    ///   - failed: called for each change that could not be stored.
    init(
        limit: Int, store: @escaping @Sendable ([EntryChange]) async throws(StoreError) -> Void,
        failed: @escaping @Sendable (StoreError) -> Void
    ) {
        self.limit = limit
        self.store = store
        self.failed = failed
    }

    /// Writes dropped because the queue was full.
    var dropped: Int { queue.withLock { $0.dropped } }

    /// Bytes waiting or being written.
    var waiting: Int { queue.withLock { $0.bytes } }

    /// Queues a change; if too much is waiting already, drops it and returns false.
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
        if isQueued { start() } else { write.end() }
        return isQueued
    }

    /// Runs a job once everything queued so far is stored or has failed; the caller bounds the number of jobs.
    func afterwards(_ job: @escaping @Sendable () async -> Void) {
        queue.withLock { $0.steps.append(.job(job)) }
        start()
    }

    /// Runs a job once everything queued so far is stored or has failed, and returns its result.
    func run<Result: Sendable>(_ job: @escaping @Sendable () async -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            afterwards { continuation.resume(returning: await job()) }
        }
    }

    /// Returns when everything queued so far is stored or has failed.
    func drain() async { await run {} }

    /// Starts the one task that empties the queue, unless it is running.
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

    /// The next steps; nil, once, if there are none.
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
        var areStored = false
        if writes.count > 1 {
            do throws(StoreError) {
                try await store(writes.map(\.change))
                areStored = true
            } catch {
                // Not reported: each change is tried again alone, so that only one that fails is lost and counted.
            }
        }
        for write in writes {
            if !areStored {
                do throws(StoreError) { try await store([write.change]) } catch { failed(error) }
            }
            write.end()
        }
        let bytes = writes.reduce(0) { $0 + $1.bytes + Self.overhead }
        queue.withLock { $0.bytes -= bytes }
    }
}
