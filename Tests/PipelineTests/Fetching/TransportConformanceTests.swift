import Glibc
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import TransportConformance
import Variants

@testable import Pipeline
@testable import PipelineFetching

/// Originals of a program: bytes by name, with a number that grows.
final class ProgramStore: Transport, TransportBench {
    private let stored = Mutex<[[UInt8]: (bytes: [UInt8], version: Int)]>([:])
    private let count = Atomic(0)
    /// Requests so far.
    var asked: Int { count.load(ordering: .relaxed) }
    var transport: any Transport { self }

    func store(_ bytes: [UInt8], as name: String) {
        stored.withLock { $0[Array(name.utf8)] = (bytes, ($0[Array(name.utf8)]?.version ?? 0) + 1) }
    }

    func remove(_ name: String) { stored.withLock { $0[Array(name.utf8)] = nil } }

    func url(of name: String) -> SourceURL { SourceURL(scheme: "db", name: name) }

    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        count.add(1, ordering: .relaxed)
        guard let (bytes, version) = stored.withLock({ $0[Array(request.url.path.utf8)] }) else {
            return FetchedResponse(to: request, status: 404)
        }
        if let limit = request.maxBytes, bytes.count > limit {
            throw FetchError(.tooLarge, "\(request.url): \(bytes.count) bytes; the limit is \(limit)")
        }
        let fields = [HeaderField("ETag", "\"\(version)\""), HeaderField("Cache-Control", "no-cache")]
        guard request.fields.first("if-none-match") != "\"\(version)\"" else {
            return FetchedResponse(to: request, status: 304, fields: fields)
        }
        return FetchedResponse(to: request, fields: fields, body: bytes)
    }

    func shutdown() async {}
}

/// A bench with an origin on loopback.
private struct HTTPBench: TransportBench {
    let store = ProgramStore()
    let origin: LoopbackOrigin
    let transport: any Transport

    init() throws {
        origin = try LoopbackOrigin { [store] request in
            let name = SourceURL.percentDecoded(String(request.target.dropFirst()))
            let url = SourceURL(scheme: "db", name: String(decoding: name, as: UTF8.self))
            return store.reply(to: url, request["if-none-match"])
        }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        transport = RetryingTransport(CurlTransport(configuration), configuration: configuration)
    }

    func store(_ bytes: [UInt8], as name: String) { store.store(bytes, as: name) }
    func remove(_ name: String) { store.remove(name) }

    func url(of name: String) throws -> SourceURL {
        let path = name.utf8.flatMap { SourceURL.isUnreserved($0) ? [$0] : SourceURL.percentEncoded($0) }
        return try SourceURL(origin.url("/" + String(decoding: path, as: UTF8.self)))
    }
}

extension ProgramStore {
    fileprivate func reply(to url: SourceURL, _ tag: String?) -> OriginReply {
        guard let (bytes, version) = stored.withLock({ $0[Array(url.path.utf8)] }) else { return .response(404) }
        let isKnown = tag == "\"\(version)\""
        return .response(isKnown ? 304 : 200, ["ETag": "\"\(version)\""], body: isKnown ? [] : bytes)
    }
}

private struct FileBench: TransportBench {
    let folder = ScratchFolder()
    let transport: any Transport = FileTransport(byteLimit: 1 << 30, threads: OwnedThreads(count: 2))

    func store(_ bytes: [UInt8], as name: String) {
        // A new file each time, as editors make it, so that its inode tells.
        remove(name)
        folder.write(bytes, to: name)
    }

    func remove(_ name: String) { unlink(folder(name)) }
    func url(of name: String) -> SourceURL { SourceURL(scheme: "file", name: folder(name)) }
}

struct TransportConformanceTests {
    @Test(arguments: TransportConformance.checks) func `http keeps its promises`(
        _ check: TransportConformance.Check
    ) async throws {
        let bench = try HTTPBench()
        defer { bench.origin.stop() }
        #expect(await TransportConformance.violations(of: check, by: bench) == [])
        await bench.transport.shutdown()
    }

    @Test(arguments: TransportConformance.checks) func `files keep their promises`(
        _ check: TransportConformance.Check
    ) async throws {
        #expect(await TransportConformance.violations(of: check, by: FileBench()) == [])
    }

    @Test(arguments: TransportConformance.checks) func `a program's transport keeps its promises`(
        _ check: TransportConformance.Check
    ) async throws {
        #expect(await TransportConformance.violations(of: check, by: ProgramStore()) == [])
    }

    @Test func `a program's own scheme is fetched, cached, validated, explained and purged by its name`() async throws {
        let store = ProgramStore()
        store.store(sample("originals/night-tiny.jpg"), as: "users/12")
        var configuration = PipelineConfiguration()
        configuration.transports = ["db": store, "id": store, "bytes": store]
        let pipeline = try ImagePipeline(configuration)
        let recipe = try Recipe("thumbnail:20")
        let first = try await pipeline.respond(to: ImageRequest(ImageSource("db://users/12"), recipe: recipe))
        #expect(first.width == 20 && first.outcome == .rendered && first.record.source == "db:users/12")
        let again = try await pipeline.respond(to: ImageRequest(.url("DB:users/12"), recipe: recipe))
        #expect(again.outcome == .memory && again.originalOutcome == .revalidated)
        #expect(store.asked == 2)
        let explanation = try await pipeline.explain(ImageRequest(.url("db:users/12"), recipe: recipe))
        #expect(explanation.source == "db:users/12" && explanation.decision == .validate)
        store.store(sample("originals/dusk.webp"), as: "users/12")
        let changed = try await pipeline.respond(to: ImageRequest(.url("db:users/12"), recipe: recipe))
        #expect(changed.outcome == .rendered && changed.digest != first.digest)
        let purged = try await pipeline.purge(.source(.url("db://users/12")))
        #expect(purged.records > 0)
        // A scheme of an application gives no access to files.
        let refused = [
            ("db:none", PipelineError.Code.notFound), ("other:12", .invalidSource),
            ("file:/etc/passwd", .invalidSource), ("id:users/12", .invalidSource), ("bytes:users/12", .invalidSource),
        ]
        for (source, code) in refused {
            let error = await #expect(throws: PipelineError.self) {
                _ = try await pipeline.respond(to: ImageRequest(.url(source), recipe: recipe))
            }
            #expect(error?.code == code)
        }
        await pipeline.shutdown()
    }
}
