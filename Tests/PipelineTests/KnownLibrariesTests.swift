import Glibc
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline
@testable import Variants

@Suite struct KnownLibrariesTests {
    /// A renderer that loads libraries when it is asked to, if it can.
    private final class Loader: Rendering {
        private struct State {
            var libraries: RenderLibraries?
            var loads = 0
        }
        private let found: RenderLibraries?
        private let state = Mutex(State())
        init(_ found: RenderLibraries?) { self.found = found }

        var loads: Int { state.withLock { $0.loads } }
        var libraries: RenderLibraries? { state.withLock { $0.libraries } }
        func loadLibraries() async -> RenderLibraries? {
            state.withLock { state in
                state.loads += 1
                state.libraries = found
            }
            return found
        }
        func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant { throw .init(.cancelled, "") }
        func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer { throw .init(.cancelled, "") }
    }

    private let cache = CacheFolder()
    private let threads = OwnedThreads(count: 1)

    private func libraries(_ versions: String) throws -> RenderLibraries {
        for folder in [cache.path, cache.path + "/temporary"] { mkdir(folder, 0o700) }
        cache.overwrite("library", at: 0, with: Array(versions.utf8))
        return RenderLibraries(
            libvips: versions, libheif: "1.2.3", written: [.jpeg, .webp], read: [.jpeg],
            files: [cache.path + "/library", cache.path + "/plugins"])
    }

    private func known(_ loader: Loader) -> KnownLibraries {
        KnownLibraries(loader, folder: cache.path, threads: threads)
    }

    @Test func `what was reported is kept for the next process, which loads nothing`() async throws {
        let libraries = try libraries("a")
        let (first, second) = (Loader(libraries), Loader(try self.libraries("a")))
        #expect(await known(first)() == libraries && first.loads == 1)
        let next = known(second)
        #expect(next.known == .unknown)
        #expect(await next() == libraries && second.loads == 0 && next.known == libraries)
    }

    @Test(arguments: ["library", "plugins"]) func `a library that is replaced, or a plug-in that is new, is loaded`(
        file: String
    ) async throws {
        #expect(await known(Loader(try libraries("a")))().libvips == "a")
        cache.overwrite(file, at: 0, with: Array("longer".utf8))
        var updated = try libraries("b")
        updated.written.insert(.jxl)
        let loader = Loader(updated)
        #expect(await known(loader)() == updated && loader.loads == 1)
        #expect(await known(Loader(nil))() == updated)
    }

    @Test func `if nothing can be loaded, what was reported last is taken`() async throws {
        let broken = Loader(nil)
        #expect(await known(broken)() == .unknown && broken.loads == 1)
        let libraries = try libraries("a")
        _ = await known(Loader(libraries))()
        unlink(cache.path + "/library")
        #expect(await known(broken)() == libraries)
        cache.overwrite("cache.libraries", at: 0, with: [0, 1, 2])
        #expect(await known(broken)() == .unknown)
    }

    @Test func `a folder that cannot be written to is no error`() async throws {
        let libraries = try libraries("a")
        rmdir(cache.path + "/temporary")
        #expect(await known(Loader(libraries))() == libraries && cache.contents("cache.libraries") == nil)
        #expect(await KnownLibraries(Loader(libraries), folder: nil, threads: threads)() == libraries)
    }

    /// A renderer with libraries that are updated before its first render.
    private final class Updated: Rendering {
        private let inner = InProcessRenderer(maxConcurrentRenders: 1)
        private let state: Mutex<(libraries: RenderLibraries, renders: Int)>
        init(_ libraries: RenderLibraries) { state = Mutex((libraries, 0)) }

        var libraries: RenderLibraries? { state.withLock { $0.libraries } }
        var renders: Int { state.withLock { $0.renders } }

        func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
            var variant = try await inner.render(job)
            variant.libraries = state.withLock { state in
                state.renders += 1
                state.libraries.libvips = "updated"
                return state.libraries
            }
            return variant
        }
        func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer { try await inner.pixels(job) }
    }

    @Test func `a variant is stored under the versions that made it`() async throws {
        var first = RenderLibraries.unknown
        first.libvips = "first"
        let renderer = Updated(first)
        var configuration = PipelineConfiguration()
        configuration.rendering.renderer = renderer
        let pipeline = try ImagePipeline(configuration)
        for outcome in [ImageResponse.Outcome.rendered, .memory] {
            let response = try await pipeline.image(for: Self.sample, recipe: "thumbnail:20,png")
            #expect(response.outcome == outcome)
        }
        #expect(renderer.renders == 1)
        await pipeline.shutdown()
    }

    private static let sample = Samples.original("night-tiny.jpg")
}
