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

    @Test func `a turned original has the size that it is shown with, like its variants`() async throws {
        try await withPipeline { _ in
            picture("exif-orientation-6.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let original = try await pipeline.image(for: bench.origin.url("/a.jpg"))
            #expect(original.width == 600 && original.height == 800)
            let variant = try await pipeline.image(for: bench.origin.url("/a.jpg"), recipe: "scaled:0.1,png")
            #expect(variant.width == 60 && variant.height == 80)
        }
    }

    @Test func `presets have names in recipes given as text, and one that does not parse stops the start`() async throws
    {
        try await withPipeline {
            $0.rendering.presets = ["card": "thumbnail:20,webp"]
        } handler: { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let card = try await pipeline.image(for: bench.origin.url("/a.jpg"), recipe: "@card")
            #expect(card.format == .webp && max(card.width, card.height) == 20)
            #expect(try pipeline.recipe("@card") == Recipe.thumbnail(20).webp())
            let error = #expect(throws: PipelineError.self) { try pipeline.recipe("@crad") }
            #expect(error?.code == .invalidRecipe && error?.message.contains("did you mean `@card`?") == true)
        }
        var configuration = PipelineConfiguration()
        configuration.rendering.presets = ["card": "thumbnail:20,wepb"]
        let error = #expect(throws: PipelineError.self) { try ImagePipeline(configuration) }
        #expect(error?.code == .invalidRecipe)
        #expect(
            error?.message.contains("RenderingConfiguration.presets: step 1, `@card`: in preset `card`, step 2") == true
        )
    }

    @Test func `a typed recipe with an error is refused before anything is fetched`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", [:])
        } _: { bench, pipeline in
            let request = ImageRequest(.url(bench.origin.url("/a.jpg")), recipe: Recipe.thumbnail(20).blur(0))
            let error = await #expect(throws: PipelineError.self) { try await pipeline.respond(to: request) }
            #expect(error?.code == .invalidRecipe && error?.message.contains("step 2, `blur:0`") == true)
            #expect(bench.origin.requests.isEmpty)
        }
    }

    @Test func `sources are purged and prefetched by their text, those of providers too`() async throws {
        struct Photos: OriginalProvider {
            func original(_ path: String, unless version: String?) -> ProvidedOriginal {
                .bytes(sample("originals/night-tiny.jpg"), version: "1")
            }
        }
        try await withPipeline {
            $0.providers["photos"] = Photos()
        } handler: { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let url = bench.origin.url("/a.jpg")
            for load in ImageLoader(pipeline).prefetch(["photos:42", url], recipe: .thumbnail(20)) {
                let image = try await load.response
                #expect(image.width == 20)
            }
            for source in ["photos:42", url] {
                let purged = try await pipeline.purge(.source(source))
                #expect(purged.records == 1, "\(source)")
            }
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

    @Test func `equal requests are equal, and a response prints what it is and where it came from`() async throws {
        let recipe = try Recipe("thumbnail:20,png")
        var request = ImageRequest(.url("https://a.example/a.jpg"), recipe: recipe)
        #expect(Set([request, ImageRequest(.url("https://a.example/a.jpg"), recipe: recipe)]).count == 1)
        let same = request
        request.fields = [HeaderField("Accept", "image/webp")]
        #expect(request != same)
        request = same
        request.timeout = .seconds(1)
        #expect(request != same)
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let request = try bench.request("/a.jpg", "thumbnail:20,png")
            let new = try await pipeline.respond(to: request)
            let size = "\(new.width) × \(new.height), \(new.bytes.count) bytes"
            #expect("\(new)" == "image/png, \(size), rendered, original: network")
            let (first, second) = (try await pipeline.respond(to: request), try await pipeline.respond(to: request))
            #expect("\(first)" == "image/png, \(size), memory" && first.originalOutcome == nil)
            #expect(new != first && first.bytes == second.bytes)
            var timed = second
            timed.timings = first.timings
            #expect(timed == first)
        }
    }
}
