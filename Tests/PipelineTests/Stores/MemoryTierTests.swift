@_spi(Benchmarks) @testable import PipelineCaching
import Glibc
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// The memory tiers of a pipeline: what they may take, what they give back, and what they are asked for.
struct MemoryTierTests {
    private static let fresh: KeyValuePairs<String, String> = [
        "Content-Type": "image/jpeg", "Cache-Control": "max-age=600", "ETag": "\"1\"",
    ]

    @Test func `a request that finds the record of an original finds its body`() async throws {
        let tiers = try Tiers(
            TiersConfiguration(memory: MemoryBudgets(originals: 64_000_000, variants: 0)),
            readers: OwnedThreads(count: 1))
        for number in 0..<3_000 {
            let body = Array("\(number)".utf8)
            let record = record("http://a/\(number)", body)
            let storing = Task.detached {
                tiers.store(record, body: .bytes(body), storage: .all, marks: tiers.marks())
            }
            var looks = 0
            while tiers.recordsInMemory(of: record.source) == nil {
                looks += 1
                // Mostly not: the two have to run at once.
                if looks.isMultiple(of: 1_000) { await Task.yield() }
            }
            let found = await tiers.originalBody(record.digest)
            #expect(found?.tier == .memory, "\(number)")
            await storing.value
        }
    }

    @Test func `a purge by name and by prefix removes both from memory`() async throws {
        let tiers = try Tiers(
            TiersConfiguration(memory: MemoryBudgets(originals: 64_000_000, variants: 0)),
            readers: OwnedThreads(count: 1))
        let names = ["http://a/1", "http://b/1", "http://c/1"]
        for name in names {
            let body = Array(name.utf8)
            tiers.store(record(name, body), body: .bytes(body), storage: .all, marks: tiers.marks())
        }
        _ = try await tiers.purge(EntrySelection(sources: ["http://a/1"], prefixes: ["http://b/"]))
        #expect(names.map { tiers.recordsInMemory(of: $0) == nil } == [true, true, false])
    }

    @Test func `the smallest limit of the cgroups counts, of either version`() {
        let files = [
            "/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "3000000\n",
            "/sys/fs/cgroup/memory.max": "9000000\n", "/sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2000000\n",
        ]
        #expect(MachineMemory.limit(cgroups: "0::/a/b\n") { files[$0] } == 3_000_000)
        #expect(MachineMemory.limit(cgroups: "5:cpu:/y\n4:cpuset,memory:/x\n0::/\n") { files[$0] } == 2_000_000)
        #expect(MachineMemory.limit(cgroups: "0::/c\n") { files[$0] } == 9_000_000)
        #expect(MachineMemory.limit(cgroups: "1:cpu:/a\nnonsense") { files[$0] } == nil)
    }

    @Test func `budgets are a tenth of the memory there is, and shares of it are split`() {
        let all = MemoryBudgets.share(1)
        let budgets = PipelineConfiguration().memory
        #expect(abs(all.originals + all.variants - MachineMemory.bytes) <= 2 && all.pixels == 0)
        #expect(abs(budgets.originals - all.originals / 10) <= 1 && abs(budgets.variants - all.variants / 10) <= 1)
        #expect(MemoryBudgets.share(-1).variants == 0)
    }

    @Test func `reducing evicts what is worth least and leaves the budget`() {
        let store = MemoryStore<Int>(budget: 1_000_000)
        for key in 0..<400 {
            store.insert(key, body: [UInt8](repeating: 1, count: 1_000), for: "\(key)", cost: key < 200 ? 1 : 100)
        }
        let before = store.counters
        let freed = store.reduce(to: 0.5)
        let after = store.counters
        #expect(after.bytes <= before.bytes / 2 && freed == before.bytes - after.bytes && after.budget == 1_000_000)
        #expect((0..<200).allSatisfy { store.peek("\($0)") == nil })
        #expect(store.insert(1, body: [UInt8](repeating: 1, count: 100_000), for: "large"))
        store.reduce(to: 0)
        #expect(store.counters.entries == 0 && store.counters.bytes == 0)
    }

