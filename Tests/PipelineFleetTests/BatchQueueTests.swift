import Glibc
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import PipelineFleet

@Suite(.needsRedis) struct BatchQueueTests {
    /// A batch on a separate server.
    struct Batch: Sendable {
        let server: RedisTestServer
        let submitter: BatchSubmitter
        let redis: RedisConnection
        var id: BatchID { submitter.id }

        init(_ terms: BatchTerms = .hours, server: RedisTestServer? = nil) async throws {
            self.server = try server ?? RedisTestServer()
            submitter = BatchSubmitter(try self.server.configuration())
            redis = try self.server.connection()
            try await submitter.create(options: [7], terms: terms)
        }

        func worker() throws -> BatchWorker { BatchWorker(try server.configuration(), batch: id) }

        /// Submits items with payloads that contain their numbers.
        func submit(_ numbers: Range<Int>) async throws {
            let count = try await submitter.submit(numbers.map(payload), from: numbers.lowerBound)
            try #require(count == numbers.count)
        }

        /// Lets the lease of an item run out without waiting for it.
        func age(_ item: LeasedItem) async throws {
            let entry = RedisWord(item.entry.description)
            let rows = try await redis.reply(to: "XPENDING", id.items, "workers", entry, entry, "1")
            let consumer = try #require(rows.elements?.first?.elements?[1].text)
            try await redis.reply(
                to: "XCLAIM", id.items, "workers", RedisWord(consumer), "0", entry, "IDLE", "100000000", "JUSTID")
        }

        /// The number of items and results in Redis, in one step.
        func load() async throws -> Int {
            let script = "return redis.call('XLEN', KEYS[1]) + redis.call('XLEN', KEYS[2])"
            let reply = try await redis.reply(to: "EVAL", RedisWord(script), "2", id.items, id.results)
            guard case .integer(let count) = reply else { throw redis.unexpected(reply) }
            return count
        }

        /// Reads and acknowledges results until `count` were read.
        func collect(_ count: Int) async throws -> [ItemResult] {
            var all: [ItemResult] = []
            while all.count < count {
                let results = try await submitter.results(blockSeconds: 1)
                all += results
                if let last = results.last { try await submitter.acknowledge(upTo: last.entry) }
            }
            return all
        }
    }

    /// How often each item was handed out.
    final class HandOuts: Sendable {
        private let state = Mutex<[Int: Int]>([:])
        func count(_ items: [LeasedItem]) { state.withLock { for item in items { $0[item.number, default: 0] += 1 } } }
        var counts: [Int: Int] { state.withLock { $0 } }
    }

    final class Count: Sendable {
        private let state = Mutex(0)
        func add(_ count: Int) { state.withLock { $0 += count } }
        var value: Int { state.withLock { $0 } }
    }

    private static func payload(_ number: Int) -> [UInt8] { Array("item \(number)".utf8) }

