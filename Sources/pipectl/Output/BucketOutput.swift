import Pipeline
import PipelineSupport

/// Writes the outputs of a batch to a folder in a bucket. An object becomes visible only after it is complete.
struct BucketOutput: Sendable {
    let store: any FolderStore
    /// The output folder. The path ends in `/`.
    let folder: SourceURL
    let cacheControl: String?

    /// Whether a string is valid as the value of `Cache-Control`.
    static func isCacheControl(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }

    func contains(_ object: SourceURL) -> Bool { object.normalized.utf8.starts(with: folder.normalized.utf8) }

    /// Returns the URL of an output.
    func object(_ name: String) -> String {
        folder.normalized + SourceURL.canonical(Array(name.utf8), keeping: UInt8(ascii: "/"))
    }

    /// Writes the output, unless the object already has the same bytes, type and `cacheControl`.
    ///
    /// - Parameters:
    ///   - threads: The threads on which sources are looked up.
    ///   - sources: Checked before an object with different bytes is replaced.
    func write(_ output: BatchOutput, on threads: OwnedThreads, _ sources: SourceGuard) async -> BatchOutput {
        guard let variant = output.variant, let path = output.line.output else { return output }
        var output = output
        do {
            guard let object = try SourceURL(stored: path) else { return output }
            let fields =
                [HeaderField("Content-Type", variant.mediaType)]
                + (cacheControl.map { [HeaderField("Cache-Control", $0)] } ?? [])
            let isSame = try await store.holds(object, variant.bytes, fields)
            if isSame == false, let reason = await threads.run({ sources.refusal(replacing: path) }) {
                throw FileError("write", path, reason)
            }
            if isSame != true { try await store.put(variant.bytes, to: object, fields) }
            output.isWritten(isSame != true)
        } catch {
            let message = (error as? FetchError)?.message ?? (error as? SourceError)?.message ?? "\(error)"
            output.line.error = BatchFailure(code: .outputFailed, message: message)
        }
        return output
    }
}
