import Pipeline
import PipelineSupport

/// A built-in sample picture for the page, so that recipes can be tried without a network connection.
///
/// A sample is written as the source `sample:NAME`. Its URL would lead to this server, and the pipeline does not fetch
/// from this server.
struct PageSample: Sendable {
    let name: String
    let title: String
    /// The file name in the sample's path.
    let file: String
    /// The media type.
    let type: String
    let bytes: [UInt8]
    /// The SHA-256 digest of the bytes.
    let digest: String

    static let all = EmbeddedFile.samples.map(PageSample.init)

    private init(_ embedded: EmbeddedFile) {
        name = String(embedded.name.prefix { $0 != "." })
        title = name.prefix(1).uppercased() + name.dropFirst()
        file = embedded.name
        type = embedded.mediaType
        bytes = embedded.bytes
        digest = sha256Hex(bytes)
    }

    /// Returns the sample that a source names, or nil if the source is not a sample.
    init?(source: String) {
        guard let sample = Self.all.first(where: { $0.source == source }) else { return nil }
        self = sample
    }

    var source: String { "sample:" + name }
    var path: String { "page/samples/" + file }
    var imageSource: ImageSource { .bytes(bytes, name: source) }
}
