@testable import PipelineCaching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Variants that are requested often are encoded again.
@Suite struct SecondPassTests {
    private static let fresh: KeyValuePairs<String, String> = [
        "Content-Type": "image/jpeg", "Cache-Control": "max-age=600",
    ]

    /// Renders, and answers second passes with what a test decides.
    private final class Refiner: Rendering {
        private let inner = CountingRenderer()
        private let answer: Mutex<@Sendable (RenderJob, RenderedVariant) async throws(RenderError) -> RenderedVariant>
        private let asked = Mutex<[String]>([])
        /// Called when a render begins.
        let onRender = Mutex<@Sendable () async -> Void>({})
        var renders: Int { inner.renders }
        var libraries: RenderLibraries? { inner.libraries }
        /// The formats that second passes were asked to try.
        var passes: [String] { asked.withLock { $0 } }

        init(_ answer: @escaping @Sendable (RenderJob, RenderedVariant) async throws(RenderError) -> RenderedVariant) {
            self.answer = Mutex(answer)
        }

        /// Makes a pipeline begin second passes after three requests, when a test says so.
        func configure(_ configuration: inout PipelineConfiguration) {
            configuration.rendering.renderer = self
            configuration.rendering.secondPass.interval = nil
            configuration.rendering.secondPass.requests = 3
        }

        func loadLibraries() async -> RenderLibraries? { await inner.loadLibraries() }

        func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
            guard job.output.isSecondPass else {
                await onRender.withLock { $0 }()
                return try await inner.render(job)
            }
            asked.withLock { $0.append(job.output.secondFormats.map(\.rawValue).joined(separator: "+")) }
            var first = job
            first.output.isSecondPass = false
            let rendered = try await InProcessRenderer().render(first)
            return try await answer.withLock { $0 }(job, rendered)
        }

