import Synchronization

/// Decides whether the pipeline may do work for a request that the caches cannot answer. The decision is made at most
/// once per request.
package final class WorkGate: Sendable, Hashable {
    private let hasPassed = Mutex(false)
    private let decide: @Sendable () throws(PipelineError) -> Void

    /// - Parameter decide: a closure that throws the error to fail the request with, usually `rateLimited`. Must not
    ///   block.
    package init(_ decide: @escaping @Sendable () throws(PipelineError) -> Void) { self.decide = decide }

    package static func == (left: WorkGate, right: WorkGate) -> Bool { left === right }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    func enter() throws(PipelineError) {
        let isFirst = hasPassed.withLock { hasPassed in
            defer { hasPassed = true }
            return !hasPassed
        }
        if isFirst { try decide() }
    }
}
