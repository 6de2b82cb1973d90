public import Pipeline
public import ServiceLifecycle

extension ImagePipeline: Service {
    /// Runs the pipeline as a service: waits until the service group shuts down gracefully or cancels this task, then
    /// shuts down the pipeline.
    ///
    /// ```swift
    /// import Logging
    /// import ServiceLifecycle
    ///
    /// let pipeline = try ImagePipeline()
    /// let group = ServiceGroup(
    ///     services: [pipeline], gracefulShutdownSignals: [.sigterm], logger: Logger(label: "my-app"))
    /// try await group.run()
    /// ```
    ///
    /// List the pipeline before the services that use it, because a service group shuts down in reverse order.
    public func run() async throws {
        // Cancellation also ends the wait, and is not an error.
        try? await gracefulShutdown()
        // Shut down in a separate task, because cancelling the current task would interrupt pending writes.
        await Task { await shutdown() }.value
    }
}
