import PipelineFetching
import Synchronization

/// Tells the operator why sources are refused, since clients are not told: perhaps a setting has to be changed. Each host is
/// reported once, as is each file of a folder, and only the first hundred, so that clients cannot fill the log.
final class RefusalNotice: Sendable {
    private let reported = Mutex<Set<String>>([])
    private static let limit = 100

    /// - Parameter warn: writes to the log.
    func report(_ problem: Problem, of request: ServerRequest, _ bases: BaseURLs, _ warn: (String) -> Void) {
        guard let reason = problem.logged, let text = (try? Route(request.target))?.source,
            let source = try? bases.resolved(text)
        else { return }
        let url = source.folder == nil ? try? SourceURL(source.text) : nil
        let name = url.map { "\($0.host):\($0.port)" } ?? source.text
        let isNew = reported.withLock { $0.count < Self.limit && $0.insert(name).inserted }
        if isNew { warn("source refused (logged once for each \(url == nil ? "file" : "host")): \(reason)") }
    }
}
