/// Waiting that ends.
package enum Patience {
    /// Runs `body`, and returns true when it ended within the time. Otherwise it goes on by itself, cancelled.
    package static func waits(_ time: Duration, for body: @escaping @Sendable () async -> Void) async -> Bool {
        let (ends, end) = AsyncStream<Bool>.makeStream()
        let work = Task {
            await body()
            end.yield(true)
        }
        let clock = Task {
            // Cancelled, it has nothing more to say.
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
