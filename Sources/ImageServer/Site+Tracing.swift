import Pipeline

extension Site {
    /// Routes as OpenTelemetry's `http.route` has them, by the names that metrics have.
    private static let routes = [
        "variant": "/variant/{signature}/{recipe}/{source}", "original": "/original/{signature}/{source}",
        "info": "/info/{signature}/{source}", "source": "/source/{source}", "purge": "/purge", "health": "/health",
        "ready": "/ready", "metrics": "/metrics", "page": "/",
    ]

    /// Answers within a span of the request, if there is a tracer.
    func traced(
        _ request: ServerRequest, _ answer: () async -> ServerResponse
    ) async -> ServerResponse {
        let route = Self.routes[RequestMetrics.route(request.target)].map { settings.mountPoint + $0 }
        return await pipeline.traced(
            ServedRequest(method: request.method, route: route, fields: request.fields), status: { $0.status }
        ) { traceID in
            var response = await answer()
            response.traceID = traceID
            return response
        }
    }
}
