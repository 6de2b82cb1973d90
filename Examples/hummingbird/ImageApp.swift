import Hummingbird
import ImageServer
import Pipeline

/// A Hummingbird application with pictures below `/images`, beside routes of its own.
@main struct ImageApp {
    static func main() async throws {
        let environment = Environment()
        var caches = PipelineConfiguration()
        caches.cacheFolder = environment.get("CACHE_FOLDER") ?? "image-cache"
        if environment.get("LOOPBACK_ORIGINS") == "yes" { caches.fetch.allowPrivateAddresses = .all }
        let pipeline = try ImagePipeline(caches)
        var configuration = ServerConfiguration()
        configuration.mountPoint = "/images"
        configuration.allowUnsigned = true
        let site = Site(pipeline: pipeline, configuration: configuration)

        let router = Router()
        router.get("/") { _, _ in "Hello" }
        for method in [HTTPRequest.Method.get, .head] {
            router.on("/images/**", method: method) { request, _ in
                let (head, body) = await site.respond(to: request.head)
                return Response(status: head.status, headers: head.headerFields, body: content(of: body))
            }
        }
        let address = BindAddress.hostname("127.0.0.1", port: environment.get("PORT", as: Int.self) ?? 8080)
        let application = Application(router: router, configuration: .init(address: address), services: [pipeline])
        try await application.runService()
    }

    private static func content(of body: AnswerBody) -> ResponseBody {
        ResponseBody(contentLength: body.count) { writer in
            for try await piece in body { try await writer.write(ByteBuffer(bytes: piece)) }
            try await writer.finish(nil)
        }
    }
}