    @Test func `an item goes to a worker, and its result comes back`() async throws {
        let batch = try await Batch()
        let worker = try batch.worker()
        #expect(try await worker.next() == [])
        let bytes = (0...255).map { UInt8($0) }
        #expect(try await batch.submitter.submit([bytes, []], from: 0) == 2)
        let items = try #require(try await worker.next(count: 5))
        #expect(items.map(\.number) == [0, 1])
        #expect(items.map(\.payload) == [bytes, []])
        #expect(items.allSatisfy { $0.batch == batch.id && $0.attempt == 1 && $0.leaseSeconds == 3600 })
        #expect(try await worker.state(of: batch.id).options == [7])
        #expect(try await worker.complete(items[1], bytes))
        #expect(try await worker.complete(items[0], [], isFailure: true))
        let results = try await batch.submitter.results(blockSeconds: 60)
        #expect(results.map(\.number) == [1, 0])
        #expect(results.map(\.kind) == [.success, .failure])
        #expect(results.map(\.payload) == [bytes, []])
        #expect(try await batch.submitter.results(after: results[0].entry) == [results[1]])
        #expect(try await worker.next() == [])
        try await batch.submitter.finish(total: 2)
        #expect(try await worker.next() == nil)
        var state = try await batch.submitter.state()
        #expect((state.submitted, state.total, state.done, state.failed) == (2, 2, 2, 1))
        #expect(state.isComplete && state.unacknowledged == 2 && state.terms == .hours)
        try await batch.submitter.acknowledge(upTo: results[0].entry)
        #expect(try await batch.submitter.results() == [results[1]])
        try await batch.submitter.acknowledge(upTo: results[1].entry)
        state = try await batch.submitter.state()
        #expect(state.unacknowledged == 0)
        await #expect(throws: BatchError.finished(batch.id, total: 2)) {
            try await batch.submitter.submit([[]], from: 2)
        }
        try await batch.submitter.remove()
        #expect(try await batch.redis.reply(to: "DBSIZE") == .integer(0))
    }

    @Test func `no more items and results than the window are in Redis at once`() async throws {
        let batch = Batch(try await Batch(), window: 100)
        let total = 10_000
        func submit(from first: Int, _ count: Int) async throws -> Int {
            let payloads = (first..<min(first + count, total)).map(Self.payload)
            return try await batch.submitter.submit(payloads, from: first)
        }
        #expect(try await submit(from: 0, 70) == 70)
        #expect(try await submit(from: 70, 70) == 30)
        #expect(try await submit(from: 100, 70) == 0)
        try await withThrowingTaskGroup { group in
            for _ in 0..<2 {
                let worker = try batch.worker()
                group.addTask {
                    while let items = try await worker.next(count: 16, blockSeconds: 60) {
                        for item in items { #expect(try await worker.complete(item, item.payload)) }
                    }
                }
            }
            var submitted = 100
            var numbers: [Int] = []
            while numbers.count < total {
                if submitted < total {
                    submitted += try await submit(from: submitted, 70)
                    if submitted == total { try await batch.submitter.finish(total: total) }
                }
                #expect(try await batch.load() <= 100)
                for result in try await batch.collect(1) {
                    #expect(result.payload == Self.payload(result.number))
                    numbers.append(result.number)
                }
            }
            #expect(numbers.sorted() == Array(0..<total))
            try await group.waitForAll()
        }
    }

    @Test func `each item has one result and few hand-outs, whichever workers stop`() async throws {
        var terms = BatchTerms()
        terms.leaseSeconds = 0.05
        let batch = try await Batch(terms)
        let total = 2_000
        let (handOuts, counted) = (HandOuts(), Count())
        for start in stride(from: 0, to: total, by: 1_000) { try await batch.submit(start..<start + 1_000) }
        try await batch.submitter.finish(total: total)
        let results = try await withThrowingTaskGroup { group in
            for _ in 0..<5 {
                group.addTask {
                    var worker = try batch.worker()
                    while let items = try await worker.next(count: .random(in: 1...8), blockSeconds: 60) {
                        handOuts.count(items)
                        for item in items {
                            if Int.random(in: 0..<20) == 0 {
                                // It stops, and another takes its place.
                                worker = try batch.worker()
                                break
                            }
                            if try await worker.complete(item, item.payload) { counted.add(1) }
                        }
                    }
                }
            }
            let results = try await batch.collect(total)
            try await group.waitForAll()
            return results
        }
        #expect(results.map(\.number).sorted() == Array(0..<total))
        #expect(try await batch.load() == 0)
        let counts = handOuts.counts
        #expect(counts.count == total)
        #expect(counts.values.allSatisfy { (1...3).contains($0) })
        let dead = results.count { $0.kind == .dead }
        #expect(counted.value == total - dead)
        #expect(results.allSatisfy { $0.kind == .dead ? $0.attempt == 3 : $0.payload == Self.payload($0.number) })
        let state = try await batch.submitter.state()
        #expect((state.done, state.failed) == (total, dead))
    }

    @Test(arguments: [1, 3]) func `an item that stops its workers is given up, and the others are done`(
        tries: Int
    ) async throws {
        var terms = BatchTerms.hours
        terms.tries = tries
        let batch = try await Batch(terms)
        try await batch.submit(0..<10)
        try await batch.submitter.finish(total: 10)
        let handOuts = HandOuts()
        var worker = try batch.worker()
        while let items = try await worker.next() {
            handOuts.count(items)
            let item = try #require(items.first)
            if item.number == 3 {
                #expect(item.attempt == handOuts.counts[3])
                try await batch.age(item)
                worker = try batch.worker()
            } else {
                #expect(try await worker.complete(item, []))
            }
        }
        let results = try await batch.collect(10)
        #expect(results.map(\.number).sorted() == Array(0..<10))
        let dead = try #require(results.first { $0.number == 3 })
        // It may have been another one's fault at first.
        let most = max(tries, 2)
        #expect((dead.kind, dead.attempt) == (.dead, most))
        #expect(dead.payload == Self.payload(3))
        #expect(results.count { $0.kind == .success } == 9)
        #expect(handOuts.counts == Dictionary(uniqueKeysWithValues: (0..<10).map { ($0, $0 == 3 ? most : 1) }))
        let letters = try await batch.redis.reply(to: "XRANGE", batch.id.dead, "-", "+")
        #expect(letters.elements?.count == 1)
        let letter = try #require(letters.elements?.first.flatMap(StreamEntry.init))
        #expect(letter.fields == ["number": Array("3".utf8), "payload": Self.payload(3)])
        #expect(try await batch.submitter.state().failed == 1)
    }

    @Test(arguments: [1, 3]) func `an item that kills its worker takes no other item with it`(
        tries: Int
    ) async throws {
        var terms = BatchTerms.hours
        terms.tries = tries
        let batch = try await Batch(terms)
        try await batch.submit(0..<10)
        try await batch.submitter.finish(total: 10)
        var worker = try batch.worker()
        var held: [LeasedItem] = []
        while let items = try await worker.next(count: 5 - held.count) {
            held += items
            if held.contains(where: { $0.number == 3 }) {
                for item in held { try await batch.age(item) }
                worker = try batch.worker()
            } else {
                for item in held { #expect(try await worker.complete(item, [])) }
            }
            held = []
        }
        let results = try await batch.collect(10)
        #expect(results.filter { $0.kind == .dead }.map(\.number) == [3])
        #expect(results.count { $0.kind == .success } == 9)
    }

    @Test func `a worker that holds an item gets none that was handed out before`() async throws {
        let batch = try await Batch()
        let (dead, worker) = (try batch.worker(), try batch.worker())
        try await batch.submit(0..<5)
        for item in try #require(try await dead.next(count: 3)) { try await batch.age(item) }
        #expect(try await worker.next(count: 5, isIdle: false) == [])
        for number in 0..<3 {
            let items = try #require(try await worker.next(count: 5))
            #expect(items.map(\.number) == [number] && items.allSatisfy(\.isAlone))
            #expect(try await worker.next(count: 5, isIdle: false)?.isEmpty == (number < 2))
            #expect(try await worker.complete(items[0], []))
        }
    }

    @Test func `a worker whose item was taken over cannot complete, extend or release it`() async throws {
        let batch = try await Batch()
        let (slow, fast) = (try batch.worker(), try batch.worker())
        try await batch.submit(0..<1)
        let first = try #require(try await slow.next()?.first)
        #expect(try await fast.next() == [])
        try await batch.age(first)
        // Without a takeover, a lease that has run out is still the worker's.
        #expect(try await slow.extend([first]) == [])
        try await batch.age(first)
        let second = try #require(try await fast.next()?.first)
        #expect((second.number, second.attempt, second.entry) == (0, 2, first.entry))
        #expect(try await slow.extend([first]) == [first])
        #expect(try await slow.release([first]) == [first])
        #expect(try await slow.complete(first, [1]) == false)
        // A worker may take over from itself; what it was handed out before does not count either.
        try await batch.age(second)
        let third = try #require(try await fast.next()?.first)
        #expect(third.attempt == 3)
        #expect(try await fast.complete(second, [2]) == false)
        #expect(try await fast.extend([second]) == [second])
        #expect(try await fast.complete(third, [3]))
        #expect(try await fast.complete(third, [4]) == false)
        let results = try await batch.submitter.results()
        #expect(results.map(\.payload) == [[3]])
        #expect(results.map(\.attempt) == [3])
    }

    @Test func `an extended item is not taken over, and its tries do not grow`() async throws {
        let batch = try await Batch()
        let (one, two) = (try batch.worker(), try batch.worker())
        try await batch.submit(0..<3)
        let items = try #require(try await one.next(count: 3))
        for _ in 0..<5 {
            for item in items { try await batch.age(item) }
            #expect(try await one.extend(items) == [])
            #expect(try await two.next(count: 3) == [])
        }
        for item in items.dropFirst() { try await batch.age(item) }
        #expect(try await one.extend([items[1]]) == [])
        let taken = try #require(try await two.next(count: 3))
        #expect(taken.map(\.number) == [2])
        #expect(taken.map(\.attempt) == [2])
        #expect(try await one.extend(items) == [items[2]])
        for item in items { #expect(try await one.complete(item, []) == (item != items[2])) }
    }

    @Test func `an item that is given back goes to another worker at once and keeps its tries`() async throws {
        let batch = try await Batch()
        try await batch.submit(0..<1)
        for _ in 0..<5 {
            let worker = try batch.worker()
            let item = try #require(try await worker.next()?.first)
            #expect(item.attempt == 1)
            #expect(try await worker.release([item]) == [])
            #expect(try await worker.complete(item, []) == false)
        }
    }

    @Test func `a submitter that attaches goes on from the next item and gets what was not acknowledged`()
        async throws
    {
        let batch = try await Batch()
        let worker = try batch.worker()
        let handOuts = HandOuts()
        try await batch.submit(0..<30)
        for _ in 0..<20 {
            let items = try #require(try await worker.next())
            handOuts.count(items)
            for item in items { #expect(try await worker.complete(item, item.payload)) }
        }
        let reported = try await batch.submitter.results(count: 8)
        try await batch.submitter.acknowledge(upTo: try #require(reported.last).entry)
        let unreported = try await batch.submitter.results(after: try #require(reported.last).entry, count: 5)
        #expect(unreported.map(\.number) == Array(8..<13))
        batch.submitter.close()
        // A lost index is filled again.
        try await batch.redis.reply(to: "DEL", BatchID.index)
        let second = BatchSubmitter(try batch.server.configuration(), batch: batch.id)
        let state = try await second.attach()
        #expect((state.submitted, state.done, state.unacknowledged, state.options) == (30, 20, 12, [7]))
        #expect(try await second.submit((30..<50).map(Self.payload), from: state.submitted) == 20)
        try await second.finish(total: 50)
        let free = BatchWorker(try batch.server.configuration())
        while let items = try await free.next(count: 7), !items.isEmpty {
            handOuts.count(items)
            for item in items { #expect(try await free.complete(item, item.payload)) }
        }
        let rest = try await second.results()
        #expect(rest.map(\.number).sorted() == Array(8..<50))
        #expect(handOuts.counts == Dictionary(uniqueKeysWithValues: (0..<50).map { ($0, 1) }))
        #expect(try await second.attach().isComplete)
    }

    @Test func `two submitters at once submit no item twice`() async throws {
        let batch = try await Batch()
        let total = 1_000
        try await withThrowingTaskGroup { group in
            for step in [7, 11] {
                let submitter = BatchSubmitter(try batch.server.configuration(), batch: batch.id)
                group.addTask {
                    var next = try await submitter.attach().submitted
                    while next < total {
                        do {
                            let part = (next..<min(next + step, total)).map(Self.payload)
                            next += try await submitter.submit(part, from: next)
                        } catch BatchError.outOfStep(let expected, let submitted) {
                            #expect(expected == next)
                            next = submitted
                        }
                    }
                    try await submitter.finish(total: total)
                }
            }
            try await group.waitForAll()
        }
        let worker = try batch.worker()
        var items: [LeasedItem] = []
        while items.count < total { items += try #require(try await worker.next(count: 256)) }
        #expect(items.map(\.number) == Array(0..<total))
        #expect(items.map(\.payload) == (0..<total).map(Self.payload))
        #expect(try await worker.next() == [])
        await #expect(throws: BatchError.outOfStep(expected: 999, submitted: 1_000)) {
            try await batch.submitter.finish(total: 999)
        }
    }

    @Test func `an item, a result or options that are too large are refused by name`() async throws {
        let batch = try await Batch()
        let largest = [UInt8](repeating: 1, count: BatchTerms.maxBytes)
        #expect(try await batch.submitter.submit([largest], from: 0) == 1)
        await #expect(throws: BatchError.tooLarge(item: 2, bytes: 65_537)) {
            try await batch.submitter.submit([[], largest + [1], []], from: 1)
        }
        #expect(try await batch.submitter.state().submitted == 1)
        let worker = try batch.worker()
        let item = try #require(try await worker.next()?.first)
        #expect(item.payload == largest)
        await #expect(throws: BatchError.tooLarge(item: 0, bytes: 65_537)) {
            try await worker.complete(item, largest + [1])
        }
        #expect(try await worker.complete(item, largest))
        #expect(try await batch.submitter.results().map(\.payload) == [largest])
        let other = BatchSubmitter(try batch.server.configuration())
        await #expect(throws: BatchError.tooLarge(item: nil, bytes: 65_537)) {
            try await other.create(options: largest + [1])
        }
        // Large items go in several calls, and full reads stay within a connection's limit.
        var submitted = 1
        while submitted < 301 {
            let rest = Array(repeating: largest, count: 301 - submitted)
            let count = try await batch.submitter.submit(rest, from: submitted)
            #expect(count == min(64, rest.count))
            submitted += count
        }
        let items = try #require(try await worker.next(count: 1_000))
        #expect(items.count == BatchWorker.maxItems)
        for item in items { #expect(try await worker.complete(item, largest)) }
        #expect(try await batch.submitter.results(count: 1_000).count == BatchSubmitter.maxResults)
    }

    @Test(arguments: [
        ("0123456789abcdef", true), ("0123456789abcde", false), ("0123456789abcdef0", false),
        ("0123456789ABCDEF", false), ("0123456789abcde:", false), ("", false),
    ])
    func `an ID is read only as it is written`(text: String, isValid: Bool) {
        #expect(BatchID(text)?.description == (isValid ? text : nil))
    }

    @Test func `random IDs are IDs, and a stream ID has a next one`() {
        for _ in 0..<100 { #expect(BatchID(BatchID().description) != nil) }
        #expect(StreamID("5-0")?.next == StreamID("5-1"))
        #expect(StreamID("5-18446744073709551615")?.next == StreamID("6-0"))
    }
}

extension BatchQueueTests.Batch {
    /// This batch with a submitter that has another window.
    init(_ batch: Self, window: Int) {
        var submitter = batch.submitter
        submitter.window = window
        (server, self.submitter, redis) = (batch.server, submitter, batch.redis)
    }
}

extension BatchTerms {
    /// With a lease that does not expire during a test.
    static var hours: Self {
        var terms = BatchTerms()
        terms.leaseSeconds = 3600
        return terms
    }
}
