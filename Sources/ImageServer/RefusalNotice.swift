import PipelineFetching
import Synchronization

/// Tells the operator why sources are refused, since clients are not told: perhaps a setting has to be changed. Each host is
/// reported once, and only the first hundred, so that clients cannot fill the log.
final class RefusalNotice: Sendable {
    private let reported = Mutex<Set<String>>([])
    private static let limit = 100

    /// - Parameter warn: writes to the log.
    func report(_ problem: Problem, of request: ServerRequest, _ bases: BaseURLs, _ warn: (String) -> Void) {
        guard let reason = problem.logged, let source = (try? Route(request.target))?.source,
            let url = (try? bases.url(for: source)).flatMap({ try? SourceURL($0) })
        else { return }
        let isNew = reported.withLock { $0.count < Self.limit && $0.insert("\(url.host):\(url.port)").inserted }
        if isNew { warn("source refused (logged once for each host): \(reason)") }
    }
}
