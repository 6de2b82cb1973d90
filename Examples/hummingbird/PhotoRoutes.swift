import Hummingbird
import ImageServer
import Pipeline

/// The application's own store. A real application would use a database or a bucket. The pipeline queries the store for
/// `photos:ID`.
actor PhotoStore: OriginalProvider {
    struct Photo: Sendable {
        let original: [UInt8]
        /// A version that changes whenever the bytes of the original change.
        let version: String
        /// The variants, by the names in `PhotoRoutes.recipes`.
        let variants: [String: ImageResponse]
    }

    private var photos: [String: Photo] = [:]

    func keep(_ photo: Photo, as id: String) { photos[id] = photo }
    func variant(_ name: String, of id: String) -> ImageResponse? { photos[id]?.variants[name] }

    func original(_ path: String, unless version: String?) -> ProvidedOriginal {
        guard let photo = photos[path] else { return .missing }
        return photo.version == version ? .unchanged : .bytes(photo.original, version: photo.version)
    }
}

/// Accepts uploads and serves pictures of them.
struct PhotoRoutes: Sendable {
    /// The response to an upload.
    struct Uploaded: ResponseEncodable {
        let width, height: Int
        /// A placeholder to draw while the picture loads.
        let blurHash: String?
        let thumb: String
        let variants: [String: String]
    }

    /// The variants that are rendered for every upload immediately.
    static let recipes: [String: Recipe] = [
        "icon": .thumbnail(64, .fill).webp(), "card": .thumbnail(320, 240, .fill).webp(),
        "page": .thumbnail(1024).webp(), "print": .thumbnail(2048).jpeg(),
    ]
    /// The maximum size of an upload in bytes. Larger uploads receive a 413.
    static let uploadLimit = 20_000_000

    let pipeline: ImagePipeline
    let site: Site
    let store: PhotoStore

    func add(to router: Router<BasicRequestContext>) {
        router.post("/photos/:id") { request, context in
            let body = try await request.body.collect(upTo: Self.uploadLimit)
            do {
                return try await upload(Array(buffer: body), as: try context.parameters.require("id"))
            } catch let error as PipelineError {
                throw HTTPError(HTTPResponse.Status(code: error.code.status), message: error.message)
            }
        }
        router.get("/photos/:id/variants/:name") { _, context in
            let (id, name) = (try context.parameters.require("id"), try context.parameters.require("name"))
            guard let variant = await store.variant(name, of: id) else { throw HTTPError(.notFound) }
            return Response(
                status: .ok, headers: [.contentType: variant.mediaType],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: variant.bytes)))
        }
        for method in [HTTPRequest.Method.get, .head] {
            router.on("/photos/:id/thumb", method: method) { request, context in
                // Rendered on request, in a format that the client accepts.
                let image = ImageRequest(
                    .url("photos:" + (try context.parameters.require("id"))), recipe: .thumbnail(96, .fill))
                return Response(await site.respond(to: request.head, with: image, cacheControl: "public, max-age=60"))
            }
        }
    }

    private func upload(_ bytes: [UInt8], as id: String) async throws -> Uploaded {
        var request = ImageRequest(.bytes(bytes, name: "the upload"))
        // The application stores the pictures itself, so the caches need not store them.
        request.storage = []
        let information = try await pipeline.information(for: request)
        let variants = try await withThrowingTaskGroup(of: (String, ImageResponse).self) { group in
            for (name, recipe) in Self.recipes {
                request.recipe = recipe
                group.addTask { [request] in (name, try await pipeline.respond(to: request)) }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        await store.keep(.init(original: bytes, version: information.response.digest, variants: variants), as: id)
        return Uploaded(
            width: information.header.width, height: information.header.height,
            blurHash: information.colors?.blurHash, thumb: "/photos/\(id)/thumb",
            variants: Dictionary(uniqueKeysWithValues: variants.keys.map { ($0, "/photos/\(id)/variants/\($0)") }))
    }
}
