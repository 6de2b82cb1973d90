public import Pipeline
public import ServiceLifecycle

extension ImagePipeline: Service {
    /// Waits until the service group shuts down gracefully or cancels this task, then shuts the pipeline down.
    ///
    /// Name the pipeline before the services that send it requests: a group shuts down in reverse order.
    public func run() async throws {
        // Cancellation ends the wait as well, and is no error of the pipeline's.
        try? await gracefulShutdown()
        // In a task of its own, since a cancelled one would cut short what is still to be stored.
        await Task { await shutdown() }.value
    }
}
