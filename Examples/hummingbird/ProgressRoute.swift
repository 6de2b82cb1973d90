import Foundation
import Hummingbird
import ImageServer
import Pipeline

/// `GET /photos/progress?source=URL`: sends the events of a load as server-sent events.
struct ProgressRoute: Sendable {
    /// The data of an event, as JSON. The members depend on the event.
    struct EventData: Encodable {
        var width, height, received, expected: Int?
        var isStale: Bool?
        /// The path of the finished picture.
        var path: String?
        var message: String?
    }

    let pipeline: ImagePipeline
    let site: Site
    let recipe: Recipe

    /// Throws if the preset is missing, so that the error occurs at startup and not during a request.
    init(pipeline: ImagePipeline, site: Site) throws {
        (self.pipeline, self.site) = (pipeline, site)
        recipe = try pipeline.recipe("@progress")
    }

    func add(to router: Router<BasicRequestContext>) {
        router.get("/photos/progress") { request, _ in
            let source = try request.uri.queryParameters.require("source")
            // `ImageSource(source)` would interpret other strings as a path on this machine.
            let image = ImageRequest(.url(source), recipe: recipe)
            let body = ResponseBody { writer in
                // Every client has a separate load. The pipeline fetches and renders once for all of them.
                let load = pipeline.load(image)
                // A failed write exits the loop but does not cancel the load.
                defer { load.cancel() }
                // Hummingbird 2.28.1 keeps reading while the closure runs, and calls the handler when the client closes
                // the connection, even during a pause in writing. The connection closes after this response. The other
                // routes reuse connections and therefore do not use this method.
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
