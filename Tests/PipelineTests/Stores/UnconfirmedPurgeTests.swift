import TestSupport
import Testing
import Variants

@testable import Pipeline
@testable import PipelineCaching

/// Purges while the bucket behind the folder is away.
@Suite struct UnconfirmedPurgeTests {
    private let bucket = PlainObjectStore.Bucket()

    /// A tier of a new process.
    private func placement() -> TierPlacement {
        var placement = TierPlacement(ObjectTier(PlainObjectStore(bucket: bucket)))
        placement.deadline = .seconds(600)
        placement.storeDeadline = .seconds(600)
        return placement
    }

    @Test(arguments: [true, false]) func `a purge that the bucket did not confirm is repeated`(isAfterRestart: Bool)
        async throws
    {
        let folder = CacheFolder()
        let bench = try CachingBench { configuration in
            configuration.cacheFolder = folder.path
            configuration.tiers = [placement()]
        } _: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=600", "ETag: \"1\"").picture()
        }
        _ = try await bench.image()
        await bench.pipeline.drain()
        #expect(bucket.keys.contains { $0.hasPrefix("s/") })
        bucket.faults { _, _ in .failure(StoreError(.io, "the bucket is away")) }
        let result = try await bench.pipeline.purge(.source(.url(CachingBench.url)))
        #expect(result.unconfirmed.count == 1 && result.records == 1)
        if isAfterRestart { await bench.pipeline.shutdown() }
        bucket.works()
        var configuration = bench.configuration
        configuration.tiers = [placement()]
        let pipeline = isAfterRestart ? try ImagePipeline(configuration) : bench.pipeline
        await waitOrRecord { bucket.keys.contains { $0.hasPrefix("s/") || $0.hasPrefix("v/") } }
        #expect(await FleetTests.refusal(pipeline) == .notCached)
        // Once it is confirmed it is not repeated.
        let store = try #require(pipeline.tiers.folder?.store)
        try await waitWhile { try !store.texts().byName.isEmpty }
        await pipeline.shutdown()
    }
}
