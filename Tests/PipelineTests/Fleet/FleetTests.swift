import TestSupport
import Testing
import Variants

@testable import Pipeline
@testable import PipelineCaching

/// Machines with caches of their own, before one Redis server.
@Suite(.enabled(if: RedisTestServer.isInstalled, "scripts/install-dependencies redis"), .timeLimit(.minutes(20)))
struct FleetTests {
    static let url = CachingBench.url

    /// A machine that has heard of the fleet. Its knowledge of purges does not expire, however slow the test is.
    static func node(
        _ redis: RedisTestServer, hasFolder: Bool = true, _ change: (inout PipelineConfiguration) -> Void = { _ in }
    ) async throws -> CachingBench {
        let folder = CacheFolder()
        let node = try CachingBench { configuration in
            configuration.fleet = try? FleetConfiguration(redis: redis.url)
            configuration.fleet?.trustPeriod = .seconds(3_600)
            if hasFolder { configuration.cacheFolder = folder.path }
            change(&configuration)
        } _: { [folder] request in
            // It lives as long as the machine.
            withExtendedLifetime(folder) {}
            if request.fields.first("if-none-match") != nil { return ScriptedResponse(304, "ETag: \"1\"") }
            return ScriptedResponse(200, "Cache-Control: max-age=600", "ETag: \"1\"", "Cache-Tag: red, x").picture()
        }
        if node.configuration.fleet != nil { await knows(node.pipeline) }
        return node
    }

    static func knows(_ pipeline: ImagePipeline, _ number: Int = 0) async {
        await waitOrRecord { (pipeline.fleetStatus?.number ?? -1) < number }
    }

    /// Why a machine has no picture stored; nil if it has.
    static func refusal(_ node: CachingBench) async -> PipelineError.Code? { await refusal(node.pipeline) }

    static func refusal(_ pipeline: ImagePipeline) async -> PipelineError.Code? {
        do {
            var request = ImageRequest(.url(url), recipe: try Recipe("thumbnail:40"))
            request.policy = .cacheOnly
            _ = try await pipeline.respond(to: request)
            return nil
        } catch { return (error as? PipelineError)?.code }
    }

    static func end(_ nodes: CachingBench...) async { for node in nodes { await node.pipeline.shutdown() } }

    typealias Order = @Sendable (ImagePipeline) async throws -> PurgeResult
    private static let orders: [(String, Order)] = [
        ("source", { try await $0.purge(.source(.url(url))) }),
        ("prefix", { try await $0.purge(PurgeSelection(prefixes: ["http://origin.test/"])) }),
        ("tag", { try await $0.purge(.tags(["red"])) }),
        ("own tag", { try await $0.purge(.tags([SourceTags.own(url)])) }),
    ]

