import Hummingbird
import ImageServer
import Pipeline
import PipelineService
import Variants

/// A Hummingbird application with pictures below `/images`, uploads below `/photos`, and routes of its own.
@main struct ImageApp {
    static func main() async throws {
        // First, before there is a second thread: the program is its own render worker.
        RenderWorker.runIfAsked()
        let environment = Environment()
        let photos = PhotoStore()
        var caches = PipelineConfiguration()
        caches.cacheFolder = environment.get("CACHE_FOLDER") ?? "image-cache"
        caches.providers["photos"] = photos
        // Uploads come from strangers: decode them in locked-down processes.
        var workers = WorkerConfiguration()
        workers.executable = "/proc/self/exe"
        workers.isPrewarmed = true
        caches.isolation = .workers(workers)
        caches.presets = ["progress": "thumbnail:640,webp"]
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
        try ProgressRoute(pipeline: pipeline, site: site).add(to: router)
        let address = BindAddress.hostname(
            environment.get("HOST") ?? "127.0.0.1", port: environment.get("PORT", as: Int.self) ?? 8080)
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
