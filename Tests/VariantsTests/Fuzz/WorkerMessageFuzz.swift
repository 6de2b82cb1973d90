import TestSupport

@testable import Variants

extension VariantsFuzzTests {
    /// Messages between pipeline and worker, both ways: what was read and is written again reads the same.
    static let workerTarget = FuzzTarget(
        "worker",
        seeds: [WorkerMessagesTests.request.bytes, WorkerStop(id: 5).bytes] + WorkerMessagesTests.replies.map(\.bytes),
        words: ["jpeg", "webp", "fast", "best", "balanced", "crashed", "undecodable", "overLimit", "\u{1}WPI"],
        limit: WorkerProtocol.messageLimit
    ) { bytes in
        if let request = try? WorkerRequest(bytes), let again = try? WorkerRequest(request.bytes), again != request {
            return "another request when written and read again"
        }
        if let stop = try? WorkerStop(bytes), (try? WorkerStop(stop.bytes)) != stop { return "another stop" }
        guard let reply = try? WorkerReply(bytes) else { return nil }
        if case .finished(let finished) = reply {
            guard finished.width > 0, finished.height > 0, finished.count >= 0, finished.cpu.isFinite else {
                return "an answer of \(finished)"
            }
            if (try? WorkerReply(reply.bytes)) != reply { return "another answer when written and read again" }
        }
        return nil
    }
}
