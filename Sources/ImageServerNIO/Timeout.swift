/// Waiting with a timeout.
package enum Timeout {
    /// Runs `body`. Returns true if it finishes in time. Otherwise, cancels `body` and returns false without waiting
    /// for it to finish.
    package static func run(_ time: Duration, for body: @escaping @Sendable () async -> Void) async -> Bool {
        let (ends, end) = AsyncStream<Bool>.makeStream()
        let work = Task {
            await body()
            end.yield(true)
        }
        let clock = Task {
            // If the sleep was cancelled, `body` has already finished.
            guard (try? await Task.sleep(for: time)) != nil else { return }
            end.yield(false)
        }
        defer {
            work.cancel()
            clock.cancel()
        }
        for await isFinished in ends { return isFinished }
        return false
    }
}
