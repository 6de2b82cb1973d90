import Hummingbird
import ImageServer
import Pipeline
import PipelineService

/// A Hummingbird application with pictures below `/images`, uploads below `/photos`, and routes of its own.
@main struct ImageApp {
    static func main() async throws {
        let environment = Environment()
        let photos = PhotoStore()
        var caches = PipelineConfiguration()
        caches.cacheFolder = environment.get("CACHE_FOLDER") ?? "image-cache"
        caches.providers["photos"] = photos
        if environment.get("LOOPBACK_ORIGINS") == "yes" {
            // For tests, whose origins are on this machine and wait for them.
            caches.fetch.allowPrivateAddresses = .all
            (caches.fetch.stallSeconds, caches.fetch.totalSeconds) = (1_000, 1_000)
        }
        let pipeline = try ImagePipeline(caches)
        var configuration = ServerConfiguration()
        configuration.mountPoint = "/images"
        configuration.allowUnsigned = true
        let site = Site(pipeline: pipeline, configuration: configuration)

        let router = Router()
        router.get("/") { _, _ in "Hello" }
        for method in [HTTPRequest.Method.get, .head] {
            router.on("/images/**", method: method) { request, _ in
                Response(await site.respond(to: request.head))
            }
        }
        PhotoRoutes(pipeline: pipeline, site: site, store: photos).add(to: router)
        ProgressRoute(pipeline: pipeline, site: site).add(to: router)
        let address = BindAddress.hostname("127.0.0.1", port: environment.get("PORT", as: Int.self) ?? 8080)
        let application = Application(router: router, configuration: .init(address: address), services: [pipeline])
        try await application.runService()
    }
}

extension Response {
    /// The site's answer as Hummingbird sends it.
    init(_ answer: (head: HTTPResponse, body: AnswerBody)) {
        let (head, body) = answer
        let content = ResponseBody(contentLength: body.count) { writer in
            for try await piece in body { try await writer.write(ByteBuffer(bytes: piece)) }
            try await writer.finish(nil)
        }
        self.init(status: head.status, headers: head.headerFields, body: content)
    }
}
