import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import Pipeline
@testable import PipelineCaching
@testable import PipelineFetching

/// Purges while other nodes copy from the bucket that they share.
@Suite(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers"))
struct BucketPurgeTests {
    /// A bucket, a proxy in front of it, and the caches of nodes that use both.
    private final class Bench {
        private let server: BucketServer
        let proxy: FaultyProxy
        private var folders: [CacheFolder] = []
        private var nodes: [(tiers: Tiers, base: any Transport)] = []

        static let source = "http://a.test/1.jpg"
        static let original = digest([1])
        static let entry = variant("v", of: original, [1, 2])
        static let purge = EntrySelection(
            matching: SourceSelection(prefixes: ["http://a.test/"]), mode: .variantsOnly)

        init() throws {
            server = try BucketServer("rclone", "cache")
            proxy = try FaultyProxy(server.endpoint)
        }

        func node(isProxied: Bool = false) throws -> Tiers {
            var remote = RemoteConfiguration(bucket: "cache")
            remote.store.endpoint = isProxied ? proxy.endpoint : server.endpoint
            remote.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY")
            (remote.timeout, remote.storeTimeout) = (.seconds(60), .seconds(120))
            let (transport, base) = remote.transport(FetchConfiguration())
            let folder = CacheFolder()
            var configuration = TiersConfiguration(memory: MemoryBudgets(originals: 1_000_000, variants: 1_000_000))
            configuration.folder = folder.path
            // Later than the variant was made.
            configuration.now = { 2_000 }
            configuration.tiers = [remote.placement(transport)]
            let tiers = try Tiers(configuration, readers: OwnedThreads(count: 2))
            folders.append(folder)
            nodes.append((tiers, base))
            return tiers
        }

        static func store(in tiers: Tiers) async {
            tiers.store(record(Self.source, [1]), body: .bytes([1]), storage: .all, marks: tiers.marks())
            tiers.store(Self.entry, body: [1, 2], of: Self.source, storage: .all, marks: tiers.marks())
            await tiers.drain()
        }

        static func find(in tiers: Tiers) async -> TierName? {
            await tiers.variant(Self.entry.key, of: Self.original, from: Self.source)?.1
        }

        static func isInFolder(_ tiers: Tiers) async throws -> Bool {
            await tiers.drain()
            return try tiers.folder?.store.holdsVariant(key: Self.entry.key, of: Self.original) == true
        }

        func stop() async {
            for node in nodes {
                await node.tiers.close()
                await node.base.shutdown()
            }
            proxy.stop()
        }
    }

    private static func purges(_ tiers: Tiers) throws -> LivePurges {
        try #require(tiers.links.last?.tier as? ObjectTier).purges
    }

    @Test func `a purge by prefix that arrives while the bucket is listed is not undone by that list`() async throws {
        let bench = try Bench()
        let (a, b) = (try bench.node(), try bench.node(isProxied: true))
        await Bench.store(in: a)
        let gate = bench.proxy.hold("q%2F")
        let early = Task { await Bench.find(in: b) }
        try await eventually { bench.proxy.held == 1 }
        _ = try await a.purge(Bench.purge)
        _ = try await b.purge(Bench.purge, isOwn: false)
        gate.open()
        _ = await early.value
        #expect(await Bench.find(in: b) == nil)
        #expect(try await !Bench.isInFolder(b))
        await bench.stop()
    }

    @Test func `what a node copies from the bucket is removed once a purge of it is known`() async throws {
        let bench = try Bench()
        let (a, b) = (try bench.node(), try bench.node())
        await Bench.store(in: a)
        let purges = try Self.purges(b)
        try await purges.refresh()
        _ = try await a.purge(Bench.purge)
        // Node b has just read the purges.
        #expect(await Bench.find(in: b) == .remote)
        #expect(try await Bench.isInFolder(b))
        purges.expire()
        try await purges.refresh()
        #expect(try await !Bench.isInFolder(b))
        #expect(await Bench.find(in: b) == nil)
        await bench.stop()
    }

    @Test func `what is copied from the bucket while it is purged is removed`() async throws {
        let bench = try Bench()
        let a = try bench.node(isProxied: true)
        await Bench.store(in: a)
        let gate = bench.proxy.hold("GET /cache/s/")
        let purged = Task { try await a.purge(EntrySelection(sources: [Bench.source], mode: .variantsOnly)) }
        try await eventually { bench.proxy.held == 1 }
        #expect(await Bench.find(in: a) == .remote)
        gate.open()
        #expect(try await purged.value.unconfirmed == [])
        #expect(try await !Bench.isInFolder(a))
        #expect(await Bench.find(in: a) == nil)
        await bench.stop()
    }

    @Test func `a body from the bucket brings back no record that was purged before it came`() async throws {
        let bench = try Bench()
        let (a, b) = (try bench.node(), try bench.node())
        await Bench.store(in: a)
        let found = await b.records(of: Bench.source)
        #expect(found.tier == .remote)
        var purge = Bench.purge
        purge.mode = .hard
        _ = try await a.purge(purge)
        _ = try await b.purge(purge, isOwn: false)
        // The request began before the purge.
        let record = try #require(found.records.first)
        #expect(await b.originalBody(record.digest, of: (record, found.marks))?.tier == .remote)
        await b.drain()
        #expect(await b.records(of: Bench.source).records.isEmpty)
        await bench.stop()
    }

    @Test func `a body from the bucket brings back no record that was replaced before it came`() async throws {
        let bench = try Bench()
        let (a, b) = (try bench.node(), try bench.node())
        await Bench.store(in: a)
        let found = await b.records(of: Bench.source)
        var later = record(Bench.source, [2])
        later.response.responseTime += 1
        b.store(later, body: .bytes([2]), storage: .all, marks: b.marks())
        let former = try #require(found.records.first)
        #expect(await b.originalBody(former.digest, of: (former, found.marks))?.tier == .remote)
        await b.drain()
        #expect(try b.folder?.store.records(source: Bench.source).map(\.digest) == [later.digest])
        await bench.stop()
    }

    @Test func `variants that could not be purged from the bucket are not taken from there`() async throws {
        let bench = try Bench()
        let a = try bench.node(isProxied: true)
        await Bench.store(in: a)
        bench.proxy.does(.refusal)
        let purged = try await a.purge(EntrySelection(sources: [Bench.source], mode: .variantsOnly))
        #expect(purged.unconfirmed == [.remote])
        bench.proxy.does(.none)
        #expect(await Bench.find(in: a) == nil)
        await bench.stop()
    }
}