    @Test(arguments: [1_000_000, 4_000_000])
    func `records of evicted bodies do not displace bodies, and hits are those of the policy`(budget: Int) throws {
        let tier = MemoryTier(.init(originals: budget, variants: 0))
        var policy = EvictionReplay(capacity: budget)
        var numbers = Numbers(state: 9)
        let objects = (0..<3_000).map { number in
            record("http://a/\(number)", bytes(1_000 + Int(numbers.next() % 30_000), seed: number))
        }
        var (hits, policyHits, requests) = (0, 0, 0)
        for _ in 0..<12_000 {
            // A few are asked for often, as in request logs.
            let at = Int(Double(objects.count) * pow(Double(numbers.next() % 10_000) / 10_000, 3))
            var object = objects[at]
            object.fetchMilliseconds = 30 + Double(object.length) / 5_000
            requests += 1
            // Like a request for the original: its record, then its body.
            let hasRecord = tier.foundRecords(of: object.source) != nil
            let hasBody = tier.originals.entry(for: object.digest) != nil
            if hasRecord && hasBody { hits += 1 }
            if !hasBody || !hasRecord {
                _ = tier.storeOriginal(
                    object, content: .bytes([UInt8](repeating: 1, count: object.length)),
                    generation: tier.purges.mark)
            }
            let charge = object.length + 64 + MemoryStore<Int>.entryOverhead
            if policy.request(UInt64(at), size: charge, cost: object.fetchMilliseconds) { policyHits += 1 }
        }
        let counters = tier.originals.counters
        let bodies = counters.bytes - counters.entries * (64 + MemoryStore<Int>.entryOverhead)
        #expect(bodies >= budget * 8 / 10 && counters.bytes <= budget)
        #expect(tier.records.counters.bytes <= budget / 10)
        #expect(abs(hits - policyHits) * 1_000 <= requests * 15, "\(hits) \(policyHits) \(requests)")
    }

    @Test func `a record stays while its body stays, and both are purged`() throws {
        let tier = MemoryTier(.init(originals: 1_000_000, variants: 0, records: 4_000))
        let kept = bytes(500, seed: 1)
        #expect(tier.storeOriginal(record("http://kept/", kept), content: .bytes(kept), generation: PurgeMark(0)))
        for number in 0..<20 {
            _ = tier.storeOriginal(record("http://\(number)/", [1]), content: nil, generation: PurgeMark(0))
        }
        #expect(tier.records.peek("http://kept/") == nil && tier.records(source: "http://kept/").count == 1)
        var newer = record("http://kept/", kept)
        newer.response.responseTime += 10
        #expect(tier.freshen(newer))
        for number in 0..<20 {
            _ = tier.storeOriginal(record("http://\(number)/", [1]), content: nil, generation: PurgeMark(0))
        }
        #expect(tier.records(source: "http://kept/") == [newer])
        #expect(tier.purge(source: "http://kept/", digests: []).originals == 1)
        #expect(tier.records(source: "http://kept/") == [] && !tier.holdsOriginal(digest: digest(kept)))
    }

    @Test func `what is past its freshness is validated before memory answers`() async throws {
        let later = Atomic<Int>(0)
        try await withPipeline {
            $0.now = { SystemClock.unix.seconds + Double(later.load(ordering: .relaxed)) }
        } handler: { request in
            request["if-none-match"] == nil ? picture("night-tiny.jpg", Self.fresh) : .response(304, Self.fresh)
        } _: { bench, pipeline in
            let request = try bench.request()
            _ = try await pipeline.respond(to: request)
            #expect(try await pipeline.respond(to: request).originalOutcome == .none)
            later.store(601, ordering: .relaxed)
            let late = try await pipeline.respond(to: request)
            #expect(late.outcome == .memory && late.originalOutcome == .revalidated && !late.isStale)
            #expect(bench.origin.requests.count == 2 && bench.renderer.renders == 1)
        }
    }

