import HTTPCaching
import InMemoryTracing
import TestSupport
import Testing
import Tracing

@testable import ImageServer
@testable import Pipeline

/// A grammar is one file and one line in a list.
@Suite struct GrammarTests {
    /// `/tiny/{source}`: the source in 20 pixels.
    private struct TinyGrammar: Grammar {
        let name = "tiny"
        let template = "/tiny/{source}"
        let negotiates = false

        func read(
            _ target: RequestTarget, _ signature: Signature, now: Double
        ) throws(Problem) -> RoutedRequest {
            let unsigned = RequestTarget("/tiny/unsigned/" + target.segments[1])
            let grant = try signature.grant(unsigned, now: now)
            return RoutedRequest(
                answer: .variant(recipe: "thumbnail:20,png"), source: try OwnPath(unsigned).source, grant: grant)
        }

        func shown(_ target: RequestTarget) -> String { "/tiny/…" }
    }

    @Test func `a new grammar has hits, logs, metrics, traces and cross-origin rules`() async throws {
        let tracer = InMemoryTracer()
        try await HitTests.with {
            $0.grammars = Grammars.all + [TinyGrammar()]
            $0.crossOrigin = ["*"]
            $1.tracer = tracer
        } _: { bench in
            let target = "/tiny/" + bench.source
            let first = await bench.ask(target)
            #expect(first.status == 200 && first["content-type"] == "image/png")
            #expect(first["access-control-allow-origin"] == "*" && first.route?.name == "tiny")
            let hit = try #require(bench.hit(target))
            #expect(hit.status == 200 && hit.body == Array(first.body))
            let request = ServerRequest(target: target, fields: [HeaderField("Host", "a")])
            let entry = RequestLog.Entry(client: "::1", request: request, .init(hit), milliseconds: 1)
            #expect(RequestLog.line(entry).hasPrefix("::1 GET /tiny/… 200 "))
            #expect(entry.answer.route?.name == "tiny")
            let span = try #require(tracer.finishedSpans.first { $0.attributes.get("http.route") != nil })
            #expect(span.attributes.get("http.route") == .string("/tiny/{source}"))
            // Another grammar shares the variant.
            let variant = await bench.ask(bench.variant)
            #expect(variant.body == first.body && bench.origin.requests.count == 1)
        }
    }
}
