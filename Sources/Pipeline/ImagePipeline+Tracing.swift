extension ImagePipeline {
    /// Answers a request as part of the client's trace, so that the spans of the stages and the requests to origins
    /// belong to the trace.
    ///
    /// With a tracer, the request becomes a span of kind server. The parent of the span is read from the request's
    /// header fields, unless the caller is already in a span. Without a tracer, the client's W3C context is passed to
    /// origins unchanged. In both cases, the context is sent only to origins whose `HostSettings` enable it
    /// (`sendsTraceContext`).
    ///
    /// - Parameters:
    ///   - status: a closure that returns the status code of an answer.
    ///   - body: a closure that produces the answer. It receives the trace identifier if a tracer provides one in the
    ///     W3C format.
    package func traced<Response: Sendable>(
        _ request: ServedRequest, status: (Response) -> Int, _ body: (_ traceID: String?) async -> Response
    ) async -> Response {
        await observe.served(request, status: status, body)
    }

    /// Logs a warning to the pipeline's logger.
    package func warn(_ message: String) { observe.warn(message) }
}
