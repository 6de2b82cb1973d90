// Originals that the program provides.

import Pipeline

// snippet.provider
/// Pictures from a database, represented here by a dictionary.
actor Photos: OriginalProvider {
    private var rows: [String: (bytes: [UInt8], version: String)] = [:]

    func put(_ bytes: [UInt8], _ id: String, version: String) { rows[id] = (bytes, version) }

    func original(_ path: String, unless version: String?) -> ProvidedOriginal {
        guard let row = rows[path] else { return .missing }
        return row.version == version ? .unchanged : .bytes(row.bytes, version: row.version, maxAge: .seconds(60))
    }
}
// snippet.end

// snippet.configure
let photos = Photos()
var configuration = PipelineConfiguration()
configuration.providers["photos"] = photos
let pipeline = try ImagePipeline(configuration)
// snippet.end

// snippet.upload
let upload = try await pipeline.image(for: "samples/originals/dusk-2mp.jpg").bytes
var request = ImageRequest(.bytes(upload, name: "the upload"))
request.storage = []
let information = try await pipeline.information(for: request)
print(information.header.width, "×", information.header.height, information.colors?.blurHash ?? "")
await photos.put(upload, "42", version: information.response.digest)
// snippet.end

// snippet.ask
let thumb = try await pipeline.image(for: "photos:42", recipe: "thumbnail:300,webp")
print(thumb.outcome.rawValue, thumb.width, "×", thumb.height)
// snippet.end

// snippet.purge
_ = try await pipeline.purge(.source("photos:42"))
// snippet.end
await pipeline.shutdown()
