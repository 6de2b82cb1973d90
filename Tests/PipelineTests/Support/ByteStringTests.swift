import Glibc
import HTTPCaching
import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import Pipeline
@testable import PipelineCaching

/// Names that Swift's strings call equal and file systems do not.
@Suite struct ByteStringTests {
    static let pairs = [("\u{E9}", "e\u{301}"), ("\u{C5}", "\u{212B}"), ("\u{3A9}", "\u{2126}"), ("K", "\u{212A}")]

    @Test func `texts are equal if their bytes are`() {
        for (one, other) in Self.pairs {
            #expect(one == other)
            #expect(
                ByteString(one) != ByteString(other)
                    && ByteString(one) == ByteString(String(decoding: one.utf8, as: UTF8.self)))
            #expect(Set([one, other, one].map(ByteString.init)).count == 2)
            #expect(ImageSource.file(one) != .file(other) && Set([ImageSource.file(one), .file(other)]).count == 2)
            #expect(ImageSource.bytes([1], name: one) != .bytes([1], name: other))
        }
        let long = String(repeating: "ab", count: 40)
        #expect(ByteString(long) == ByteString("a" + long.dropFirst()) && ByteString(long) != ByteString(long + "a"))
        #expect(ByteString("") == ByteString("") && ByteString("") != ByteString("a"))
    }

    @Test func `a slash is one before a combining mark, too`() {
        #expect("/a//\u{301}b/./c".pathParts == ["a", "\u{301}b", ".", "c"])
        #expect("a/\u{301}b".splitAtLastSlash?.folder == "a" && "a/\u{301}b".splitAtLastSlash?.name == "\u{301}b")
        #expect("/a".splitAtLastSlash?.folder == "" && "a".splitAtLastSlash == nil)
        #expect(absolutePath("/a/x/../\u{301}b") == "/a/\u{301}b" && absolutePath("/\u{301}b/..") == "/")
    }

    @Test func `memory keeps the records of both names, and purges each`() throws {
        for (one, other) in Self.pairs {
            let memory = MemoryTier(MemoryBudgets(originals: 1_000_000, variants: 1_000_000))
            for (seed, source) in ["file:/" + one, "file:/" + other].enumerated() {
                let body = bytes(90, seed: seed)
                #expect(memory.storeOriginal(record(source, body), content: .bytes(body), generation: PurgeMark(0)))
            }
            func found(_ name: String) -> [[UInt8]] {
                memory.records(source: "file:/" + name).map { Array($0.source.utf8) }
            }
            #expect(found(one) == [Array("file:/\(one)".utf8)] && found(other) == [Array("file:/\(other)".utf8)])
            let all = EntrySelection(matching: SourceSelection(prefixes: ["file:/"]), mode: .soft)
            let soft = memory.purge(all)
            #expect(soft.sources == 2 && soft.records == 2)
            #expect(memory.sources { _ in true }.count == 2)
            #expect(memory.purge(source: "file:/" + one, digests: []).records == 1)
            #expect(found(one).isEmpty && found(other).count == 1)
        }
    }

    @Test func `a search purges both names in memory and in the folder, which tells other processes`() async throws {
        for (one, other) in Self.pairs {
            let bench = try PipelineBench { _ in .response(404) }
            let pipeline = try bench.pipeline()
            let folder = try DiskStore(folder: bench.cache.path)
            let names = ["file:/" + one, "file:/" + other]
            for (seed, source) in names.enumerated() {
                let body = bytes(90, seed: seed)
                try folder.storeOriginal(
                    record(source, body), body: body, generation: try folder.generationNow())
            }
            let before = try folder.generationNow()
            let result = try await pipeline.tiers.purge(mode: .hard) { $0.hasPrefix("file:") }
            #expect(result.sources == 2 && result.records == 2)
            for name in names { #expect(try folder.records(source: name).isEmpty) }
            #expect(try folder.purges(since: before).names == nil)
            folder.close()
            await pipeline.shutdown()
            bench.origin.stop()
        }
    }

    @Test func `what waits for the disk is found under its own name`() async throws {
        for (one, other) in Self.pairs {
            let waiting = WaitingEntries(SharedJournal())
            let new = record("file:/" + one, bytes(9, seed: 1))
            let end = waiting.add(
                .record(new, new.selection), under: .records(source: ByteString(new.source)), of: new.source,
                mark: PurgeMark(0))
            #expect(waiting.records(of: "file:/" + one).applied(to: []).count == 1)
            #expect(waiting.records(of: "file:/" + other).applied(to: []).isEmpty)
            end()
        }
    }

    @Test func `requests that differ in such an identifier share no work`() async throws {
        let work = SharedWork<String, PipelineError>()
        let gate = Gate()
        async let first = work.value(for: "id:\u{3A9}", priority: .medium, finishWhenAbandoned: false) {
            () async throws(PipelineError) in
            try await gate.pass()
            return "one"
        }
        await gate.somebody()
        let second = try await work.value(for: "id:\u{2126}", priority: .medium, finishWhenAbandoned: false) {
            () async throws(PipelineError) in "other"
        }
        gate.open()
        #expect(second.value == "other" && !second.isCoalesced)
        #expect(try await first.value == "one")
    }
}
