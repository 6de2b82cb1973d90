@testable import PipelineCaching
import Glibc
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Holds a queue up until it is opened: a tier that does not answer.
final class Stall: Sendable {
    private let gate = Gate()

    func open() { gate.open() }

    func hold(_ tiers: Tiers) { hold(tiers.links[0].queue) }

    func hold(_ queue: WriteBehind) {
        queue.afterQueuedWrites { [gate] in
            // Nothing cancels the task of a queue.
            try? await gate.pass()
        }
    }
}

/// The stored changes, in order, and how often several went together.
private final class Record: Sendable {
    let lines = Mutex<[String]>([])

    func note(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }

    /// A change that represents a name; a name that begins with "bad" cannot be stored.
    func write(_ name: String, bytes: Int = 10, isSmall: Bool = true) -> WriteBehind.Write {
        WriteBehind.Write(
            change: EntryChange(.removedRecord(record(name, [])), mark: PurgeMark(1)), bytes: bytes,
            isSmall: isSmall, end: { self.note(($0 ? "end " : "lost ") + name) })
    }

    func queue(limit: Int) -> WriteBehind {
        WriteBehind(limit: limit) { changes throws(StoreError) in
            if changes.count > 1 { self.note("together \(changes.count)") }
            for change in changes {
                guard case .removedRecord(let record) = change.kind else { continue }
                let name = record.source
                if name.hasPrefix("bad") { throw StoreError(.io, name) }
                self.note(name)
            }
        } failed: {
            self.note("failed \($0.message)")
        }
    }
}

@Suite struct WriteBehindTests {
    @Test func `small writes that wait go together, others alone and all in order`() async {
        let record = Record()
        let queue = record.queue(limit: 1 << 20)
        let stall = Stall()
        stall.hold(queue)
        for write in [record.write("a"), record.write("b"), record.write("c", isSmall: false), record.write("d")] {
            queue.submit(write)
        }
        stall.open()
        await queue.drain()
        #expect(record.all == ["together 2", "a", "b", "end a", "end b", "c", "end c", "d", "end d"])
        #expect(queue.waiting == 0)
        await queue.drain()
    }

    @Test func `where writes fail together each is tried alone, so that one fails alone`() async {
        let record = Record()
        let queue = record.queue(limit: 1 << 20)
        let stall = Stall()
        stall.hold(queue)
        for write in [record.write("a"), record.write("bad b"), record.write("c")] { queue.submit(write) }
        stall.open()
        await queue.drain()
        #expect(record.all == ["together 3", "a", "a", "end a", "failed bad b", "lost bad b", "c", "end c"])
        await queue.drain()
    }

    @Test func `what would exceed the bound is dropped and counted, and no caller waits`() async {
        let record = Record()
        let queue = record.queue(limit: 3 * WriteBehind.overhead + 100)
        let stall = Stall()
        stall.hold(queue)
        #expect(queue.submit(record.write("a", bytes: 90)))
        #expect(!queue.submit(record.write("b", bytes: 3_000)))
        #expect(queue.submit(record.write("c", bytes: 10)))
        // Bookkeeping counts too: writes without a body are bounded as well.
        #expect(queue.submit(record.write("d", bytes: 0)))
        #expect(!queue.submit(record.write("e", bytes: 0)))
        #expect(queue.dropped == 2 && queue.waiting == 3 * WriteBehind.overhead + 100)
        #expect(record.all == ["lost b", "lost e"])
        stall.open()
        await queue.drain()
        #expect(queue.submit(record.write("f", bytes: 100)))
        await queue.drain()
        #expect(record.all.filter { $0.utf8.count == 1 } == ["a", "c", "d", "f"])
        await queue.drain()
    }

    @Test func `draining stores everything that waits`() async {
        let record = Record()
        let queue = record.queue(limit: 1 << 20)
        let stall = Stall()
        stall.hold(queue)
        for number in 0..<100 { queue.submit(record.write("\(number)")) }
        stall.open()
        await queue.drain()
        #expect(record.all.filter { Int($0) != nil } == (0..<100).map { "\($0)" })
    }

