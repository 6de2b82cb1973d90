import Pipeline

extension Site {
    /// Calls `answer` within a span for the request, if there is a tracer.
    func traced(
        _ request: ServerRequest, _ route: Route?, _ answer: () async -> ServerResponse
    ) async -> ServerResponse {
        return await pipeline.traced(
            ServedRequest(
                method: request.method, route: route.map { settings.mountPoint + $0.template }, fields: request.fields),
            status: { $0.status }
        ) { traceID in
            var response = await answer()
            response.traceID = traceID
            return response
        }
    }
}
