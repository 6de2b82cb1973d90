import HTTPCaching
import Pipeline
import PipelineSupport
import Testing

@testable import pipectl

/// Items of a batch as they travel.
struct QueueTextTests {
    @Test func `a line of a report is read as it was written`() throws {
        var line = ItemJSON(source: "http://a.test/é \"1\"", recipe: "thumbnail:20", outcome: .failed)
        #expect(ItemJSON(line: line.line) == line)
        line.error = BatchFailure(code: .abandoned, message: "two\nlines")
        #expect(ItemJSON(line: line.line) == line)
        line = ItemJSON(source: "a", recipe: "png", outcome: .remote)
        (line.key, line.output, line.written, line.originalOutcome) = ("k", "o/é", false, .network)
        (line.collapsed, line.damaged, line.bytes, line.width, line.height) = (true, true, 1, 2, 3)
        (line.format, line.digest, line.milliseconds) = (
            "png", "d", Timings(queue: .milliseconds(1.5), fetch: .milliseconds(2), total: .milliseconds(3.25))
        )
        #expect(ItemJSON(line: line.line) == line)
        let long = line.line.replacing(#""queue":1.5"#, with: #""queue":1e30"#)
        // A number that no span holds is left out.
        #expect(long != line.line && ItemJSON(line: long) != line)
        for text in ["", "{}", #"{"source":"a","recipe":"b","outcome":"lost"}"#, String(line.line.dropLast())] {
            #expect(ItemJSON(line: text) == nil)
        }
    }

    @Test func `an entry of a queue is read as it was written`() throws {
        var source = BatchSource(source: "s3://b/é.jpg", folder: "2026/a", name: "n-{index}.{ext}")
        source.isFound = true
        let items = ["@card", "png"].map {
            BatchItem(source: source, index: 7, written: $0, canonical: "c \($0)", hasSeveralRecipes: true)
        }
        let entry = try #require(QueueEntry(items))
        #expect(QueueEntry(entry.bytes) == entry && entry.items.map(\.canonical) == ["c @card", "c png"])
        #expect(QueueEntry(Array("{\"version\":2}".utf8)) == nil && QueueEntry([UInt8]()) == nil)
        let many = try #require(QueueEntry(Array(repeating: items[0], count: 33)))
        #expect(QueueEntry(many.bytes) == nil)
        var options = QueueOptions(
            output: "/o", cacheControl: "max-age=1", nameTemplate: "{key}", policy: .reload, inputs: "i")
        #expect(QueueOptions(options.bytes) == options)
        options.cacheControl = "max-age=1\r\nX-Amz-Acl: public-read"
        #expect(QueueOptions(options.bytes) == nil)
    }
}
