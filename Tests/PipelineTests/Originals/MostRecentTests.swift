@testable import PipelineCaching
@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// The caches answer a request with the most recent of several responses (RFC 9111 §4), whatever has
/// been evicted in between.
@Suite(.timeLimit(.minutes(10))) struct MostRecentTests {
    private enum Step: CaseIterable {
        case change, image, reload, raw, cached, cacheOnly, evictRecords, evictOriginals, evictVariants, drain
        case purge
    }

    /// An origin with changing pictures. It records the most recent version that it has sent or confirmed for each
    /// request.
    private final class ChangingOrigin: Sendable {
        private struct State {
            /// Several sources have the same bytes, and some versions return.
            var versions = [String: Int]()
            var newest = [String: [String: Int]]()
        }
        static let languages = ["de", "en"]
        private let state = Mutex(State())
        private let digests = (0..<5).map { sha256Hex(body($0)) }

        /// The data after the end of the image is ignored by decoders.
        private static func body(_ version: Int) -> [UInt8] {
            sample("originals/night-tiny.jpg") + Array("version \(version)".utf8)
        }

        func change(_ name: String, to version: Int) { state.withLock { $0.versions[name] = version } }

        /// After a purge nothing that was sent may return.
        func forget(_ name: String) { state.withLock { $0.newest[name] = nil } }

        func answer(_ request: FetchRequest) -> ScriptedResponse {
            let (name, language) = (request.url.name, request.fields.first("accept-language") ?? "en")
            let version = state.withLock { state in
                let version = state.versions[name] ?? 0
                for other in Self.languages where !Self.varies(name) || other == language {
                    state.newest[name, default: [:]][other] = version
                }
                return version
            }
            var answer = ScriptedResponse(200, "Cache-Control: max-age=60", "ETag: \"\(version)\"")
            if Self.varies(name) { answer.fields.append(HeaderField("Vary", "Accept-Language")) }
            if request.fields.first("if-none-match")?.contains("\"\(version)\"") == true {
                answer.status = 304
            } else {
                answer.body = Self.body(version)
            }
            return answer
        }

        /// Whether the origin has versions of a source for each language.
        private static func varies(_ name: String) -> Bool { name == "c" }

        func newest(_ name: String, _ language: String) -> String? {
            state.withLock { $0.newest[name]?[language] }.map { digests[$0] }
        }
    }

    private static func request(_ random: inout FuzzRandom, hasFolder: Bool) throws -> ImageRequest {
        let recipe = ["thumbnail:20", "thumbnail:24", nil][random.below(3)]
        let name = "abc".randomElement(using: &random)!
        var request = ImageRequest(
            .url("http://origin.test/\(name)"), recipe: try recipe.map { try Recipe($0) })
        request.fields = [HeaderField("Accept-Language", ChangingOrigin.languages.randomElement(using: &random)!)]
        // A response without a variant removes no earlier one from a tier that it is not stored in: it is provisional.
        if hasFolder, recipe != nil {
            let tiers: [StorageOptions] = [.all, .all, [.originalsInMemory, .variantsInMemory], [.originalsOnDisk]]
            request.storage = tiers.randomElement(using: &random)!
        }
        return request
    }

    @Test(arguments: [true, false])
    func `what a tier could not store gives way to no earlier picture`(isFolder: Bool) async throws {
        let folder = CacheFolder()
        let origin = ChangingOrigin()
        try await withCache {
            if isFolder {
                $0.cacheFolder = folder.path
            } else {
                $0.tiers = [TierPlacement(PlainTier(folder: folder.path))]
            }
        } origin: {
            origin.answer($0)
        } _: { bench in
            let (tiers, stall) = (bench.pipeline.tiers, Stall())
            var request = ImageRequest(.url(CachingBench.url), recipe: try Recipe("thumbnail:20"))
            func digest() async throws -> String {
                for memory in [tiers.memory.records, tiers.originals] { memory.reduce(to: 0) }
                return try await bench.pipeline.respond(to: request).record.digest
            }
            let first = try await digest()
            await tiers.drain()
            origin.change("a", to: 1)
            bench.clock.advance(1)
            stall.hold(tiers)
            let other = EntryChange(.removedRecord(record("other", [])), mark: PurgeMark(0))
            for bytes in [1_000_000, 0] {
                while tiers.links[0].queue.submit(
                    WriteBehind.Write(change: other, bytes: bytes, isSmall: true, end: { _ in }))
                {}
            }
            request.policy = .reload
            let second = try await digest()
            #expect(first != second)
            stall.open()
            await tiers.drain()
            request.policy = .protocol
            #expect(try await digest() == second)
            await tiers.drain()
            let count = bench.count
            #expect(try await digest() == second && bench.count == count)
        }
    }

    private static func digest(_ bench: CachingBench, _ request: ImageRequest, _ step: Step) async throws -> String? {
        var request = request
        switch step {
        case .cached: return bench.pipeline.cachedImage(for: request)?.record.digest
        case .raw:
            let asked = OriginalRequest(url: request.source.text!, fields: request.fields)
            return sha256Hex(try await bench.pipeline.original(for: asked).body)
        case .reload: request.policy = .reload
        case .cacheOnly: request.policy = .cacheOnly
        default: break
        }
        do throws(PipelineError) { return try await bench.pipeline.respond(to: request).record.digest } catch {
            guard error.code == .notCached else { throw error }
            return nil
        }
    }

    @Test(arguments: 0..<60, [false, true])
    func `whatever is evicted, no earlier picture returns`(seed: Int, hasFolder: Bool) async throws {
        var random = FuzzRandom(seed: UInt64(seed))
        let folder = CacheFolder()
        let origin = ChangingOrigin()
        try await withCache {
            $0.cacheFolder = hasFolder ? folder.path : nil
        } origin: {
            origin.answer($0)
        } _: { bench in
            var history: [String] = []
            for _ in 0..<80 {
                bench.clock.advance([1, 1, 1, 30, 70][random.below(5)])
                let request = try Self.request(&random, hasFolder: hasFolder)
                let name = String(request.source.text!.last!)
                let step = Step.allCases.randomElement(using: &random)!
                history.append("\(step) \(name) \(request.storage.rawValue)")
                switch step {
                case .change: origin.change(name, to: random.below(5))
                case .evictRecords: bench.pipeline.tiers.memory.records.reduce(to: 0)
                case .evictOriginals: bench.pipeline.tiers.originals.reduce(to: Double(random.below(3)) / 2)
                case .evictVariants: bench.pipeline.tiers.variants.reduce(to: 0)
                case .drain: await bench.pipeline.drain()
                case .purge:
                    _ = try await bench.pipeline.purge(.source(request.source))
                    origin.forget(name)
                case .image, .reload, .raw, .cached, .cacheOnly:
                    guard let found = try await Self.digest(bench, request, step) else { continue }
                    let newest = origin.newest(name, request.fields[0].value)
                    try #require(found == newest, "\(request.fields[0].value): \(history.joined(separator: ", "))")
                }
            }
        }
    }
}
