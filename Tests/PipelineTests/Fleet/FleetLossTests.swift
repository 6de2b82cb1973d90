import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import Pipeline
@testable import PipelineCaching

/// Purges that were lost, or could not be carried out or published at once.
extension FleetTests {
    @discardableResult private static func redis(_ server: RedisTestServer, _ words: String...) throws -> Int32 {
        try HelperProgram(["redis-cli", "-p", "\(server.port)"] + words).waitForEnd()
    }

    /// Removes the last purge, as a failover to a replica does that has not received it.
    private static func loseLast(_ server: RedisTestServer) throws {
        let script = """
            local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1) \
            redis.call('XDEL', KEYS[1], last[1][1]) return redis.call('DECR', KEYS[2])
            """
        #expect(try redis(server, "EVAL", script, "2", "image-pipeline:purges", "image-pipeline:purges:number") == 0)
    }

    /// The epoch of a machine's place, as its folder keeps it.
    private static func epoch(_ node: CachingBench) throws -> String? {
        let texts = try #require(node.pipeline.tiers.folder).store.texts().byName
        return texts["fleet.place"]?.split(separator: " ").last.map { String($0) }
    }

    @Test func `a machine that missed a lost purge learns of it from one that had carried it out`() async throws {
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis))
        _ = try await two.image()
        _ = try await one.pipeline.purge(.name("http://other.test/"))
        for node in [one, two] { await Self.knows(node.pipeline, 1) }
        await two.pipeline.shutdown()
        _ = try await one.pipeline.purge(.source(.url(Self.url)))
        await Self.knows(one.pipeline, 2)
        let epoch = try Self.epoch(one)
        try Self.loseLast(redis)
        // Takes the number of the lost one.
        _ = try await one.pipeline.purge(.name("http://third.test/"))
        try await waitWhile { try Self.epoch(one) == epoch }
        let back = try await two.another()
        await Self.knows(back, 2)
        #expect(await Self.refusal(back) == .notCached)
        #expect(back.fleetStatus?.losses == 1)
        // One loss, one validation.
        _ = try await back.respond(to: ImageRequest(.url(Self.url), recipe: try Recipe("thumbnail:40")))
        #expect(await Self.refusal(back) == nil)
        #expect(one.pipeline.fleetStatus?.losses == 1)
        await back.shutdown()
        await Self.end(one)
    }

    @Test func `a machine that knows of no purge yet notices that the server was emptied`() async throws {
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis))
        _ = try await two.image()
        await two.pipeline.shutdown()
        _ = try await one.pipeline.purge(.source(.url(Self.url)))
        await Self.knows(one.pipeline, 1)
        #expect(try Self.redis(redis, "FLUSHALL") == 0)
        let back = try await two.another()
        await Self.knows(back)
        #expect(await Self.refusal(back) == .notCached)
        await back.shutdown()
        await Self.end(one)
    }

    @Test func `an index that loses its last transactions loses the place with them`() async throws {
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis))
        _ = try await two.image()
        await two.pipeline.shutdown()
        let folder = try #require(two.configuration.cacheFolder)
        let save = "mkdir \(folder)/aside && cp \(folder)/cache.sqlite* \(folder)/aside"
        #expect(try HelperProgram(["sh", "-c", save]).waitForEnd() == 0)
        _ = try await one.pipeline.purge(.source(.url(Self.url)))
        let first = try await two.another()
        await Self.knows(first, 1)
        await first.shutdown()
        let restore = "rm \(folder)/cache.sqlite* && mv \(folder)/aside/* \(folder)/"
        #expect(try HelperProgram(["sh", "-c", restore]).waitForEnd() == 0)
        let second = try await two.another()
        await Self.knows(second, 1)
        #expect(await Self.refusal(second) == .notCached)
        #expect(second.fleetStatus?.losses == 0 && second.fleetStatus?.applied == 1)
        await second.shutdown()
        await Self.end(one)
    }

    @Test func `a folder with records but without a place may have missed purges`() async throws {
        let redis = try RedisTestServer()
        let alone = try await Self.node(redis) { $0.fleet = nil }
        _ = try await alone.image()
        await alone.pipeline.shutdown()
        var configuration = alone.configuration
        configuration.fleet = try FleetConfiguration(redis: redis.url)
        configuration.fleet?.trustPeriod = .seconds(3_600)
        let joined = try ImagePipeline(configuration)
        await Self.knows(joined)
        #expect(await Self.refusal(joined) == .notCached)
        await joined.shutdown()
    }

    @Test func `a folder that an earlier version left goes on from the place in its file`() async throws {
        let redis = try RedisTestServer()
        let one = try await Self.node(redis)
        _ = try await one.pipeline.purge(.name("http://other.test/"))
        let two = try await Self.node(redis) { $0.fleet = nil }
        _ = try await two.image()
        await two.pipeline.shutdown()
        let folder = try #require(two.configuration.cacheFolder)
        let lines = "purge-place 1\n0 0-0\n"
        let text = lines + sha256Hex(lines) + "\n"
        #expect(try HelperProgram(["sh", "-c", "printf '\(text)' > \(folder)/cache.purge-place"]).waitForEnd() == 0)
        var configuration = two.configuration
        configuration.fleet = one.configuration.fleet
        for heard in [1, 0] {
            let joined = try ImagePipeline(configuration)
            await Self.knows(joined, 1)
            #expect(joined.fleetStatus?.applied == heard && joined.fleetStatus?.losses == 0)
            #expect(await Self.refusal(joined) == nil)
            await joined.shutdown()
        }
        await Self.end(one)
    }

    @Test func `a purge that is heard while the folder fails is carried out when it can be, without the server`()
        async throws
    {
        let redis = try RedisTestServer()
        let one = try await Self.node(redis)
        let two = try await Self.node(redis) { $0.disk.busyMilliseconds = 20 }
        _ = try await two.image()
        await two.pipeline.drain()
        let folder = try #require(two.configuration.cacheFolder)
        let other = try SQLiteConnection(path: folder + "/cache.sqlite", busyMilliseconds: 2_000)
        try other.execute("BEGIN IMMEDIATE")
        _ = try await one.pipeline.purge(.source(.url(Self.url)))
        await waitOrRecord { two.pipeline.fleetStatus?.applied == 0 }
        try await eventually { await Self.refusal(two) == .notCached }
        redis.stop()
        await waitOrRecord { one.pipeline.fleetStatus?.isConnected != false }
        try other.execute("COMMIT")
        other.close()
        let store = try #require(two.pipeline.tiers.folder?.store)
        await waitOrRecord { (try? store.records(source: Self.url).isEmpty) != true }
        await Self.end(one, two)
    }

    @Test func `a purge of this machine that its folder refused is carried out once the folder works`() async throws {
        let redis = try RedisTestServer()
        let one = try await Self.node(redis) { $0.disk.busyMilliseconds = 20 }
        _ = try await one.image()
        await one.pipeline.drain()
        let folder = try #require(one.configuration.cacheFolder)
        let other = try SQLiteConnection(path: folder + "/cache.sqlite", busyMilliseconds: 2_000)
        try other.execute("BEGIN IMMEDIATE")
        await #expect(throws: PipelineError.self) { try await one.pipeline.purge(.source(.url(Self.url))) }
        try other.execute("COMMIT")
        other.close()
        await Self.knows(one.pipeline, 1)
        #expect(await Self.refusal(one) == .notCached)
        await Self.end(one)
    }

    @Test func `purges that wait for the server survive their process`() async throws {
        let redis = try RedisTestServer()
        let (one, two) = (try await Self.node(redis), try await Self.node(redis))
        _ = try await two.image()
        redis.stop()
        await waitOrRecord { one.pipeline.fleetStatus?.isConnected != false }
        #expect(try await one.pipeline.purge(.source(.url(Self.url))).unconfirmed == [.fleet])
        await one.pipeline.shutdown()
        let server = try RedisTestServer(port: redis.port)
        let back = try await one.another()
        await Self.knows(back)
        try #require(back.fleetStatus?.waiting == 1 || back.fleetStatus?.published == 1)
        await Self.knows(two.pipeline, 1)
        // The server is empty when it returns, which is a loss unless the purge is read first.
        let status = try #require(two.pipeline.fleetStatus)
        #expect(status.applied == 1 || status.losses == 1)
        await back.shutdown()
        let third = try await one.another()
        await Self.knows(third, 1)
        #expect(third.fleetStatus?.waiting == 0 && third.fleetStatus?.published == 0)
        await third.shutdown()
        await Self.end(two)
        server.stop()
    }
}