    @Test func `what came from disk is in memory the next time`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", Self.fresh)
        } _: { bench, pipeline in
            let request = try bench.request()
            let original = try bench.request("/a.jpg", nil)
            _ = try await pipeline.respond(to: request)
            await pipeline.drain()
            let other = try bench.pipeline()
            for outcome in [ImageResponse.Outcome.disk, .memory] {
                #expect(try await other.respond(to: request).outcome == outcome)
                #expect(try await other.respond(to: original).outcome == outcome)
            }
            other.tiers.yieldMemory()
            #expect(other.memoryStatistics.variants.entries == 1)
            other.tiers.yieldMemory(least: 1)
            #expect(other.memoryStatistics.variants.entries == 0)
            #expect(try await other.respond(to: request).outcome == .disk)
            #expect(other.reduceMemory() > 0 && other.memoryStatistics.variants.entries == 0)
            #expect(try await other.respond(to: request).outcome == .disk)
            await other.shutdown()
        }
    }

    @Test func `pixels are decoded once where they may be kept, and a purge takes them`() async throws {
        for budget in [0, 1 << 20] {
            try await withPipeline {
                $0.memory.pixels = budget
            } handler: { request in
                picture(
                    "night-tiny.jpg",
                    request.path == "/private.jpg" ? ["Cache-Control": "no-store"] : Self.fresh)
            } _: { bench, pipeline in
                let request = try bench.request()
                let first = try await pipeline.pixels(for: request)
                #expect(try await pipeline.pixels(for: request) == first && first.bytesPerRow == first.width * 4)
                let counters = pipeline.memoryStatistics.pixels
                #expect(counters.entries == (budget > 0 ? 1 : 0) && counters.hits == (budget > 0 ? 1 : 0))
                let size = first.bytesPerRow * first.height
                if budget > 0 { #expect(counters.bytes >= size && counters.bytes < size + 1_000) }
                _ = try await pipeline.purge(.source(request.source))
                #expect(pipeline.memoryStatistics.pixels.entries == 0)
                _ = try await pipeline.pixels(for: bench.request("/private.jpg"))
                #expect(pipeline.memoryStatistics.pixels.entries == 0)
            }
        }
    }

    @Test func `urgent data is pressure, told once a while, and the watch ends when it is stopped`() async throws {
        let pair = try #require(UrgentPair())
        let (told, tells) = AsyncStream<Void>.makeStream()
        let pressure = try #require(MemoryPressure(pair.watched) { tells.yield() })
        pair.send()
        for await _ in told { break }
        pressure.stop()
        try await waitWhile { !pair.isClosed }
        pair.end()
    }

    @Test func `where the kernel takes no trigger nothing is watched`() {
        #expect(MemoryPressure.opened(["/proc/pressure/none", "/proc/self/status"]) == -1)
        #expect(MemoryPressure(-1) {} == nil)
    }
}

/// Two connected TCP sockets. POLLPRI reports urgent data on them, as it reports pressure.
private struct UrgentPair {
    /// To be closed by whoever watches.
    let watched: Int32
    private let other: Int32

    init?() {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let isConnected = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, $0, &length) == 0 && connect(client, $0, length) == 0
            }
        }
        guard isConnected else { return nil }
        other = client
        watched = accept(listener, nil, nil)
        // A program that another test starts would keep it open.
        _ = fcntl(watched, F_SETFD, FD_CLOEXEC)
    }

    func send() {
        var byte: UInt8 = 1
        _ = Glibc.send(other, &byte, 1, Int32(MSG_OOB))
    }

    /// Whether the watched end is closed.
    var isClosed: Bool {
        var byte: UInt8 = 0
        return recv(other, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 || errno != EAGAIN
    }

    func end() { close(other) }
}
