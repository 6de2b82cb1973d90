import Foundation
import Pipeline
import PipelineFoundation
import TestSupport
import Testing

struct FoundationTests {
    @Test func `URLs are sources, and responses have data and dates`() async throws {
        let before = Date()
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Cache-Control": "max-age=60"])
        } _: { bench, pipeline in
            let url = try #require(URL(string: bench.origin.url("/a.jpg")))
            let image = try await pipeline.image(for: url, recipe: "thumbnail:20,png")
            #expect(image.data == Data(image.bytes) && image.width == 20)
            let made = try #require(image.creationDate)
            #expect(made >= before.addingTimeInterval(-1) && made <= Date().addingTimeInterval(1))
            let original = try await pipeline.image(for: url)
            #expect(original.creationDate == nil && original.data == Data(sample("originals/night-tiny.jpg")))
            let response = try await pipeline.original(for: OriginalRequest(url: url.absoluteString))
            #expect(response.data == original.data)
            #expect(response.responseDate.timeIntervalSince1970 == response.responseTime)
            let again = try await pipeline.respond(to: ImageRequest(ImageSource(original.data, name: "copy")))
            #expect(again.digest == original.digest)
        }
    }

    @Test func `a file URL is its path, and another URL its text`() throws {
        #expect(ImageSource(URL(fileURLWithPath: "/tmp/a b.jpg")) == .file("/tmp/a b.jpg"))
        let text = "https://example.org/a%20b.jpg?c=d"
        #expect(ImageSource(try #require(URL(string: text))) == .url(text))
        #expect(ImageSource(try #require(URL(string: "photos:42"))) == ImageSource("photos:42"))
    }
}
