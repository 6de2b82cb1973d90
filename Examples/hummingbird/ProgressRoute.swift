import Foundation
import Hummingbird
import ImageServer
import Pipeline
import Variants

/// `GET /photos/progress?source=URL`: what happens while a picture loads, as server-sent events.
struct ProgressRoute: Sendable {
    /// The data of an event, as JSON; which members it has depends on the event.
    struct EventData: Encodable {
        var width, height, received, expected: Int?
        var isStale: Bool?
        /// Where the finished picture is.
        var path: String?
        var message: String?
    }

    let pipeline: ImagePipeline
    let site: Site
    let recipe: Recipe

    /// Throws if the preset is missing: at the start, not at a client's request.
    init(pipeline: ImagePipeline, site: Site) throws {
        (self.pipeline, self.site) = (pipeline, site)
        recipe = try pipeline.recipe("@progress")
    }

    func add(to router: Router<BasicRequestContext>) {
        router.get("/photos/progress") { request, _ in
            let source = try request.uri.queryParameters.require("source")
            // Not `ImageSource(source)`, which would take other text for a path on this machine.
            let image = ImageRequest(.url(source), recipe: recipe)
            let body = ResponseBody { writer in
                // Every client has a load of its own; the pipeline fetches and renders once for all of them.
                let load = pipeline.load(image)
                // A write that fails leaves the loop, which does not end the load by itself.
                defer { load.cancel() }
                // Hummingbird 2.28.1 reads on while the closure runs, and calls the handler when the client closes its
                // connection, even if nothing is being written. The connection closes after this answer, so the other
                // routes, whose connections are used again, do without.
                try await request.body.consumeWithInboundCloseHandler { _ in
                    for await event in load.events { try await writer.write(text(of: event, source)) }
                } onInboundClosed: {
                    load.cancel()
                }
                try await writer.finish(nil)
            }
            return Response(
                status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
        }
    }

    private func text(of event: LoadEvent, _ source: String) throws -> ByteBuffer {
        var data = EventData()
        let name: String
        switch event {
        case .cached(let image):
            name = "cached"
            (data.width, data.height, data.isStale) = (image.width, image.height, image.isStale)
        case .fetching: name = "fetching"
        case .progress(let received, let expected):
            name = "progress"
            (data.received, data.expected) = (received, expected)
        case .rendering: name = "rendering"
        case .finished(.success(let image)):
            name = "finished"
            (data.width, data.height, data.path) = (image.width, image.height, try site.path(recipe, source))
        case .finished(.failure(let error)):
            name = "failed"
            data.message = error.message
        }
        let json = String(decoding: try JSONEncoder().encode(data), as: UTF8.self)
        return ByteBuffer(string: "event: \(name)\ndata: \(json)\n\n")
    }
}
