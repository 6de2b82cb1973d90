import Glibc
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import TransportConformance
import Variants

@testable import Pipeline
@testable import PipelineFetching

/// A program's own originals, in memory or in files.
private final class Photos: OriginalProvider, TransportBench {
    struct Trouble: Error, Equatable { let code: Int }

    private struct State {
        var bytes: [[UInt8]: [UInt8]] = [:]
        var versions: [[UInt8]: Int] = [:]
        var asked: [String?] = []
        var trouble: Trouble?
    }

    let folder: ScratchFolder?
    let maxAge: Duration?
    let hasVersions: Bool
    private let state = Mutex(State())
    private let door: Door?

    /// - Parameter door: what each request waits at.
    init(inFiles: Bool = false, maxAge: Duration? = nil, hasVersions: Bool = true, door: Door? = nil) {
        folder = inFiles ? ScratchFolder() : nil
        (self.maxAge, self.hasVersions, self.door) = (maxAge, hasVersions, door)
    }

    /// The versions it was given, one for each request.
    var asked: [String?] { state.withLock { $0.asked } }

    func fails(with trouble: Trouble?) { state.withLock { $0.trouble = trouble } }

    func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
        state.withLock { $0.asked.append(version) }
        if let door {
            await door.pass()
            try Task.checkCancellation()
        }
        let (bytes, number, trouble) = state.withLock {
            ($0.bytes[Array(path.utf8)], $0.versions[Array(path.utf8)] ?? 0, $0.trouble)
        }
        if let trouble { throw trouble }
        guard let bytes else { return .missing }
        // Characters that an entity tag must not contain.
        let now = "\"\(number)\" %2F é\n"
        if hasVersions, version == now { return .unchanged }
        let told = hasVersions ? now : nil
        guard let folder else { return .bytes(bytes, version: told, maxAge: maxAge) }
        return .file("\(folder.path)/\(sha256Hex(Array(path.utf8)))", version: told, maxAge: maxAge)
    }

    var transport: any Transport {
        ProviderTransport(self, FetchConfiguration(), threads: OwnedThreads(count: 2))
    }

    func store(_ bytes: [UInt8], as name: String) {
        state.withLock { state in
            state.bytes[Array(name.utf8)] = bytes
            state.versions[Array(name.utf8), default: 0] += 1
        }
        folder?.write(bytes, to: sha256Hex(Array(name.utf8)))
    }

    func remove(_ name: String) { state.withLock { $0.bytes[Array(name.utf8)] = nil } }
    func url(of name: String) -> SourceURL { SourceURL(scheme: "photos", name: name) }
}

