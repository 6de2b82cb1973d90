import Testing
import Variants

@testable import Pipeline

struct CacheKeyTests {
    private func key(
        digest: String = "d", recipe: String = "thumbnail:40", output: ResolvedOutput = ResolvedOutput(format: .jpeg),
        quality: RenderQuality = .balanced, light: RenderLight = .auto, frames: Int = 1,
        masks: [String: String] = [:], revision: String = "1"
    ) throws -> String {
        CacheKey.variant(
            originalDigest: digest, recipe: try Recipe(recipe), output: output, quality: quality, light: light,
            frames: frames, masks: masks, revision: revision)
    }

    @Test func `every part changes the key, and nothing else does`() throws {
        let keys = [
            try key(), try key(digest: "e"), try key(recipe: "thumbnail:41"),
            try key(recipe: "thumbnail:40,grayscale"), try key(output: ResolvedOutput(format: .webp)),
            try key(output: ResolvedOutput(format: .jpeg, quality: 81)),
            try key(output: ResolvedOutput(format: .jpeg, isProgressive: true)),
            try key(output: ResolvedOutput(format: .jpeg, maxBytes: 20_000)),
            try key(output: ResolvedOutput(format: .jpeg, chroma: .full)),
            try key(output: ResolvedOutput(format: .jpeg, effort: 0)),
            try key(output: ResolvedOutput(format: .jpeg, effort: 6)),
            try key(output: ResolvedOutput(format: .webp, mayBeLossless: true)),
            try key(output: ResolvedOutput(format: .jpeg, keep: .icc)), try key(quality: .fast), try key(light: .gamma),
            try key(frames: 2),
            try key(masks: ["star": "1"]), try key(masks: ["star": "2"]), try key(masks: ["blob": "1"]),
            try key(masks: ["star": "1", "blob": "1"]), try key(revision: "2"),
        ]
        #expect(Set(keys).count == keys.count)
        #expect(keys.allSatisfy { $0.utf8.count == 64 && $0.allSatisfy { $0.isHexDigit && !$0.isUppercase } })
        #expect(try key() == key())
        // How an output was written is not in the key, only what it comes to.
        #expect(try key(recipe: "thumbnail:40x40:fit,jpeg:80") == key(recipe: "thumbnail:40"))
    }

    @Test func `what was made with more effort answers for less, unless an effort was asked for`() async throws {
        let folder = CacheFolder()
        func image(_ effort: RenderEffort, _ recipe: String) async throws -> ImageResponse {
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = folder.path
            configuration.rendering.effort = effort
            let pipeline = try ImagePipeline(configuration)
            let bytes = ImageSource.bytes(sample("originals/meadow-small.jpg"), name: "meadow")
            let response = try await pipeline.respond(to: ImageRequest(bytes, recipe: try Recipe(recipe)))
            await pipeline.shutdown()
            return response
        }
        let batch = try await image(.thorough, "thumbnail:99,avif")
        let served = try await image(.quick, "thumbnail:99,avif")
        #expect(batch.outcome == .rendered && served.outcome == .disk && served.bytes == batch.bytes)
        let asked = try await image(.quick, "thumbnail:99,avif:effort=0")
        #expect(asked.outcome == .rendered && asked.bytes != batch.bytes)
    }

    @Test func `parts do not run into one another`() throws {
        #expect(try key(masks: ["a": "bc"]) != key(masks: ["ab": "c"]))
        #expect(try key(digest: "d1", revision: "1") != key(digest: "d", revision: "11"))
    }

    @Test func `equal bytes at two URLs share their variants`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            let first = try await bench.image()
            let second = try await bench.image { $0.source = .url("http://elsewhere.test/z") }
            #expect(first.outcome == .rendered && second.outcome == .memory && first.key == second.key)
            #expect(bench.count == 2)
        }
    }
}
