package import HTTPCaching
import Tracing

/// The properties of a server request for its span (OpenTelemetry semantic conventions for HTTP servers).
package struct ServedRequest: Sendable {
    /// The attribute `http.request.method`.
    package var method: String
    /// The attribute `http.route`, such as `/original/{signature}/{source}`, or nil if the path is unknown.
    package var route: String?
    /// The header fields of the request, which may carry the client's trace context.
    package var fields: [HeaderField]

    package init(method: String, route: String?, fields: [HeaderField]) {
        self.method = method
        self.route = route
        self.fields = fields
    }
}

extension Observer {
    /// Answers a request as part of the client's trace (`ImagePipeline.traced`).
    func served<Response: Sendable>(
        _ request: ServedRequest, status: (Response) -> Int, _ body: (_ traceID: String?) async -> Response
    ) async -> Response {
        var context = InstrumentationContext.current ?? .topLevel
        guard let tracer else {
            guard let received = TraceContext(request.fields) else { return await body(nil) }
            context[ReceivedTrace.self] = received.fields
            return await InstrumentationContext.$current.withValue(context) { await body(nil) }
        }
        if InstrumentationContext.current == nil {
            tracer.extract(request.fields, into: &context, using: FieldExtractor())
        }
        let name = request.route.map { request.method + " " + $0 } ?? request.method
        let span = tracer.startSpan(name, context: context, ofKind: .server)
        span.attributes["http.request.method"] = request.method
        if let route = request.route { span.attributes["http.route"] = route }
        let answer = await InstrumentationContext.$current.withValue(span.context) {
            await body(TraceContext(traceFields)?.traceID)
        }
        span.attributes["http.response.status_code"] = status(answer)
        // A refused request is the client's error, not the server's.
        if status(answer) >= 500 {
            span.attributes["error.type"] = String(status(answer))
            span.setStatus(SpanStatus(code: .error))
        }
        span.end()
        return answer
    }
}

/// The context key for the trace fields of a request. Used only without a tracer.
enum ReceivedTrace: InstrumentationContextKey {
    typealias Value = [HeaderField]
}

private struct FieldExtractor: Extractor {
    func extract(key: String, from fields: [HeaderField]) -> String? {
        let values = fields.filter { FieldLines.isSameName($0.name, key) }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ",")
    }
}