    @Test func `a stalled disk delays no answer, and what waits for it is found without memory`() async throws {
        try await withPipeline {
            $0.memory = .init(originals: 0, variants: 0)
        } handler: { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let stall = Stall()
            stall.hold(pipeline.tiers)
            defer { stall.open() }
            let cold = try await pipeline.respond(to: bench.request())
            let warm = try await pipeline.respond(to: bench.request())
            #expect(cold.outcome == .rendered && warm.outcome == .memory && warm.bytes == cold.bytes)
            #expect(bench.origin.requests.count == 1 && bench.renderer.renders == 1)
            // Another recipe needs the body, which waits too.
            let other = try await pipeline.respond(to: bench.request("/a.jpg", "thumbnail:20"))
            #expect(other.outcome == .rendered && bench.origin.requests.count == 1)
            #expect(await pipeline.diskStatistics()?.variants.entries == 0)
            stall.open()
            await pipeline.drain()
            #expect(await pipeline.diskStatistics()?.variants.entries == 2)
            let stored = try await pipeline.respond(to: bench.request())
            #expect(stored.outcome == .disk && pipeline.tiers.links[0].queue.waiting == 0)
        }
    }

    @Test func `what does not fit behind a stalled disk is answered all the same, and counted`() async throws {
        try await withPipeline {
            $0.memory = .init(originals: 0, variants: 0)
            $0.writeBehindBytes = 0
        } handler: { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let first = try await pipeline.respond(to: bench.request())
            let second = try await pipeline.respond(to: bench.request())
            #expect(first.outcome == .rendered && second.outcome == .rendered)
            #expect(pipeline.tiers.counters.dropped == 4 && pipeline.tiers.counters.failures == 0)
        }
    }

    @Test func `shutting down stores everything that waits`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let first = try bench.pipeline()
            let stall = Stall()
            stall.hold(first.tiers)
            defer { stall.open() }
            for size in 20..<30 { _ = try await first.respond(to: bench.request("/a.jpg", "thumbnail:\(size)")) }
            stall.open()
            await first.shutdown()
            for size in 20..<30 {
                let found = try await pipeline.respond(to: bench.request("/a.jpg", "thumbnail:\(size)"))
                #expect(found.outcome == .disk)
            }
        }
    }

    @Test func `a purge hides what waits`() async throws {
        try await withPipeline {
            $0.memory = .init(originals: 0, variants: 0)
        } handler: { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let purges = SharedJournal()
            let waiting = WaitingEntries(purges)
            let entry = variant("a", of: digest([]), [1])
            func add(_ body: [UInt8]) -> @Sendable () -> Void {
                waiting.add(
                    .variant(.init(entry: entry, body: body)), under: .variant(entry.key), of: "http://a/",
                    mark: purges.mark)
            }
            let end = add([1])
            #expect(waiting.variant(entry.key)?.body == [1])
            purges.record(EntrySelection(sources: ["http://b/"]))
            #expect(waiting.variant(entry.key)?.body == [1])
            for names in [["http://a/"], [entry.key], [entry.originalDigest], nil] as [Set<String>?] {
                let end = add([3])
                #expect(waiting.variant(entry.key)?.body == [3])
                purges.record(names.map { EntrySelection(sources: $0) })
                #expect(waiting.variant(entry.key) == nil)
                end()
            }
            // A later one of the same key is not taken out by the end of the one before.
            let endLater = add([2])
            end()
            #expect(waiting.variant(entry.key)?.body == [2])
            endLater()
            #expect(waiting.variant(entry.key) == nil)
            _ = try await pipeline.respond(to: bench.request())
            _ = try await pipeline.purge(.source(try bench.request().source))
            let anew = try await pipeline.respond(to: bench.request())
            #expect(anew.outcome == .rendered)
        }
    }
}

@Suite struct StoringTogetherTests {
    private let folder = CacheFolder()

    @Test func `stores made together are one transaction, and one that fails undoes all`() throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(500, seed: 1)
        func put(_ name: String) -> @Sendable () throws(StoreError) -> Void {
            { () throws(StoreError) in
                try store.storeVariant(variant(name, of: digest([]), body), body: body, generation: 1)
            }
        }
        try store.inOneTransaction { () throws(StoreError) in for name in ["a", "b", "c"] { try put(name)() } }
        #expect(try store.statistics().variants.entries == 3)
        #expect(throws: StoreError.self) {
            try store.inOneTransaction { () throws(StoreError) in
                try put("d")()
                throw StoreError(.io, "a test")
            }
        }
        let counters = try store.statistics().variants
        #expect(counters.entries == 3 && counters.insertions == 3)
        #expect(try store.variant(key: variant("d", of: digest([]), body).key) == nil)
        try put("f")()
        #expect(try store.statistics().variants.entries == 4 && store.verify().isClean)
    }
}
