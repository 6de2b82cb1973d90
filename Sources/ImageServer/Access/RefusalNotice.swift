import PipelineFetching
import Synchronization

/// Logs why sources are refused. Clients do not learn the reason, and the operator may need to change a setting. Each
/// host and each file in a folder is logged once. After the first 100, refusals are no longer logged, so clients cannot
/// fill the log.
final class RefusalNotice: Sendable {
    private let reported = Mutex<Set<String>>([])
    private static let limit = 100

    /// Logs the reason for a problem, unless it has been logged for this host or file.
    ///
    /// - Parameters:
    ///   - text: The source as the client wrote it.
    ///   - warn: A closure that writes to the log.
    func report(_ problem: Problem, of text: String, _ bases: BaseURLs, _ warn: (String) -> Void) {
        guard let reason = problem.logged, let source = try? bases.resolved(text) else { return }
        let url = source.folder == nil ? try? SourceURL(source.text) : nil
        let name = url.map { "\($0.host):\($0.port)" } ?? source.text
        let isNew = reported.withLock { $0.count < Self.limit && $0.insert(name).inserted }
        if isNew { warn("source refused (logged once per \(url == nil ? "file" : "host")): \(reason)") }
    }
}