@Suite(.timeLimit(.minutes(10))) struct OriginalProviderTests {
    private static func with(
        _ photos: Photos, _ configure: (inout PipelineConfiguration) -> Void = { _ in },
        _ body: (ImagePipeline) async throws -> Void
    ) async throws {
        let folder = CacheFolder()
        var configuration = PipelineConfiguration()
        configuration.cacheFolder = folder.path
        configuration.providers = ["photos": photos, "file": photos, "bytes": photos]
        configure(&configuration)
        let pipeline = try ImagePipeline(configuration)
        do {
            try await body(pipeline)
        } catch {
            await pipeline.shutdown()
            throw error
        }
        await pipeline.shutdown()
    }

    private static func failure(_ work: () async throws(PipelineError) -> ImageResponse) async -> PipelineError? {
        do throws(PipelineError) {
            _ = try await work()
            return nil
        } catch { return error }
    }

    @Test(arguments: TransportConformance.checks, [false, true]) func `a provider keeps the promises of a transport`(
        _ check: TransportConformance.Check, inFiles: Bool
    ) async throws {
        #expect(await TransportConformance.violations(of: check, by: Photos(inFiles: inFiles)) == [])
    }

    @Test(arguments: [false, true]) func `originals have names, are stored, and are validated by their version`(
        inFiles: Bool
    ) async throws {
        let photos = Photos(inFiles: inFiles)
        photos.store(sample("originals/night-tiny.jpg"), as: "42")
        try await Self.with(photos) { pipeline in
            let first = try await pipeline.image(for: "photos:42", recipe: "thumbnail:20")
            #expect(first.width == 20 && first.outcome == .rendered && first.originalOutcome == .network)
            #expect(first.record.source == "photos:42")
            let again = try await pipeline.image(for: "photos:42", recipe: "thumbnail:20")
            #expect(again.outcome == .memory && again.originalOutcome == .revalidated && again.digest == first.digest)
            // The original is in the cache.
            let other = try await pipeline.image(for: "photos:42", recipe: "thumbnail:10")
            #expect(other.outcome == .rendered && other.originalOutcome == .revalidated)
            #expect(photos.asked == [nil, "\"1\" %2F é\n", "\"1\" %2F é\n"])
            let request = ImageRequest(.url("photos:42"), recipe: try Recipe("thumbnail:20"))
            let explanation = try await pipeline.explain(request)
            #expect(explanation.source == "photos:42" && explanation.decision == .validate)
            photos.store(sample("originals/meadow-small.jpg"), as: "42")
            let changed = try await pipeline.respond(to: request)
            #expect(changed.outcome == .rendered && changed.digest != first.digest)
            #expect(try await pipeline.purge(.source(ImageSource("photos:42"))).sources == 1)
            #expect(try await pipeline.respond(to: request).outcome == .rendered)
            #expect(try await pipeline.purge(.prefix("photos:4")).sources == 1)
            #expect(try await pipeline.respond(to: request).outcome == .rendered)
            #expect(try await pipeline.purge(.prefix("photos:")).sources == 1)
            #expect(try await pipeline.respond(to: request).outcome == .rendered)
            #expect(photos.asked.last == .some(nil))
            let tag = "src-" + sha256Hex(Array("photos:42".utf8)).prefix(16)
            #expect(try await pipeline.purge(.tags([tag])).sources == 1)
        }
    }

    @Test
    func `within maxAge a stored variant answers without asking, and behind it the stale one if the provider fails`()
        async throws
    {
        let photos = Photos(maxAge: .seconds(60))
        photos.store(sample("originals/night-tiny.jpg"), as: "a/b c")
        let offset = Mutex(0.0)
        try await Self.with(
            photos,
            { configuration in
                configuration.now = { SystemClock.unix.seconds + offset.withLock { $0 } }
            }
        ) { pipeline in
            let request = ImageRequest(.url("photos:a/b c"), recipe: try Recipe("thumbnail:20"))
            _ = try await pipeline.respond(to: request)
            #expect(try await pipeline.respond(to: request).originalOutcome == .none)
            #expect(photos.asked.count == 1)
            offset.withLock { $0 += 100 }
            photos.fails(with: Photos.Trouble(code: 1))
            #expect(try await pipeline.respond(to: request).isStale)
            #expect(photos.asked.count == 2)
        }
    }

    @Test func `a hundred requests for four recipes ask once`() async throws {
        let door = Door()
        let photos = Photos(maxAge: .seconds(60), door: door)
        photos.store(sample("originals/night-tiny.jpg"), as: "42")
        try await Self.with(photos) { pipeline in
            await withTaskGroup { group in
                for at in 0..<100 {
                    group.addTask {
                        let answer = try? await pipeline.image(for: "photos:42", recipe: "thumbnail:\(10 + at % 4)")
                        #expect(answer?.width == 10 + at % 4)
                    }
                }
                await door.arrivals(1)
                await waitOrRecord { pipeline.fetches.waiting < 100 }
                door.open()
            }
            #expect(photos.asked == [nil])
        }
    }

    /// Counts how many calls run at a time.
    private final class Crowd: OriginalProvider {
        private let picture = sample("originals/night-tiny.jpg")
        private let counts = Mutex((now: 0, most: 0))
        var most: Int { counts.withLock { $0.most } }

        func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
            counts.withLock { counts in
                counts.now += 1
                counts.most = max(counts.most, counts.now)
            }
            for _ in 0..<20 { await Task.yield() }
            counts.withLock { $0.now -= 1 }
            return .bytes(picture)
        }
    }

    @Test func `no more calls run at a time than there are slots, and all are answered`() async throws {
        let crowd = Crowd()
        var configuration = PipelineConfiguration()
        configuration.providers = ["crowd": crowd]
        configuration.fetch.maxConcurrentTransfers = 3
        let pipeline = try ImagePipeline(configuration)
        let loads = (0..<100).map { pipeline.load(ImageRequest(.url("crowd:\($0)"))) }
        for load in loads[50...].shuffled().prefix(10) { load.cancel() }
        for load in loads where !load.status.isCancelled { _ = try await load.response }
        #expect(crowd.most == 3)
        await pipeline.shutdown()
    }

    @Test func `leaving ends the call, failures are fetchFailed with their cause, and nothing is notFound`()
        async throws
    {
        let door = Door()
        let photos = Photos(door: door)
        try await Self.with(photos, { $0.rendering.limits.bytes = 100_000 }) { pipeline in
            let load = pipeline.load(ImageRequest(.url("photos:42")))
            await door.arrivals(1)
            load.cancel()
            let left = await Self.failure { () async throws(PipelineError) in try await load.response }
            #expect(left?.code == .cancelled)
            await waitOrRecord { pipeline.fetches.waiting > 0 }
            door.open()
            let missing = await Self.failure { () async throws(PipelineError) in
                try await pipeline.image(for: "photos:1")
            }
            #expect(missing?.code == .notFound && missing?.message.contains("photos:1") == true)
            photos.fails(with: Photos.Trouble(code: 7))
            let failed = await Self.failure { () async throws(PipelineError) in
                try await pipeline.image(for: "photos:2")
            }
            #expect(failed?.code == .fetchFailed && failed?.cause as? Photos.Trouble == Photos.Trouble(code: 7))
            photos.fails(with: nil)
            photos.store([UInt8](repeating: 7, count: 100_001), as: "3")
            let long = await Self.failure { () async throws(PipelineError) in try await pipeline.image(for: "photos:3")
            }
            #expect(long?.code == .overLimit)
            // Names that mean something else stay what they are.
            for source in ["file:///etc/passwd", "bytes:42"] {
                let error = await Self.failure { () async throws(PipelineError) in
                    try await pipeline.respond(to: ImageRequest(.url(source)))
                }
                #expect(error?.code == .invalidSource, "\(source)")
            }
        }
    }

    @Test func `a long file is copied, and what becomes of it changes nothing that is stored`() async throws {
        let photos = Photos(inFiles: true, maxAge: .seconds(60))
        let body = sample("originals/mountains-12mp.jpg")
        photos.store(body, as: "42")
        try await Self.with(photos, { $0.fetch.maxBytesInMemory = 10_000 }) { pipeline in
            let request = ImageRequest(.url("photos:42"))
            let first = try await pipeline.respond(to: request)
            #expect(first.bytes == body && first.digest == sha256Hex(body))
            await pipeline.drain()
            // In place, so that a link to it would change too.
            photos.store([UInt8](repeating: 7, count: body.count), as: "42")
            let again = try await pipeline.respond(to: request)
            #expect(again.bytes == body && again.originalOutcome == .disk)
        }
    }

    @Test func `willStore and storage decide as for any original`() async throws {
        let photos = Photos(maxAge: .seconds(60), hasVersions: false)
        photos.store(sample("originals/night-tiny.jpg"), as: "42")
        let seen = Mutex<[String]>([])
        try await Self.with(
            photos,
            { configuration in
                configuration.willStore = { candidate in
                    seen.withLock { $0.append(candidate.source) }
                    return false
                }
            }
        ) { pipeline in
            for _ in 0..<2 {
                let answer = try await pipeline.image(for: "photos:42", recipe: "thumbnail:20")
                #expect(answer.outcome == .rendered)
            }
            #expect(photos.asked == [nil, nil] && seen.withLock { $0 } == ["photos:42", "photos:42"])
        }
    }

    @Test
    func
        `one that does not heed its cancellation is not waited for, and nothing it throws is taken for the pipeline's own`()
        async throws
    {
        struct Deaf: OriginalProvider {
            let door: Door
            func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
                if path == "error" { throw FetchError(.missing, "SELECT 1") }
                await door.pass()
                return .missing
            }
        }
        let door = Door()
        var configuration = PipelineConfiguration()
        configuration.providers["deaf"] = Deaf(door: door)
        let patient = try ImagePipeline(configuration)
        let wrapped = await Self.failure { () async throws(PipelineError) in
            try await patient.image(for: "deaf:error")
        }
        #expect(wrapped?.code == .fetchFailed && (wrapped?.cause as? FetchError)?.code == .missing)
        configuration.fetch.totalTimeout = .seconds(0.05)
        let pipeline = try ImagePipeline(configuration)
        let late = await Self.failure { () async throws(PipelineError) in try await pipeline.image(for: "deaf:1") }
        #expect(late?.code == .fetchTimedOut)
        let load = patient.load(ImageRequest(.url("deaf:2")))
        await door.arrivals(2)
        load.cancel()
        await pipeline.shutdown()
        await patient.shutdown()
        door.open()
    }

    @Test func `a long file's path is for the log alone`() async throws {
        let photos = Photos(inFiles: true)
        photos.store([UInt8](repeating: 7, count: 1_001), as: "42")
        try await Self.with(photos, { $0.rendering.limits.bytes = 1_000 }) { pipeline in
            let error = await Self.failure { () async throws(PipelineError) in
                try await pipeline.image(for: "photos:42")
            }
            let folder = try #require(photos.folder).path
            #expect(error?.code == .overLimit && error?.message.contains(folder) == false)
            #expect((error?.cause as? FetchError)?.logged?.contains(folder) == true)
        }
    }

    @Test func `unchanged without a version is an error`() async throws {
        struct Wrong: OriginalProvider {
            func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal { .unchanged }
        }
        var configuration = PipelineConfiguration()
        configuration.providers["wrong"] = Wrong()
        let pipeline = try ImagePipeline(configuration)
        let error = await Self.failure { () async throws(PipelineError) in try await pipeline.image(for: "wrong:1") }
        #expect(error?.code == .fetchFailed && error?.message.contains("unchanged") == true)
        await pipeline.shutdown()
    }
}