    @Test(arguments: orders.map(\.0)) func `a purge is carried out by every machine`(_ name: String) async throws {
        let order = try #require(Self.orders.first { $0.0 == name }?.1)
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis, hasFolder: false))
        for node in [one, two] {
            _ = try await node.image()
            #expect(await Self.refusal(node) == nil)
        }
        let result = try await order(one.pipeline)
        #expect(result.unconfirmed.isEmpty && result.records == 1, "\(result)")
        await Self.knows(two.pipeline, 1)
        for node in [one, two] { #expect(await Self.refusal(node) == .notCached) }
        #expect(one.pipeline.fleetStatus?.published == 1 && one.pipeline.fleetStatus?.applied == 0)
        #expect(two.pipeline.fleetStatus?.published == 0 && two.pipeline.fleetStatus?.applied == 1)
        _ = try await two.image()
        #expect(one.count == 1 && two.count == 2)
        await Self.end(one, two)
    }

    @Test func `a request that changes a source purges it on every machine, and a soft purge makes it stale`()
        async throws
    {
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis))
        for node in [one, two] { _ = try await node.image() }
        _ = try await one.pipeline.purge(.source(.url(Self.url)), mode: .soft)
        await Self.knows(two.pipeline, 1)
        #expect(await two.pipeline.tiers.records(of: Self.url).records.map(\.response.isSoftPurged) == [true])
        one.origin.answers { _ in ScriptedResponse(204) }
        _ = try await one.get { $0.method = "POST" }
        await Self.knows(two.pipeline, 2)
        #expect(await Self.refusal(two) == .notCached)
        await Self.end(one, two)
    }

    @Test func `a machine that knows of a purged tag purges their bucket, which finds no tags`() async throws {
        let redis = try RedisTestServer()
        let bucket = PlainObjectStore.Bucket()
        func node() async throws -> CachingBench {
            try await Self.node(redis) { configuration in
                var placement = TierPlacement(ObjectTier(PlainObjectStore(bucket: bucket)))
                placement.deadline = .seconds(600)
                configuration.tiers = [placement]
            }
        }
        let (one, two) = (try await node(), try await node())
        _ = try await two.image()
        await two.pipeline.drain()
        #expect(bucket.keys.contains { $0.hasPrefix("s/") })
        #expect(try await one.pipeline.purge(.tags(["red"])).records == 0)
        await Self.knows(two.pipeline, 1)
        for node in [two, one] { #expect(await Self.refusal(node) == .notCached) }
        await Self.end(one, two)
    }

    @Test func `without the server all validate what they have, and hear of purges once it is back`() async throws {
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis))
        for node in [one, two] { _ = try await node.image() }
        redis.stop()
        await waitOrRecord {
            one.pipeline.fleetStatus?.isConnected != false || two.pipeline.fleetStatus?.isConnected != false
        }
        let result = try await one.pipeline.purge(.source(.url(Self.url)))
        #expect(result.unconfirmed == [.fleet] && result.records == 1)
        #expect(one.pipeline.fleetStatus?.waiting == 1)
        #expect(await Self.refusal(one) == .notCached)
        // It cannot know of the purge.
        #expect(await Self.refusal(two) == .notCached)
        _ = try await two.image()
        #expect(two.count == 2 && two.sent("If-None-Match") == "\"1\"")
        let back = try RedisTestServer(port: redis.port)
        await Self.knows(two.pipeline, 1)
        #expect(await Self.refusal(two) == .notCached)
        #expect(one.pipeline.fleetStatus?.waiting == 0 && two.pipeline.fleetStatus?.isConnected == true)
        await Self.end(one, two)
        back.stop()
    }

    @Test func `when purges may be lost, everything is validated once, whatever the policy`() async throws {
        let redis = try RedisTestServer()
        let one = try await Self.node(redis)
        let two = try await Self.node(redis) { $0.policy = .cacheElseLoad }
        let three = try await Self.node(redis, hasFolder: false)
        for node in [one, two, three] { _ = try await node.image() }
        _ = try await one.pipeline.purge(.name("http://other.test/"))
        for node in [one, two, three] { await Self.knows(node.pipeline, 1) }
        #expect(try HelperProgram(["redis-cli", "-p", "\(redis.port)", "FLUSHALL"]).waitForEnd() == 0)
        for _ in 0..<2 { _ = try await one.pipeline.purge(.name("http://other.test/")) }
        for node in [one, two, three] {
            await Self.knows(node.pipeline, 2)
            #expect(node.pipeline.fleetStatus?.losses == 1)
            // Memory alone has nothing that could be validated.
            if node === three { continue }
            #expect(await Self.refusal(node) == .notCached)
            _ = try await node.image()
            #expect(node.count == 2 && node.sent("If-None-Match") == "\"1\"")
            #expect(try await node.image().outcome == .memory)
            #expect(node.count == 2)
        }
        #expect(await Self.refusal(three) == .notCached)
        await Self.end(one, two, three)
    }

    @Test func `what was purged while a machine was away is not answered with when it is back`() async throws {
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis))
        _ = try await two.image()
        await two.pipeline.shutdown()
        // Publishes them like a machine, in fewer round trips.
        let script = """
            for i = 1, 2000 do local n = redis.call('INCR', KEYS[2]) \
            redis.call('XADD', KEYS[1], '*', 'number', n, 'payload', 'purge 1 hard\\nsource http://a.test/' .. n .. '\\n', \
            'node', 'a') end
            """
        for _ in 0..<50 {
            let words = [
                "redis-cli", "-p", "\(redis.port)", "EVAL", script, "2", "image-pipeline:purges",
                "image-pipeline:purges:number",
            ]
            #expect(try HelperProgram(words).waitForEnd() == 0)
        }
        _ = try await one.pipeline.purge(.source(.url(Self.url)))
        let back = try await two.another()
        let answer = try await back.respond(to: ImageRequest(.url(Self.url), recipe: try Recipe("thumbnail:40")))
        #expect(two.count == 2 && !answer.bytes.isEmpty)
        await Self.knows(back, 100_001)
        #expect(back.fleetStatus?.applied == 100_001 && back.fleetStatus?.losses == 0)
        await back.shutdown()
        await Self.end(one)
    }
}
