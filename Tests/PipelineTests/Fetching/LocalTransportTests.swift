import HTTPCaching
import PipelineFetching
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline
@testable import PipelineCaching

/// A program's own transport for originals that are available locally.
private final class Archive: Transport {
    let isLocal = true
    let bytes = sample("originals/night-tiny.jpg")
    /// The names of the fields of each request.
    let requests = Mutex<[[String]]>([])

    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        requests.withLock { $0.append(request.fields.map { $0.name.lowercased() }) }
        let isKnown = request.fields.first("if-none-match") == "\"1\""
        return FetchedResponse(
            to: request, status: isKnown ? 304 : 200, fields: [HeaderField("ETag", "\"1\"")],
            body: isKnown ? [] : bytes)
    }

    func shutdown() async {}
}

struct LocalTransportTests {
    @Test func `a local transport is queried for every request, and no body is stored`() async throws {
        let (archive, folder) = (Archive(), CacheFolder())
        var configuration = PipelineConfiguration()
        configuration.cacheFolder = folder.path
        configuration.transports = ["archive": archive]
        let pipeline = try ImagePipeline(configuration)
        for _ in 0..<3 {
            let request = OriginalRequest(url: "archive:1", fields: [HeaderField("X-Client", "1")])
            let response = try await pipeline.original(for: request)
            #expect(response.status == 200 && response.body == archive.bytes)
            let image = try await pipeline.image(for: "archive:1", recipe: "thumbnail:20")
            #expect(image.width == 20)
        }
        await pipeline.shutdown()
        let requests = archive.requests.withLock(\.self)
        #expect(requests.count >= 6 && requests.joined().allSatisfy { $0 == "if-none-match" }, "\(requests)")
        let store = try DiskStore(folder: folder.path)
        #expect(try store.originals().map(\.hasBody) == [false])
    }

    @Test func `only an original of a local transport is local, not a fresh one of an origin`() {
        let marks = Tiers.Marks(memory: PurgeMark(0), near: PurgeMark(0), farther: [])
        let found = record("http://a/", [1])
        let fresh = CacheFinding(record: found, verdict: .reuse(isStale: false), marks: marks, tier: .memory)
        #expect(fresh.reusable?.outcome == nil && fresh.reusable?.isLocal == false)
        let local = CacheFinding(record: found, verdict: .local, marks: marks, tier: .memory)
        #expect(local.unchanged?.isLocal == true && local.reusable == nil)
    }
}