        func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer { try await inner.pixels(job) }
    }

    /// A variant of another format with a share of the first one's bytes.
    private static func smaller(
        _ share: Double = 0.5, seconds: Double = 0.01
    ) -> @Sendable (RenderJob, RenderedVariant) async throws(RenderError) -> RenderedVariant {
        { (_, first) throws(RenderError) in
            var second = first
            second.format = .avif
            second.bytes = Array(repeating: 7, count: Int(Double(first.bytes.count) * share))
            second.cpuTime = .seconds(seconds)
            return second
        }
    }

    private static func withRefiner(
        _ refiner: Refiner, _ configure: (inout PipelineConfiguration) -> Void = { _ in },
        _ body: (PipelineBench, ImagePipeline) async throws -> Void
    ) async throws {
        try await withPipeline(
            { configuration in
                refiner.configure(&configuration)
                configure(&configuration)
            }, handler: { _ in picture("night-tiny.jpg", Self.fresh) }, body)
    }

    private static func request(
        _ bench: PipelineBench, _ recipe: String = "thumbnail:40,auto", _ formats: [ImageFormat] = [.webp, .avif]
    ) throws -> ImageRequest {
        var request = try bench.request("/a.jpg", recipe)
        request.negotiated = formats
        return request
    }

    @Test func `a variant that is requested often is replaced under its key in every tier`() async throws {
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner) { bench, pipeline in
            let request = try Self.request(bench)
            let first = try await pipeline.respond(to: request)
            #expect(first.format == .webp && first.pass == 1)
            _ = try await pipeline.respond(to: request)
            await pipeline.makeSecondPasses()
            #expect(refiner.passes == [])
            #expect(try await pipeline.respond(to: request).bytes == first.bytes)
            await pipeline.makeSecondPasses()
            let second = try await pipeline.respond(to: request)
            #expect(refiner.passes == ["avif"] && second.pass == 2)
            #expect(second.key == first.key && second.format == .avif && second.bytes.count == first.bytes.count / 2)
            #expect(second.digest == sha256Hex(second.bytes) && second.digest != first.digest)
            #expect(second.outcome == .memory && refiner.renders == 1)
            _ = try await pipeline.respond(to: request)
            await pipeline.makeSecondPasses()
            #expect(refiner.passes.count == 1)
            let counters = try #require(pipeline.secondPassStatistics)
            #expect((counters.improved, counters.kept, counters.failed) == (1, 0, 0))
            #expect(counters.savedBytes == 2 * (first.bytes.count - second.bytes.count))
            await pipeline.drain()
            let stored = await pipeline.storedVariant(try #require(first.key), of: first.record.digest)
            #expect(stored?.body == second.bytes && stored?.entry.firstLength == first.bytes.count)
            #expect(stored?.entry.mediaType == "image/avif")
            // A later process finds the second version.
            let later = try bench.pipeline { $0.rendering.renderer = refiner }
            let found = try await later.respond(to: request)
            #expect(found.outcome == .disk && found.bytes == second.bytes && found.pass == 2)
            await later.shutdown()
        }
    }

    @Test func `a version that is not 5 % smaller leaves the first, and is not tried again`() async throws {
        let refiner = Refiner(Self.smaller(0.96))
        try await Self.withRefiner(refiner) { bench, pipeline in
            let request = try Self.request(bench)
            let first = try await pipeline.respond(to: request)
            for _ in 0..<3 { _ = try await pipeline.respond(to: request) }
            await pipeline.makeSecondPasses()
            let again = try await pipeline.respond(to: request)
            #expect(again.pass == 2 && again.bytes == first.bytes && again.format == .webp)
            await pipeline.makeSecondPasses()
            #expect(refiner.passes.count == 1 && pipeline.secondPassStatistics?.kept == 1)
        }
    }

    @Test func `a second pass that fails leaves the first version, and is not tried again`() async throws {
        let refiner = Refiner { (_, _) throws(RenderError) in throw RenderError(.workerKilled, "killed") }
        try await Self.withRefiner(refiner) { bench, pipeline in
            let request = try Self.request(bench)
            let first = try await pipeline.respond(to: request)
            for _ in 0..<3 {
                #expect(try await pipeline.respond(to: request).bytes == first.bytes)
                await pipeline.makeSecondPasses()
            }
            #expect(refiner.passes.count == 1 && pipeline.secondPassStatistics?.failed == 1)
            // Clients need not ask again soon.
            #expect(try await pipeline.respond(to: request).pass == nil)
            var asked = try bench.request("/a.jpg", "thumbnail:40,avif")
            asked.makesSecondPass = true
            #expect(try await pipeline.respond(to: asked).pass == 1)
        }
    }

    @Test func `a second pass that fails while the variant is requested is not tried again`() async throws {
        let ask = Mutex<@Sendable () async -> Void> {}
        let refiner = Refiner { (_, _) throws(RenderError) in
            await ask.withLock { $0 }()
            throw RenderError(.workerKilled, "killed")
        }
        try await Self.withRefiner(refiner) { bench, pipeline in
            let request = try Self.request(bench)
            ask.withLock { $0 = { _ = try? await pipeline.respond(to: request) } }
            for _ in 0..<3 { _ = try await pipeline.respond(to: request) }
            await pipeline.makeSecondPasses()
            #expect(refiner.passes.count == 1 && pipeline.secondPassStatistics?.failed == 1)
            ask.withLock { $0 = {} }
        }
    }

    @Test func `a first version that another request stores after the look-up is known as one`() async throws {
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner) { bench, pipeline in
            let request = try Self.request(bench)
            let first = try await pipeline.respond(to: request)
            await pipeline.drain()
            let key = try #require(first.key)
            let stored = try #require(await pipeline.storedVariant(key, of: first.record.digest))
            let other = try bench.pipeline {
                $0.cacheFolder = nil
                refiner.configure(&$0)
            }
            _ = try await other.respond(to: bench.request("/a.jpg", "thumbnail:41,webp"))
            #expect(other.cachedImage(for: request) == nil)
            // The gate is passed after the first look-up.
            var late = request
            late.gate = WorkGate { [tiers = other.tiers, source = first.record.source] () throws(PipelineError) in
                tiers.store(stored.entry, body: stored.body, of: source, storage: .all, marks: tiers.marks())
            }
            let found = try await other.respond(to: late)
            #expect(found.pass == 1 && found.bytes == first.bytes && refiner.renders == 2)
            #expect(other.cachedImage(for: request)?.pass == 1)
            await other.shutdown()
        }
    }

    @Test func `a purge during a second pass removes the variant for good`() async throws {
        let purge = Mutex<@Sendable () async -> Void> {}
        let refiner = Refiner { (job, first) throws(RenderError) in
            await purge.withLock { $0 }()
            return try await Self.smaller()(job, first)
        }
        try await Self.withRefiner(refiner) { bench, pipeline in
            let request = try Self.request(bench)
            purge.withLock {
                $0 = { [url = bench.origin.url("/a.jpg")] in _ = try? await pipeline.purge(.source(url)) }
            }
            for _ in 0..<3 { _ = try await pipeline.respond(to: request) }
            await pipeline.makeSecondPasses()
            await pipeline.drain()
            #expect(refiner.passes.count == 1)
            let next = try await pipeline.respond(to: request)
            #expect(next.outcome == .rendered && next.pass == 1 && next.format == .webp)
            #expect(pipeline.secondPassStatistics?.failed == 0)
            purge.withLock { $0 = {} }
        }
    }

    @Test func `only clients that accept it get another format, and recipes with a format keep theirs`() async throws {
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner) { bench, pipeline in
            let both = try Self.request(bench)
            for _ in 0..<3 { _ = try await pipeline.respond(to: both) }
            await pipeline.makeSecondPasses()
            #expect(try await pipeline.respond(to: both).format == .avif)
            for request in [
                try Self.request(bench, "thumbnail:40,auto", [.webp]), try Self.request(bench, "thumbnail:40,webp"),
            ] {
                let other = try await pipeline.respond(to: request)
                #expect(other.format == .webp && other.pass == nil)
            }
            // Both have one variant.
            #expect(refiner.renders == 2)
            for request in [
                try Self.request(bench, "thumbnail:40,auto:lossless"),
                try Self.request(bench, "thumbnail:40,auto:max=2kB"),
                try Self.request(bench, "thumbnail:40,auto", []),
            ] {
                #expect(try await pipeline.respond(to: request).pass == nil)
            }
            var upload = request(bench, both)
            upload.source = .bytes(sample("originals/night-tiny.jpg"), name: "upload")
            #expect(try await pipeline.respond(to: upload).pass == nil)
        }
        func request(_ bench: PipelineBench, _ other: ImageRequest) -> ImageRequest { other }
    }

    @Test func `recipes with masks have no second pass, because the requests would keep their files`() async throws {
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner, { $0.rendering.masks = Samples.folder + "/masks" }) { bench, pipeline in
            let request = try Self.request(bench, "thumbnail:40,mask:star,auto")
            for _ in 0..<3 { #expect(try await pipeline.respond(to: request).pass == nil) }
            await pipeline.makeSecondPasses()
            #expect(refiner.passes == [])
        }
    }

    @Test func `a variant of a batch is the first version`() async throws {
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner) { bench, pipeline in
            let batch = try await pipeline.respond(to: try bench.request("/a.jpg", "thumbnail:40,webp"))
            let request = try Self.request(bench)
            #expect(try await pipeline.explain(request).variant?.tier == .memory)
            let first = try await pipeline.respond(to: request)
            #expect(first.bytes == batch.bytes && first.key != batch.key && first.pass == 1)
            #expect(first.outcome == .memory && refiner.renders == 1)
            for _ in 0..<3 { _ = try await pipeline.respond(to: request) }
            await pipeline.makeSecondPasses()
            #expect(try await pipeline.respond(to: request).format == .avif)
            #expect(
                try await pipeline.respond(to: try bench.request("/a.jpg", "thumbnail:40,webp")).bytes == batch.bytes)
        }
    }

    @Test func `a process that finds the second version in the folder does not encode it again`() async throws {
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner) { bench, pipeline in
            let request = try Self.request(bench)
            let other = try bench.pipeline { refiner.configure(&$0) }
            for _ in 0..<3 {
                #expect(try await pipeline.respond(to: request).pass == 1)
                await pipeline.drain()
                #expect(try await other.respond(to: request).pass == 1)
            }
            await pipeline.makeSecondPasses()
            await pipeline.drain()
            let first = try await other.respond(to: request)
            #expect(first.pass == 1 && first.outcome == .memory)
            await other.makeSecondPasses()
            let second = try await other.respond(to: request)
            #expect(second.pass == 2 && second.format == .avif && second.outcome == .memory)
            #expect(second.bytes.count == first.bytes.count / 2 && refiner.passes.count == 1)
            await other.shutdown()
        }
    }

    @Test(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers"), arguments: ["moto", "rclone"])
    func `of two nodes with one bucket, one makes the second pass`(_ name: String) async throws {
        let server = try BucketServer(name, "cache")
        defer { server.stop() }
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner, { $0.remote = BucketTests.remote(server.endpoint) }) { bench, pipeline in
            func node(_ folder: String) throws -> ImagePipeline {
                try bench.pipeline {
                    $0.cacheFolder = bench.cache.path + folder
                    $0.remote = BucketTests.remote(server.endpoint)
                    refiner.configure(&$0)
                }
            }
            let request = try Self.request(bench)
            let other = try node("other")
            for _ in 0..<3 {
                #expect(try await pipeline.respond(to: request).pass == 1)
                await pipeline.drain()
                #expect(try await other.respond(to: request).pass == 1)
            }
            await pipeline.makeSecondPasses()
            await pipeline.drain()
            await other.makeSecondPasses()
            let second = try await pipeline.respond(to: request)
            let adopted = try await other.respond(to: request)
            #expect(second.format == .avif && adopted.bytes == second.bytes && adopted.pass == 2)
            #expect(refiner.passes.count == 1 && refiner.renders == 1)
            let counters = [pipeline, other].compactMap(\.secondPassStatistics)
            #expect(counters.map(\.improved) == [1, 0] && counters.map(\.adopted) == [0, 1])
            await other.shutdown()
            // A node that has neither version finds the second one.
            let last = try node("last")
            let found = try await last.respond(to: request)
            #expect(found.outcome == .remote && found.bytes == second.bytes && found.pass == 2)
            await last.shutdown()
        }
    }

    @Test func `a request can ask for its second pass at once, also with a format`() async throws {
        let refiner = Refiner(Self.smaller())
        try await Self.withRefiner(refiner) { bench, pipeline in
            var request = try bench.request("/a.jpg", "thumbnail:40,avif")
            request.makesSecondPass = true
            let image = try await pipeline.respond(to: request)
            #expect(image.pass == 2 && image.outcome == .rendered && refiner.passes == ["avif"])
            // The variant is found by requests that do not ask.
            request.makesSecondPass = false
            #expect(try await pipeline.respond(to: request).bytes == image.bytes)
            // Formats without more effort, and recipes that demand a file.
            for recipe in ["thumbnail:40,jpeg", "thumbnail:40,avif:effort=1", "thumbnail:40,avif:lossless"] {
                request = try bench.request("/a.jpg", recipe)
                request.makesSecondPass = true
                #expect(try await pipeline.respond(to: request).pass == nil)
            }
            #expect(refiner.passes.count == 1)
        }
    }

    @Test func `the share of a processor and renders in progress delay second passes`() async throws {
        let refiner = Refiner(Self.smaller(seconds: 1000))
        try await Self.withRefiner(refiner) { bench, pipeline in
            for recipe in ["thumbnail:40,auto", "thumbnail:41,auto"] {
                for _ in 0..<3 { _ = try await pipeline.respond(to: Self.request(bench, recipe)) }
            }
            await pipeline.makeSecondPasses()
            #expect(refiner.passes.count == 1)
        }
        try await Self.withRefiner(refiner) { bench, pipeline in
            for _ in 0..<3 { _ = try await pipeline.respond(to: Self.request(bench)) }
            refiner.onRender.withLock { $0 = { await pipeline.makeSecondPasses() } }
            _ = try await pipeline.respond(to: Self.request(bench, "thumbnail:41,auto"))
            #expect(refiner.passes.count == 1)
            await pipeline.makeSecondPasses()
            #expect(refiner.passes.count == 2)
        }
        try await Self.withRefiner(refiner, { $0.rendering.secondPass.cpuShare = 0 }) { bench, pipeline in
            let image = try await pipeline.respond(to: Self.request(bench))
            #expect(image.pass == nil && pipeline.secondPassStatistics == nil)
        }
    }

    @Test func `without a number of requests, the expected savings decide`() async throws {
        let refiner = Refiner(Self.smaller())
        let many = Mutex<Int?>(nil)
        try await Self.withRefiner(refiner, { $0.rendering.secondPass.requests = nil }) { bench, pipeline in
            let request = try Self.request(bench)
            for count in 1...255 {
                _ = try await pipeline.respond(to: request)
                await pipeline.makeSecondPasses()
                if !refiner.passes.isEmpty {
                    many.withLock { $0 = count }
                    break
                }
            }
            let response = try await pipeline.respond(to: request)
            let key = try #require(response.key)
            await pipeline.drain()
            let stored = await pipeline.storedVariant(key, of: response.record.digest)
            let length = try #require(stored?.entry.firstLength)
            // 30 % are expected to be saved, at 1.5 µs a pixel.
            let pixels = 40.0 * 40 * 2 / 3
            let needed = 100_000 * pixels * 1.5e-6 / (Double(length) * 0.3)
            let found = try #require(many.withLock { $0 })
            #expect(abs(Double(found) - needed) <= 2, "\(found) \(needed)")
        }
    }

    @Test func `the stored media type carries the length of the first version`() {
        var entry = VariantEntry(
            key: "", originalDigest: "", digest: "", length: 5, format: .avif, width: 1, height: 1, recipe: "", cost: 1,
            created: 0)
        #expect(entry.storedType == "image/avif")
        entry.firstLength = 15_000
        #expect(entry.storedType == "image/avif; first=15000")
        #expect(entry.with(storedType: "image/avif; first=15000") == entry)
        for other in ["image/avif; first=", "image/avif; first=-1", "image/avif; first=01", "image/avif;first=1", ""] {
            let read = entry.with(storedType: other)
            #expect(read.mediaType == other)
        }
    }
}
