import Synchronization

/// Decides whether a request that the caches cannot answer may have work done for it. Asked at most once per request.
package final class WorkGate: Sendable {
    private let hasPassed = Mutex(false)
    private let decide: @Sendable () throws(PipelineError) -> Void

    /// - Parameter decide: throws the error that the request is answered with, usually `rateLimited`; must not block.
    package init(_ decide: @escaping @Sendable () throws(PipelineError) -> Void) { self.decide = decide }

    func enter() throws(PipelineError) {
        let isFirst = hasPassed.withLock { hasPassed in
            defer { hasPassed = true }
            return !hasPassed
        }
        if isFirst { try decide() }
    }
}
