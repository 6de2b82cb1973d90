import Pipeline

extension Site {
    /// Answers within a span of the request, if there is a tracer.
    func traced(
        _ request: ServerRequest, _ answer: () async -> ServerResponse
    ) async -> ServerResponse {
        let route = RouteName(request.target).map { settings.mountPoint + $0.template }
        return await pipeline.traced(
            ServedRequest(method: request.method, route: route, fields: request.fields), status: { $0.status }
        ) { traceID in
            var response = await answer()
            response.traceID = traceID
            return response
        }
    }
}
