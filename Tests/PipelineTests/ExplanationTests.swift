@testable import HTTPCaching
@testable import PipelineSupport
import Glibc
import Testing
import Variants

@testable import Pipeline

struct ExplanationTests {
    private func asked(_ recipe: String? = nil, _ change: (inout ImageRequest) -> Void = { _ in }) throws
        -> ImageRequest
    {
        var request = ImageRequest(.url(CachingBench.url), recipe: try recipe.map { try Recipe($0) })
        change(&request)
        return request
    }

    @Test func `of what is not stored, the plain request is shown and nothing is sent`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, body: "never")
        } _: { bench in
            let told = try await bench.pipeline.explain(asked("thumbnail:40") { $0.fields = [HeaderField("X", "y")] })
            #expect(told.decision == .fetch && told.stored.isEmpty && told.url == CachingBench.url)
            #expect(told.request == [HeaderField("X", "y")])
            #expect(told.variant?.key == nil && told.variant?.tier == nil)
            let refused = try await bench.pipeline.explain(asked { $0.policy = .cacheOnly })
            #expect(refused.decision == .refuse && refused.url == nil && refused.answer.contains("notCached"))
            #expect(bench.count == 0)
        }
    }

    @Test func `a fresh response shows its lifetime's field, every term of its age, and the variant's tier`()
        async throws
    {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: public, max-age=100", "Age: 7", "ETag: \"a\"").picture()
        } _: { bench in
            let response = try await bench.image()
            bench.clock.advance(20)
            let told = try await bench.pipeline.explain(asked("thumbnail:40"))
            let stored = try #require(told.stored.first)
            #expect(told.decision == .reuse && told.url == nil && told.request.isEmpty)
            #expect(stored.isSelected && stored.body == .memory && told.stored.count == 1)
            #expect(stored.lifetime == FreshnessLifetime(seconds: 100, basis: .maxAge))
            #expect(stored.basis == [HeaderField("Cache-Control", "public, max-age=100")])
            #expect(stored.age.ageValue == 7 && stored.age.residentTime == 20 && stored.age.apparentAge < 1)
            #expect(stored.age.currentAge == 27 && stored.remaining == 73)
            #expect(told.variant?.key == response.key && told.variant?.tier == .memory)
            #expect(told.variant?.entry?.digest == response.digest)
            #expect(told.answer == "the variant from memory")
            let other = try await bench.pipeline.explain(asked("thumbnail:41"))
            #expect(other.variant?.key != nil && other.variant?.tier == nil)
            #expect(bench.count == 1)
        }
    }

    @Test func `a stale response shows the conditional request that is then sent`() async throws {
        try await withCache { _ in
            ScriptedResponse(
                200, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Cache-Control: max-age=1", "ETag: \"a\"",
                body: "x")
        } _: { bench in
            _ = try await bench.get()
            bench.clock.advance(5)
            let told = try await bench.pipeline.explain(asked { $0.fields = [HeaderField("X", "y")] })
            #expect(told.decision == .validate && told.stored.first?.remaining == -4)
            _ = try await bench.get("X: y")
            #expect(bench.origin.requests.last?.fields == told.request)
            #expect(told.request.map(\.name) == ["X", "If-None-Match", "If-Modified-Since"])
        }
    }

    @Test func `among several selections the reasons name the fields that differ`() async throws {
        try await withCache { request in
            ScriptedResponse(
                200, "Vary: Accept-Language", "Cache-Control: max-age=100",
                body: request.fields.first("accept-language") ?? "")
        } _: { bench in
            _ = try await bench.get("Accept-Language: de")
            bench.clock.advance(1)
            _ = try await bench.get("Accept-Language: fr")
            let told = try await bench.pipeline.explain(asked { $0.fields = [HeaderField("Accept-Language", "de")] })
            #expect(told.decision == .reuse && told.stored.count == 2)
            #expect(told.stored.filter(\.isSelected).map(\.record.digest) == [sha256Hex(Array("de".utf8))])
            let other = try #require(told.stored.first { !$0.isSelected })
            #expect(other.reason.contains("accept-language"))
            let missing = try await bench.pipeline.explain(asked())
            #expect(missing.decision == .fetch && missing.stored.allSatisfy { !$0.isSelected })
        }
    }

    @Test func `a heuristic lifetime names Last-Modified and Date, an evicted body is told`() async throws {
        try await withCache({ $0.memory.originals = 2_000 }) { bench in
            ScriptedResponse(
                200, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", body: String(repeating: "x", count: 4_000))
        } _: { bench in
            _ = try await bench.get()
            let told = try await bench.pipeline.explain(asked())
            let stored = try #require(told.stored.first)
            #expect(stored.lifetime.basis == .heuristic && stored.body == .none)
            #expect(Set(stored.basis.map(\.name)) == ["Last-Modified", "Date"])
        }
    }

    @Test func `files and bytes are explained too, and bad sources are refused as requests are`() async throws {
        try await withCache { _ in
            ScriptedResponse()
        } _: { bench in
            let folder = CacheFolder()
            mkdir(folder.path, 0o700)
            folder.overwrite("a.jpg", at: 0, with: sample("originals/night-tiny.jpg"))
            let file = try await bench.pipeline.explain(ImageRequest(.file(folder.path + "/a.jpg")))
            #expect(file.decision == .readFile && file.source.hasPrefix("file:/"))
            let bytes = try await bench.pipeline.explain(ImageRequest(.bytes([1], name: "b")))
            #expect(bytes.decision == .reuse && bytes.source.hasPrefix("bytes:"))
            await #expect(throws: PipelineError.self) {
                try await bench.pipeline.explain(ImageRequest(.url("ftp://x/")))
            }
            let missing = try await bench.pipeline.explain(ImageRequest(.file("nothing/here"))).refusal
            #expect(missing?.code == .notFound)
        }
    }
}
