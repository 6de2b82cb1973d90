import Pipeline

/// Writes the outputs of a batch below a folder of a bucket. A store shows an object only once it is whole.
struct BucketOutput: Sendable {
    let store: S3Transport
    /// Its path ends in `/`.
    let folder: SourceURL
    let cacheControl: String?

    /// Whether a text can be the value of `Cache-Control`.
    static func isCacheControl(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }

    func contains(_ object: SourceURL) -> Bool { object.normalised.utf8.starts(with: folder.normalised.utf8) }

    /// The URL of an output.
    func object(_ name: String) -> String {
        folder.normalised + SourceURL.canonical(Array(name.utf8), keeping: UInt8(ascii: "/"))
    }

    /// Writes what is to be written, unless the object already has these bytes, type and `cacheControl`.
    ///
    /// - Parameter refusal: asked before an object with different bytes is replaced; why it must not be, or nil.
    func write(_ output: BatchOutput, refusal: (String) async -> String?) async -> BatchOutput {
        guard let variant = output.variant, let path = output.line.output else { return output }
        var output = output
        do {
            guard let object = try SourceURL(s3: path) else { return output }
            let fields =
                [HeaderField("Content-Type", variant.mediaType)]
                + (cacheControl.map { [HeaderField("Cache-Control", $0)] } ?? [])
            let isSame = try await store.holds(object, variant.bytes, fields)
            if isSame == false, let reason = await refusal(path) { throw FileError("write", path, reason) }
            if isSame != true { try await store.put(variant.bytes, to: object, fields) }
            output.isWritten(isSame != true)
        } catch {
            let message = (error as? FetchError)?.message ?? (error as? SourceError)?.message ?? "\(error)"
            output.line.error = BatchFailure(code: .outputFailed, message: message)
        }
        return output
    }
}
