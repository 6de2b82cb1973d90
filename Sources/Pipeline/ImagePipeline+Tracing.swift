extension ImagePipeline {
    /// Answers a request as part of the client's trace, so that the stages' spans and requests to origins belong to it.
    ///
    /// With a tracer it is a span of kind server; its parent is what the tracer finds in the request's fields, unless the
    /// caller is in a span already. Without one, the client's own W3C context goes on to origins unchanged. Either way
    /// only origins get one whose `HostSettings` ask for it.
    ///
    /// - Parameters:
    ///   - status: of the answer.
    ///   - body: makes the answer; gets the trace's identifier if a tracer tells it in W3C's format.
    package func traced<Answer: Sendable>(
        _ request: ServedRequest, status: (Answer) -> Int, _ body: (_ traceID: String?) async -> Answer
    ) async -> Answer {
        await observe.served(request, status: status, body)
    }

    /// Warns in the log that the pipeline was given.
    package func warn(_ message: String) { observe.warn(message) }
}
