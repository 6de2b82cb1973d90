package import HTTPCaching
import Tracing

/// A request to a server, as its span describes it (OpenTelemetry's semantic conventions for HTTP servers).
package struct ServedRequest: Sendable {
    /// `http.request.method`.
    package var method: String
    /// `http.route`, such as `/original/{signature}/{source}`; nil for a path that leads nowhere.
    package var route: String?
    /// Those that may carry the client's trace context.
    package var fields: [HeaderField]

    package init(method: String, route: String?, fields: [HeaderField]) {
        self.method = method
        self.route = route
        self.fields = fields
    }
}

extension Observer {
    /// Runs what answers a request (`ImagePipeline.traced`).
    func served<Answer: Sendable>(
        _ request: ServedRequest, status: (Answer) -> Int, _ body: (_ traceID: String?) async -> Answer
    ) async -> Answer {
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

/// The context that a request came with, where there is no tracer that reads it.
enum ReceivedTrace: InstrumentationContextKey {
    typealias Value = [HeaderField]
}

private struct FieldExtractor: Extractor {
    func extract(key: String, from fields: [HeaderField]) -> String? {
        let values = fields.filter { FieldLines.isSameName($0.name, key) }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ",")
    }
}
