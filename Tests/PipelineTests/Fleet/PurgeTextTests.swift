import PipelineCaching
import Testing

@testable import Pipeline

/// Purges as machines write them to each other.
struct PurgeTextTests {
    @Test func `a purge is read as it was written`() throws {
        let purges = [
            Purge(sources: ["http://a.test/é%20", "id:x\ny\u{7F}", "file:/a b"], mode: .soft),
            Purge(prefixes: ["http://a.test/", "photos:"]),
            Purge(tags: ["red", "a b"], masks: ["m"], overlays: ["o"], mode: .variantsOnly), .unknown,
        ]
        for purge in purges {
            #expect(purge.parts.count == 1)
            #expect(Purge(try #require(purge.parts.first)) == purge)
        }
        let text = String(decoding: purges[1].parts[0], as: UTF8.self)
        #expect(text == "purge 1 hard\nprefix http://a.test/\nprefix photos:\n")
    }

    @Test func `a large purge is written in parts that together are all of it, and one name too long is not lost`()
        throws
    {
        let sources = Set((0..<5_000).map { "http://a.test/a-rather-long-name-of-a-picture-\($0).jpg" })
        let parts = Purge(sources: sources, mode: .soft).parts
        #expect(parts.count > 3 && parts.allSatisfy { $0.count <= 65_536 })
        let read = try parts.map { try #require(Purge($0)) }
        #expect(read.allSatisfy { $0.mode == .soft } && Set(read.flatMap(\.sources)) == sources)
        let long = Purge(sources: [String(repeating: "x", count: 70_000)])
        #expect(long.parts.map { Purge($0) } == [.unknown])
    }

    @Test(arguments: [
        "", "purge 1 hard", "purge 2 hard\n", "purge 1 later\n", "purge 1 hard\nsources a\n", "purge 1 hard\n\n",
        "purge 1 hard\nsource a%2\n", "purge 1 hard\nsource %ff\n", "unknown 1", "unknown 2\n",
    ]) func `what another version may have written is not taken for a purge`(_ text: String) {
        #expect(Purge(Array(text.utf8)) == nil)
    }

    @Test func `purges of one mode are joined, and of two only if no name is lost`() {
        var purge = Purge(sources: ["http://a.test/"])
        func isJoined(_ other: Purge) -> Bool { purge.merge(other) }
        #expect(isJoined(Purge(sources: ["http://b.test/"], tags: ["t"])))
        #expect(purge == Purge(sources: ["http://a.test/", "http://b.test/"], tags: ["t"]))
        for other in [Purge(sources: ["c"], mode: .soft), .unknown, Purge(sources: ["file:/\u{E9}"])] {
            #expect(!isJoined(other))
        }
        let known = purge
        purge = .unknown
        #expect(isJoined(known))
        #expect(purge == .unknown)
    }
}
