import TestSupport
import Testing
import Variants

@testable import Pipeline

private let fresh: KeyValuePairs<String, String> = ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"]

/// Requests that name each other's recipes.
struct CompanionsTests {
    private static let recipes = [
        "thumbnail:400", "thumbnail:200", "thumbnail:100,jpeg:60", "thumbnail:50,circle,webp",
    ]

    private func together(
        _ pipeline: ImagePipeline, _ bench: PipelineBench, _ texts: [String] = recipes
    ) async throws -> [ImageResponse] {
        let tasks = try texts.map { text in
            var request = try bench.request("/a.jpg", text)
            request.companions = try texts.filter { $0 != text }.map { try Recipe($0) }
            return Task { [request] in try await pipeline.respond(to: request) }
        }
        var responses: [ImageResponse] = []
        for task in tasks { responses.append(try await task.value) }
        return responses
    }

    @Test func `companions change no key and no size, and nothing that is cached is rendered again`() async throws {
        try await withPipeline { _ in
            picture("meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            let responses = try await together(pipeline, bench)
            #expect(bench.renderer.renders == 4)
            #expect(bench.renderer.shared == 4)
            #expect(bench.origin.requests.count == 1)
            var configuration = PipelineConfiguration()
            configuration.renderer = bench.renderer
            configuration.fetch.allowPrivateAddresses = .all
            let other = try ImagePipeline(configuration)
            for (text, response) in zip(Self.recipes, responses) {
                let alone = try await other.respond(to: bench.request("/a.jpg", text))
                #expect(response.outcome == .rendered && alone.outcome == .rendered)
                #expect(alone.key == response.key && alone.format == response.format)
                #expect((alone.width, alone.height) == (response.width, response.height))
            }
            await other.shutdown()
            #expect(bench.renderer.renders == 8 && bench.renderer.shared == 4)
            let again = try await together(pipeline, bench)
            #expect(again.map(\.outcome) == Array(repeating: .memory, count: 4))
            #expect(again.map(\.bytes) == responses.map(\.bytes))
            let more = try await together(pipeline, bench, Self.recipes + ["thumbnail:30"])
            #expect(more.map(\.outcome) == Array(repeating: .memory, count: 4) + [.rendered])
            #expect(bench.renderer.renders == 9)
        }
    }

    @Test func `the same requests give the same bytes, whichever of them is stored already`() async throws {
        try await withPipeline { _ in
            picture("meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            let first = try await together(pipeline, bench)
            _ = try await pipeline.purge(bench.request().source)
            // One of them alone, with the same companions.
            var request = try bench.request("/a.jpg", Self.recipes[2])
            request.companions = try Self.recipes.map { try Recipe($0) }.reversed()
            let one = try await pipeline.respond(to: request)
            #expect(one.outcome == .rendered && one.bytes == first[2].bytes)
            #expect(try await together(pipeline, bench).map(\.bytes) == first.map(\.bytes))
        }
    }

    @Test func `a request that can share nothing, or names no companion, is rendered alone`() async throws {
        try await withPipeline { _ in
            picture("meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            var request = try bench.request("/a.jpg", "crop:100x100,thumbnail:50")
            request.companions = try Self.recipes.map { try Recipe($0) }
            _ = try await pipeline.respond(to: request)
            request = try bench.request("/a.jpg", "thumbnail:90")
            request.companions = try [Recipe("thumbnail:90")]
            _ = try await pipeline.respond(to: request)
            #expect(bench.renderer.renders == 2 && bench.renderer.shared == 0)
        }
    }

    @Test func `one that fails or is cancelled takes none of the others with it`() async throws {
        try await withPipeline { _ in
            picture("meadow-small.jpg", fresh)
        } _: { bench, pipeline in
            // No quality of a picture of that size has so few bytes.
            let texts = ["thumbnail:400", "thumbnail:700,jpeg:max=1kB", "thumbnail:200", "thumbnail:100"]
            let tasks = try texts.map { text in
                var request = try bench.request("/a.jpg", text)
                request.companions = try texts.map { try Recipe($0) }
                return Task { [request] in try await pipeline.respond(to: request).width }
            }
            tasks[2].cancel()
            #expect(try await tasks[0].value == 400)
            await #expect(throws: PipelineError.self) { try await tasks[1].value }
            _ = await tasks[2].result
            #expect(try await tasks[3].value == 100)
        }
    }
}
