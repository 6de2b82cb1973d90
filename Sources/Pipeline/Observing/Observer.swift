import CoreMetrics
import HTTPCaching
import Logging
import PipelineSupport
import Tracing

/// How a request ended. The raw values are used in metrics and the log.
enum RequestResult: String, CaseIterable, Sendable {
    case hit, fetched, rendered, failed, cancelled
}

/// The properties of a response that the log and the metrics report.
protocol ObservedResponse: Sendable {
    var result: RequestResult { get }
    /// The key of the variant, or nil if the response is an original.
    var key: String? { get }
}

/// Logs and times requests and their stages, and traces them as spans.
///
/// The presence of a metrics backend and of a tracer is determined once, when the pipeline is created. If there is
/// neither, a stage costs one comparison, and no clock is read. This type is a class, so that each stage retains a
/// single reference.
final class Observer: Sendable {
    /// The stages, in the order in which they run.
    enum Stage: String, CaseIterable, Sendable {
        case admit
        case lookUp = "look_up"
        case fetch, render, keep
    }

    let logger: Logger
    let metrics: MetricHandles?
    /// The tracer for spans, or nil if the program has not configured one.
    let tracer: (any Tracer)?
    private let isActive: Bool

    /// - Parameters:
    ///   - factory: the factory for metrics, or nil to use the bootstrapped factory.
    ///   - tracer: the tracer, or nil to use the bootstrapped tracer.
    init(logger: Logger, metrics factory: (any MetricsFactory)?, tracer: (any Tracer)?) {
        self.logger = logger
        let factory = factory ?? MetricsSystem.factory
        metrics = factory is NOOPMetricsHandler ? nil : MetricHandles(factory)
        let tracer = tracer ?? InstrumentationSystem.tracer
        self.tracer = tracer is NoOpTracer ? nil : tracer
        isActive = metrics != nil || self.tracer != nil
    }

    /// Runs a stage. Sets the stage of an error that it throws.
    @inline(__always)
    func stage<Value: Sendable>(
        _ stage: Stage, _ body: @autoclosure () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> Value {
        do throws(PipelineError) {
            return isActive ? try await observed(stage, body) : try await body()
        } catch {
            var error = error
            if error.stage == nil { error.stage = stage.rawValue }
            throw error
        }
    }

    private func observed<Value: Sendable>(
        _ stage: Stage, _ body: () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> Value {
        let began = ContinuousClock.now
        let result = await traced(stage.rawValue) { await Result(of: body) }
        metrics?.record(stage, began.duration(to: .now), hasFailed: Self.isFailure(result))
        return try result.get()
    }

    /// Runs the stages of a request and observes its result.
    @inline(__always)
    func request<Response: ObservedResponse>(
        of source: ImageSource, _ body: () async throws(PipelineError) -> Response
    ) async throws(PipelineError) -> Response {
        guard isActive || logger.logLevel <= .debug else { return try await body() }
        return try await observedRequest(source, body)
    }

    private func observedRequest<Response: ObservedResponse>(
        _ source: ImageSource, _ body: () async throws(PipelineError) -> Response
    ) async throws(PipelineError) -> Response {
        let began = ContinuousClock.now
        let name = source.displayName
        let result = await traced("request", source: name) { await Result(of: body) }
        let duration = began.duration(to: .now)
        switch result {
        case .success(let answer):
            metrics?.record(answer.result, duration)
            var metadata: Logger.Metadata = ["source": "\(name)", "result": "\(answer.result.rawValue)"]
            if let key = answer.key { metadata["key"] = "\(key)" }
            logger.debug("request answered", metadata: metadata)
            return answer
        case .failure(let error):
            metrics?.record(error.isCancellation ? .cancelled : .failed, duration)
            var metadata: Logger.Metadata = ["source": "\(name)", "error": "\(error.code)"]
            if let stage = error.stage { metadata["stage"] = "\(stage)" }
            logger.debug("request failed: \(error.message)", metadata: metadata)
            throw error
        }
    }

    /// The start time of a request, or nil if requests are not observed.
    var start: ContinuousClock.Instant? { isActive || logger.logLevel <= .debug ? .now : nil }

    /// Runs a look-up that may answer a request without the stages, and records a hit if it returns a value.
    @inline(__always)
    func hit<Value>(of source: String, _ body: () -> Value?) -> Value? {
        guard let began = start else { return body() }
        guard let value = body() else { return nil }
        hit(of: source, since: began)
        return value
    }

    /// Logs and counts a request that was answered without running the stages.
    func hit(of source: String, since began: ContinuousClock.Instant?) {
        guard let began else { return }
        metrics?.record(.hit, began.duration(to: .now))
        if let tracer {
            let span = tracer.startSpan("image_pipeline.request", ofKind: .internal)
            span.attributes["image_pipeline.source"] = source
            span.end()
        }
        logger.debug("request answered", metadata: ["source": "\(source)", "result": "hit"])
    }

    /// Logs an error that does not fail a request.
    func warn(_ message: String, stage: Stage? = nil) {
        logger.warning("\(message)", metadata: stage.map { ["stage": "\($0.rawValue)"] })
    }

    /// The fields that pass the current trace context to an origin. With a tracer, they are in the tracer's format
    /// (usually W3C). Without a tracer, they are the fields that the client sent.
    var traceFields: [HeaderField] {
        guard let context = InstrumentationContext.current else { return [] }
        guard let tracer else { return context[ReceivedTrace.self] ?? [] }
        var fields: [HeaderField] = []
        tracer.inject(context, into: &fields, using: FieldInjector())
        return fields
    }

    private struct FieldInjector: Injector {
        func inject(_ value: String, forKey key: String, into fields: inout [HeaderField]) {
            fields.append(HeaderField(key, value))
        }
    }

    private func traced<Value: Sendable>(
        _ name: String, source: String? = nil, _ body: () async -> Result<Value, PipelineError>
    ) async -> Result<Value, PipelineError> {
        guard let tracer else { return await body() }
        let span = tracer.startSpan("image_pipeline." + name, ofKind: .internal)
        if let source { span.attributes["image_pipeline.source"] = source }
        let result = await InstrumentationContext.$current.withValue(span.context) { await body() }
        if case .failure(let error) = result {
            span.recordError(error)
            span.setStatus(SpanStatus(code: .error, message: "\(error)"))
        }
        span.end()
        return result
    }

    private static func isFailure<Value>(_ result: Result<Value, PipelineError>) -> Bool {
        if case .failure(let error) = result { !error.isCancellation } else { false }
    }
}
