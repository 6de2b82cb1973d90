import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Calls that take a source and a recipe as text.
struct ConvenienceTests {
    @Test func `an image is asked for by the text of its source and of its recipe`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let url = bench.origin.url("/a.jpg")
            let variant = try await pipeline.image(for: url, recipe: "thumbnail:20,webp")
            #expect(variant.format == .webp && max(variant.width, variant.height) == 20)
            #expect(try await pipeline.image(for: url).bytes == sample("originals/night-tiny.jpg"))

            let error = await #expect(throws: PipelineError.self) {
                try await pipeline.image(for: bench.origin.url("/b.jpg"), recipe: "thumbnial:20")
            }
            #expect(error?.code == .invalidRecipe && error?.cause is RecipeError)
            #expect(error?.message.contains("thumbnail") == true)
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `a queue of jobs learns what is worth another try, and its tests make errors and responses`() {
        let never: Set<PipelineError.Code> = [
            .invalidSource, .invalidRecipe, .maskUnavailable, .notAvailable, .libraryUnavailable, .sourceRefused,
            .notFound, .notCached, .notAnImage, .unsupportedFormat, .overLimit, .undecodable, .renderFailed,
            .renderCrashed, .superseded, .cancelled,
        ]
        for code in PipelineError.Code.all { #expect(code.isTransient != never.contains(code), "\(code)") }
        #expect(PipelineError(.overloaded, "later").code.isTransient)
        let response = LoadEvent.someResponse
        #expect(response.mediaType == "image/png" && response.digest == sha256Hex([]) && response.isStorable)
    }
}
