import PipelineSupport
import Synchronization

/// Renders that wait for a thread of this process. Those that share a decode run one after another on one thread, so
/// that each reuses the pictures left by the previous ones.
final class GatheredRenders: Sendable {
    typealias Work = @Sendable (RenderJob, SharedPictures) -> Void

    private struct Waiting: GatheringRender {
        var job: RenderJob
        let shareable: ShareableDecode?
        let work: Work

        mutating func share(_ decode: SharedDecode) { job.shared = decode }
    }

    private let queue = Mutex(UrgencyQueue<Waiting>())

    var waiting: Int { queue.withLock { $0.count } }

    /// Runs `work` on one of `threads`, with the job and the decode that it may then share.
    func submit(_ job: RenderJob, to threads: OwnedThreads, _ work: @escaping Work) {
        let waiting = Waiting(job: job, shareable: job.shareable, work: work)
        let priority = Task.currentPriority.rawValue
        queue.withLock { $0.push(waiting, id: 0, priority: priority) }
        // One for each render; those whose render was taken along find less to do.
        threads.submit { [self] in
            guard let (first, others) = queue.withLock({ $0.popGathering() }) else { return }
            let pictures = SharedPictures()
            var (next, left) = (Optional(first), others)
            while let render = next {
                render.work(render.job, pictures)
                next = left.pop()
            }
        }
    }
}
