import HTTPCaching
import InMemoryTracing
import TestSupport
import Testing
import Tracing
import Variants

@testable import ImageServer
@testable import Pipeline

/// The server's span of a request, and what becomes of the client's trace.
@Suite struct TracingTests {
    private static let picture = "/variant/unsigned/thumbnail:20,png/"

    private func bench(
        _ tracer: InMemoryTracer?, asking: [HostOrigin: HostSettings] = [:]
    ) throws -> HitTests.Bench {
        try HitTests.Bench { _, pipeline in
            pipeline.tracer = tracer
            pipeline.fetch.hosts = asking
        }
    }

    @Test(arguments: [true, false])
    func `the origin is asked within the client's trace, with a tracer and without one`(hasTracer: Bool) async throws {
        let body = HitTests.Bench.sample("night-tiny.jpg")
        let origin = try LoopbackOrigin { _ in .response(200, ["Content-Type": "image/jpeg"], body: body) }
        defer { origin.stop() }
        var settings = HostSettings()
        settings.sendsTraceContext = true
        let asking = try HostOrigin(String(origin.url("/").dropLast()))
        let tracer = hasTracer ? InMemoryTracer() : nil
        let bench = try bench(tracer, asking: [asking: settings])
        defer { bench.origin.stop() }
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let target = Self.picture + PercentText.segment(origin.url("/a.jpg"))
        var request = ServerRequest(target: target, fields: [HeaderField("traceparent", parent)])
        request.fields += [
            HeaderField(InMemoryTracer.traceIDKey, "trace-7"), HeaderField(InMemoryTracer.spanIDKey, "span-7"),
        ]
        #expect(await bench.site.respond(to: request).status == 200)
        let asked = try #require(origin.requests.first)
        #expect(asked["traceparent"] == (hasTracer ? nil : parent))
        #expect(asked[InMemoryTracer.traceIDKey] == (hasTracer ? "trace-7" : nil))
        let fetch = tracer?.finishedSpans.first { $0.operationName == "image_pipeline.fetch" }
        #expect(asked[InMemoryTracer.spanIDKey] == fetch?.spanID)
        await bench.pipeline.shutdown()
    }

    @Test func `a request is a span of the client's trace, and the stages are within it`() async throws {
        let tracer = InMemoryTracer()
        let bench = try bench(tracer)
        let target = Self.picture + PercentText.segment(bench.origin.url("/a.jpg"))
        var request = ServerRequest(target: target, fields: [HeaderField("Host", "a")])
        request.fields += [
            HeaderField(InMemoryTracer.traceIDKey.uppercased(), "trace-7"),
            HeaderField(InMemoryTracer.spanIDKey, "span-7"),
        ]
        #expect(await bench.site.respond(to: request).status == 200)
        let spans = tracer.popFinishedSpans()
        let served = try #require(spans.last)
        #expect(served.operationName == "GET /variant/{signature}/{recipe}/{source}" && served.kind == .server)
        #expect(served.traceID == "trace-7" && served.parentSpanID == "span-7" && served.status == nil)
        #expect(served.attributes.get("http.request.method") == .string("GET"))
        #expect(served.attributes.get("http.route") == .string("/variant/{signature}/{recipe}/{source}"))
        #expect(served.attributes.get("http.response.status_code") == .int64(200))
        let inner = try #require(spans.first { $0.operationName == "image_pipeline.request" })
        #expect(inner.parentSpanID == served.spanID && spans.allSatisfy { $0.traceID == "trace-7" })
        await bench.pipeline.shutdown()
    }

    @Test func `what fails is marked only if it is the server's fault, and an unknown path has no route`() async throws
    {
        let tracer = InMemoryTracer()
        let bench = try bench(tracer)
        #expect(await bench.site.respond(to: ServerRequest(target: "/nowhere")).status == 404)
        var span = try #require(tracer.popFinishedSpans().last)
        #expect(span.operationName == "GET" && span.status == nil && span.attributes.get("http.route") == nil)
        bench.origin.stop()
        let target = Self.picture + PercentText.segment(bench.origin.url("/a.jpg"))
        #expect(await bench.site.respond(to: ServerRequest(target: target)).status == 502)
        span = try #require(tracer.popFinishedSpans().last)
        #expect(span.status?.code == .error && span.attributes.get("error.type") == .string("502"))
        await bench.pipeline.shutdown()
    }

    @Test func `in an application's span it is a child of that, and a prepared hit has none`() async throws {
        let tracer = InMemoryTracer()
        let bench = try bench(tracer)
        let target = Self.picture + PercentText.segment(bench.origin.url("/a.jpg"))
        let fields = [HeaderField("Host", "a"), HeaderField(InMemoryTracer.spanIDKey, "span-7")]
        await tracer.withSpan("application") { span in
            _ = await bench.site.respond(to: ServerRequest(target: target, fields: fields))
        }
        let spans = tracer.popFinishedSpans()
        let (served, application) = (spans.dropLast().last, spans.last)
        #expect(served?.kind == .server && served?.parentSpanID == application?.spanID)
        #expect(bench.site.hit(method: "GET", target: target, fields: fields) != nil)
        #expect(tracer.popFinishedSpans().allSatisfy { $0.kind != .server })
        await bench.pipeline.shutdown()
    }

    @Test(arguments: [
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
        ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", true),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", false),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
        ("00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01", false),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false), ("", false),
    ])
    func `a traceparent is valid or none (W3C Trace Context §3.2)`(_ text: String, _ isValid: Bool) {
        let fields = [
            HeaderField("Traceparent", text), HeaderField("tracestate", "a=1"), HeaderField("TraceState", "b=2"),
        ]
        let context = TraceContext(fields)
        #expect((context != nil) == isValid)
        #expect(TraceContext(fields + fields) == nil)
        guard let context else { return }
        #expect(context.traceID == "0af7651916cd43dd8448eb211c80319c")
        #expect(context.fields == [HeaderField("traceparent", text), HeaderField("tracestate", "a=1,b=2")])
        let long = [fields[0], HeaderField("tracestate", String(repeating: "a", count: 513))]
        #expect(TraceContext(long)?.fields == [HeaderField("traceparent", text)])
    }
}
