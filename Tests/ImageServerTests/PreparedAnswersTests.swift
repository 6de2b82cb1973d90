import HTTPCaching
import Testing

@testable import ImageServer
@testable import Pipeline
@testable import PipelineCaching

/// How hits are counted, and which answers are kept for them.
@Suite struct PreparedAnswersTests {
    @Test func `hits are counted as accesses, and what is left to the stages counts one miss`() async throws {
        try await HitTests.with { bench in
            _ = await bench.ask(bench.variant)
            let before = bench.pipeline.memoryStatistics
            for _ in 0..<3 { #expect(bench.hit(bench.variant) != nil) }
            let after = bench.pipeline.memoryStatistics
            #expect(after.variants.hits - before.variants.hits == 3 && after.records.hits - before.records.hits == 3)
            bench.pipeline.reduceMemory()
            #expect(bench.hit(bench.variant) == nil)
            #expect(bench.pipeline.memoryStatistics.variants.misses == after.variants.misses)
        }
    }

    @Test func `what is not asked for again is forgotten while others are`() {
        let limit = 1 << 20
        let answers = PreparedAnswers(limit: limit)
        func key(_ target: String) -> PreparedAnswers.Key { PreparedAnswers.Key(target: target, formats: []) }
        func entry(_ field: String) -> PreparedAnswers.Entry {
            let record = OriginalRecord(
                source: "", response: StoredResponse(status: 200, fields: [], requestTime: 0, responseTime: 0),
                digest: "", length: 0, media: nil, fetchMilliseconds: 0)
            return PreparedAnswers.Entry(
                MemoryAnswer(record: record, serial: 0, body: .original(digest: "")),
                route: .picture(ImageRoute.original),
                fresh: 0..<1, length: 0
            ) { _, _ in ServerResponse(status: 200, fields: [HeaderField("X", field)]) }
        }
        let small = entry("")
        answers.keep(small, for: key("/1"))
        // The target counts too.
        let number = limit / (small.bytes + 100)
        for step in 0..<3 * number {
            answers.keep(small, for: key("/" + String(repeating: "x", count: 90) + String(step)))
            if step % 16 == 0 { #expect(answers.entry(for: key("/1")) != nil) }
        }
        #expect(answers.entry(for: key("/" + String(repeating: "x", count: 90) + "0")) == nil)
        answers.remove(key("/1"))
        #expect(answers.entry(for: key("/1")) == nil)

        // An answer that is replaced or removed takes no room from others.
        answers.keep(small, for: key("/3"))
        for step in 0..<6 * number {
            answers.keep(small, for: key("/4"))
            if step % 2 == 0 { answers.remove(key("/4")) }
        }
        #expect(answers.entry(for: key("/3")) != nil)

        // Neither a long target nor a long head is worth it.
        let long = String(repeating: "a", count: PreparedAnswers.targetLimit + 1)
        answers.keep(small, for: key(long))
        answers.keep(entry(long), for: key("/2"))
        #expect(answers.entry(for: key(long)) == nil && answers.entry(for: key("/2")) == nil)
    }
}
