import CacheTierConformance
import Glibc
import HTTPCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline
@testable import PipelineCaching
@testable import PipelineFetching

/// The bucket behind the caches on real servers, with and without something wrong in between.
@Suite(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers"))
struct BucketTests {
    static func remote(_ endpoint: String, prefix: String = "") -> RemoteConfiguration {
        var remote = RemoteConfiguration(bucket: "cache")
        remote.prefix = prefix
        remote.store.endpoint = endpoint
        remote.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY")
        // These servers share the machine with the tests.
        (remote.timeout, remote.storeTimeout) = (.seconds(60), .seconds(120))
        return remote
    }

    private static func with<Value>(
        _ remote: RemoteConfiguration, _ body: (ObjectTier) async throws -> Value
    ) async throws -> Value {
        let (transport, base) = remote.transport(FetchConfiguration())
        let tier = try #require(remote.placement(transport).tier as? ObjectTier)
        let result = await Result { try await body(tier) }
        await base.shutdown()
        return try result.get()
    }

    @Test(arguments: ["moto", "rclone"])
    func `a bucket fulfills the contract of a tier`(_ name: String) async throws {
        let server = try BucketServer(name, "cache")
        defer { server.stop() }
        for (number, check) in CacheTierConformance.checks.enumerated() {
            // rclone writes into the file that others read at the time: what they get is refused as damaged.
            if name == "rclone", "\(check)".contains("many may read and write at once") { continue }
            try await Self.with(Self.remote(server.endpoint, prefix: "check/\(number)")) { tier in
                let violations = await CacheTierConformance.violations(of: check, by: tier)
                #expect(violations == [])
            }
        }
    }

    @Test(arguments: ["moto", "rclone"])
    func `two clusters in one bucket see nothing of each other`(_ name: String) async throws {
        let server = try BucketServer(name, "cache")
        defer { server.stop() }
        let original = record("http://a/", [1])
        try await Self.with(Self.remote(server.endpoint, prefix: "one")) { one in
            try await Self.with(Self.remote(server.endpoint, prefix: "one-more/")) { two in
                for tier in [one, two] {
                    let change = EntryChange.Kind.original(original, body: .bytes([1]))
                    try await tier.store([EntryChange(change, mark: tier.mark)])
                }
                _ = try await one.purge(EntrySelection(sources: ["http://a/"]))
                _ = try await one.purge(EntrySelection(matching: SourceSelection(prefixes: ["http://"])))
                let gone = try await one.find(.records(source: "http://a/"), .description)
                let left = try await two.find(.records(source: "http://a/"), .description)
                let body = try await two.find(.original(original.digest), .body)
                #expect(gone == nil && left != nil && body != nil)
            }
        }
    }

    @Test func `a cold get takes three round trips at most, one that the bucket answers two`() async throws {
        let bucket = PlainObjectStore.Bucket()
        let bench = try PipelineBench { _ in picture("night-tiny.jpg", ["Cache-Control": "max-age=600"]) }
        defer { bench.origin.stop() }
        var trips: [Int] = []
        for (folder, outcome) in [("one", ImageResponse.Outcome.rendered), ("two", .remote), ("two", .disk)] {
            let pipeline = try bench.pipeline {
                $0.cacheFolder = bench.cache.path + folder
                var placement = TierPlacement(ObjectTier(PlainObjectStore(bucket: bucket)))
                placement.deadline = .seconds(60)
                $0.tiers = [placement]
            }
            // Known from then on for ten seconds.
            _ = try await (pipeline.tiers.links.last?.tier as? ObjectTier)?.purges.refresh()
            // One for each look-up: what one asks for, it asks for at once (see `ObjectTierTests`).
            func lookups() -> Int {
                let counters = pipeline.tiers.tierCounters.last
                return [counters?.records, counters?.originals, counters?.variants].compactMap(\.self)
                    .reduce(0) { $0 + $1.hits + $1.misses }
            }
            let response = try await pipeline.respond(to: bench.request())
            trips.append(lookups())
            #expect(response.outcome == outcome)
            let again = try await pipeline.respond(to: bench.request())
            #expect(again.outcome == .memory && again.bytes == response.bytes)
            await pipeline.shutdown()
        }
        #expect(trips[0] <= 3 && trips[1] == 2 && trips[2] == 0, "\(trips)")
        #expect(bench.renderer.renders == 1 && bench.origin.requests.count == 1)
    }

    @Test(arguments: ["moto", "rclone"])
    func `a node whose disk is deleted renders nothing that the bucket holds`(_ name: String) async throws {
        let server = try BucketServer(name, "cache")
        defer { server.stop() }
        let bench = try PipelineBench { request in
            picture(
                request.path.hasSuffix("b") ? "meadow-small.jpg" : "night-tiny.jpg", ["Cache-Control": "max-age=600"])
        }
        defer { bench.origin.stop() }
        let recipes = ["thumbnail:40", "thumbnail:30,webp", "scaled:0.5"]
        var made: [[UInt8]] = []
        for round in 0..<2 {
            let pipeline = try bench.pipeline {
                $0.cacheFolder = bench.cache.path + "\(round)"
                $0.remote = Self.remote(server.endpoint)
            }
            for path in ["/a", "/b"] {
                for recipe in recipes {
                    let response = try await pipeline.respond(to: bench.request(path, recipe))
                    #expect(response.outcome == (round == 0 ? .rendered : .remote))
                    if round == 0 { made.append(response.bytes) } else { #expect(made.removeFirst() == response.bytes) }
                }
            }
            if round == 1 {
                // The original comes from there, too.
                let response = try await pipeline.respond(to: bench.request("/a", "thumbnail:20"))
                #expect(response.outcome == .rendered && response.originalOutcome == .remote)
            }
            await pipeline.shutdown()
        }
        #expect(bench.renderer.renders == 7 && bench.origin.requests.count == 2)
    }

    @Test func `of 10,000 variants none is wrong in a bucket of which every third call fails`() async throws {
        let bucket = PlainObjectStore.Bucket()
        let calls = Atomic(0)
        bucket.faults { key, own in
            calls.add(1, ordering: .relaxed).newValue % 3 == 0
                ? .failure(StoreError(.unavailable, "made to fail")) : .success(own)
        }
        func tiers() throws -> Tiers {
            var configuration = TiersConfiguration(memory: MemoryBudgets(originals: 0, variants: 0))
            var placement = TierPlacement(ObjectTier(PlainObjectStore(bucket: bucket)))
            placement.deadline = .seconds(60)
            // Every call must be made.
            placement.breaker.failures = .max
            configuration.tiers = [placement]
            return try Tiers(configuration, readers: OwnedThreads(count: 1))
        }
        func entry(_ number: Int) -> (VariantEntry, [UInt8]) {
            let body = bytes(20 + number % 50, seed: number)
            return (variant("\(number)", of: digest([UInt8(number % 100)]), body), body)
        }
        let writer = try tiers()
        for number in 0..<10_000 {
            let (entry, body) = entry(number)
            writer.store(entry, body: body, of: "http://a/\(number % 100)", storage: .all, marks: writer.marks())
        }
        await writer.close()
        let reader = try tiers()
        var found = 0
        for number in 0..<10_000 {
            let (entry, body) = entry(number)
            guard let (stored, tier) = await reader.variant(entry.key, of: entry.originalDigest) else { continue }
            #expect(stored.entry == entry && stored.body == body && tier == .remote)
            found += 1
        }
        await reader.close()
        let (failed, asked) = (reader.tierCounters[0].failures, reader.tierCounters[0].variants)
        #expect(found > 1_000 && asked.hits == found && asked.misses > 0 && failed > 1_000)
        // A call that failed is no miss.
        #expect(asked.misses + failed == 10_000 - found)
        #expect(writer.tierCounters[0].failures > 1_000 && writer.tierCounters[0].dropped == 0)
        // All stored entries are there, once the bucket works.
        bucket.works()
        let stored = bucket.keys.count { $0.hasPrefix("v/") }
        let last = try tiers()
        var left = 0
        for number in 0..<10_000
        where await last.variant(entry(number).0.key, of: entry(number).0.originalDigest) != nil {
            left += 1
        }
        await last.close()
        #expect(left == stored && left >= found)
    }

    @Test(arguments: [FaultyProxy.Fault.silence, .refusal, .cut, .flip, .stale, .busy, .expired], [1, 3])
    func `whatever the bucket does wrong, each answer is the right picture`(
        _ fault: FaultyProxy.Fault, every interval: Int
    ) async throws {
        let server = try BucketServer("rclone", "cache")
        defer { server.stop() }
        let proxy = try FaultyProxy(server.endpoint)
        defer { proxy.stop() }
        // The picture of a path depends on the round, so that an old one is a wrong one.
        let round = Atomic(0)
        let bench = try PipelineBench { request in
            let isSmall = (round.load(ordering: .relaxed) + request.path.utf8.count) % 2 == 0
            return picture(isSmall ? "meadow-small.jpg" : "night-tiny.jpg", ["Cache-Control": "max-age=600"])
        }
        defer { bench.origin.stop() }
        func pipeline(_ name: String) throws -> ImagePipeline {
            try bench.pipeline {
                $0.cacheFolder = bench.cache.path + name
                $0.remote = Self.remote(proxy.endpoint)
                if fault == .silence {
                    $0.remote?.timeout = .milliseconds(200)
                    $0.remote?.storeTimeout = .milliseconds(500)
                }
            }
        }
        var right: [[String: [UInt8]]] = []
        for number in 0..<2 {
            round.store(number, ordering: .relaxed)
            var bytes: [String: [UInt8]] = [:]
            for path in ["/a", "/bb"] {
                let alone = try bench.pipeline { $0.cacheFolder = nil }
                bytes[path] = try await alone.respond(to: bench.request(path)).bytes
                await alone.shutdown()
            }
            right.append(bytes)
        }
        #expect(right[0]["/a"] != right[1]["/a"])
        for (step, number) in [0, 0, 1, 1].enumerated() {
            round.store(number, ordering: .relaxed)
            proxy.does(step == 0 ? .none : fault, every: interval)
            let node = try pipeline("\(fault)\(interval)\(step)")
            for path in ["/a", "/bb"] {
                // The changed source is purged. Until the bucket knows of the purge, this node distrusts it.
                if step == 2 { _ = try await node.purge(.source(.url(bench.origin.url(path)))) }
                for _ in 0..<2 {
                    let bytes = try await node.respond(to: bench.request(path)).bytes
                    // The bucket may not know of the purge yet, and a new node learns of it only there.
                    #expect(bytes == right[number][path] || (step == 3 && bytes == right[0][path]))
                }
            }
            await node.shutdown()
        }
        #expect(proxy.faults > 0)
    }
}
