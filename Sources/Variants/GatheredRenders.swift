import PipelineSupport
import Synchronization

/// Renders that wait for a thread of this process. Those that share a decode run one after another on one thread, so
/// that each reuses the pictures left by the previous ones. A bounded number of threads does long ones.
final class GatheredRenders: Sendable {
    typealias Work = @Sendable (RenderJob, SharedPictures) -> Void

    private struct Waiting: GatheringRender {
        var job: RenderJob
        let shareable: ShareableDecode?
        let work: RenderWork
        let run: Work

        mutating func share(_ decode: SharedDecode) { job.shared = decode }
    }

    private struct State {
        var queue = RenderQueue<Waiting>()
        var costs = RenderCosts()
        /// Threads that do long renders.
        var long = 0
        var lastID: UInt64 = 0
    }

    private let longLimit: Int
    private let state = Mutex(State())

    /// - Parameter longLimit: the most threads that do long renders at a time.
    init(longLimit: Int) { self.longLimit = longLimit }

    var waiting: Int { state.withLock { $0.queue.count } }

    /// The name of a render that is to be submitted, for `raise` and `cancel`.
    func newID() -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    /// Runs `run` on one of `threads`, with the job and the decode that it may then share.
    func submit(_ job: RenderJob, _ work: RenderWork, id: UInt64, to threads: OwnedThreads, _ run: @escaping Work) {
        let waiting = Waiting(job: job, shareable: job.shareable, work: work, run: run)
        // Read with the lock held: an escalation that is not in it yet finds the render in the queue.
        state.withLock { $0.queue.push(waiting, id: id, priority: Task.currentPriority.rawValue, $0.costs) }
        runAll(on: threads)
    }

    /// Makes a render that waits at least this urgent.
    func raise(id: UInt64, to priority: TaskPriority) {
        _ = state.withLock { $0.queue.raise(id: id, to: priority.rawValue) }
    }

    /// Runs a render that waits on the calling thread, which its control must have stopped.
    func cancel(id: UInt64) {
        guard let waiting = state.withLock({ $0.queue.remove(id: id) }) else { return }
        waiting.run(waiting.job, SharedPictures())
    }

    /// Says what a render cost that shared nothing.
    func learn(_ work: RenderWork, milliseconds: Double) {
        state.withLock { $0.costs.learn(work, milliseconds: milliseconds) }
    }

    /// Has a thread run renders until there is none that may begin. If there is one such job for each that was submitted,
    /// no thread is idle that could run one.
    private func runAll(on threads: OwnedThreads) {
        threads.submit { [self, weak threads] in
            while let (first, others, isLong) = next() {
                let pictures = SharedPictures()
                var (next, left) = (Optional(first), others)
                while let render = next {
                    render.run(render.job, pictures)
                    next = left.pop()
                }
                guard isLong else { continue }
                let isEmpty = state.withLock { state in
                    state.long -= 1
                    return state.queue.isEmpty
                }
                // Another one may begin, on a thread that found none that might.
                if !isEmpty, let threads { runAll(on: threads) }
            }
        }
    }

    private func next() -> (first: Waiting, others: UrgencyQueue<Waiting>, isLong: Bool)? {
        state.withLock { state in
            guard let (first, others) = state.queue.pop(state.costs, mayBeLong: state.long < longLimit) else {
                return nil
            }
            let isLong = state.costs.isLong([first.work] + others.elements.map(\.work))
            if isLong { state.long += 1 }
            return (first, others, isLong)
        }
    }
}
