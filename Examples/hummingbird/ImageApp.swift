import Hummingbird
import ImageServer
import Pipeline
import PipelineService

/// A Hummingbird application that serves pictures at `/images`, accepts uploads at `/photos`, and has other routes.
@main struct ImageApp {
    static func main() async throws {
        // First, before there is a second thread: the program is its own render worker.
        RenderWorker.runIfAsked()
        let environment = Environment()
        let photos = PhotoStore()
        var caches = PipelineConfiguration()
        caches.cacheFolder = environment.get("CACHE_FOLDER") ?? "image-cache"
        caches.providers["photos"] = photos
        // Uploads are not trusted, so decode them in sandboxed processes.
        var workers = WorkerConfiguration()
        workers.executable = "/proc/self/exe"
        workers.isPrewarmed = true
        caches.rendering.isolation = .workers(workers)
        caches.rendering.presets = ["progress": "thumbnail:640,webp"]
        if environment.get("LOOPBACK_ORIGINS") == "yes" {
            // For tests with origins on this machine, which respond when the test lets them.
            caches.fetch.allowPrivateAddresses = .all
            (caches.fetch.stallTimeout, caches.fetch.totalTimeout) = (.seconds(1_000), .seconds(1_000))
        }
        let metrics = PrometheusMetrics()
        caches.metrics = metrics
        let pipeline = try ImagePipeline(caches)
        var configuration = ServerConfiguration()
        configuration.mountPoint = "/images"
        configuration.allowUnsigned = true
        // Scripts on every page may read pictures, and origins receive the tenant.
        configuration.crossOrigin = ["*"]
        configuration.forwardedFields = ["X-Tenant"]
        // A CDN can purge by tags. `POST /images/purge` does the same here, with this token.
        configuration.tags = .cacheTag
        configuration.adminToken = environment.get("ADMIN_TOKEN")
        configuration.metrics = metrics
        let site = try Site(pipeline: pipeline, configuration: configuration)

        let router = Router()
        router.get("/") { _, _ in "Hello" }
        for method in [HTTPRequest.Method.get, .head, .options, .post, .delete] {
            router.on("/images/**", method: method) { request, _ in
                Response(await site.respond(to: request.head, body: request.body.map(\.readableBytesView)))
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
    /// Converts the site's response to a Hummingbird response.
    init(_ answer: (head: HTTPResponse, body: AnswerBody)) {
        let (head, body) = answer
        let content = ResponseBody(contentLength: body.count) { writer in
            for try await piece in body { try await writer.write(ByteBuffer(bytes: piece)) }
            try await writer.finish(nil)
        }
        self.init(status: head.status, headers: head.headerFields, body: content)
    }
}
