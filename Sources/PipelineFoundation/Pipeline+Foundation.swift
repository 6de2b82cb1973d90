#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif
public import Pipeline

extension ImageSource {
    /// Creates a source from a URL. A `file` URL becomes a path.
    public init(_ url: URL) {
        self = url.isFileURL ? .file(url.path(percentEncoded: false)) : Self(url.absoluteString)
    }

    /// Creates a source from bytes, with a name for messages.
    public init(_ data: Data, name: String) { self = .bytes([UInt8](data), name: name) }
}

extension ImagePipeline {
    /// Returns an image for the source at a URL and a recipe, like `image(for:recipe:)` with strings.
    public func image(for url: URL, recipe: String? = nil) async throws(PipelineError) -> ImageResponse {
        var request = ImageRequest(ImageSource(url))
        if let recipe { request.recipe = try self.recipe(recipe) }
        return try await respond(to: request)
    }
}

extension ImageResponse {
    /// The encoded picture.
    public var data: Data { Data(bytes) }

    /// The time when the variant was rendered, or nil if the response is an original.
    public var creationDate: Date? { created.map { Date(timeIntervalSince1970: $0) } }
}

extension OriginalResponse {
    /// The body as received, without decoding its content coding, or nil if the body is in a file that cannot be read.
    /// Reading a body from a file blocks the thread.
    public var data: Data? { file.map { $0.bytes().map { Data($0) } } ?? Data(body) }

    /// The time when the response arrived.
    public var responseDate: Date { Date(timeIntervalSince1970: responseTime) }
}
