import Pipeline
import PipelineSupport

/// A picture of the page's own, so that there is something to try without a network.
///
/// As a source it is written `sample:NAME`: its URL would be the server's own, which the pipeline does not fetch.
struct PageSample: Sendable {
    let name: String
    let title: String
    /// The name in its path.
    let file: String
    /// Media type.
    let type: String
    let bytes: [UInt8]
    /// SHA-256 of the bytes.
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

    /// The sample that a source names; nil if it is another source.
    init?(source: String) {
        guard let sample = Self.all.first(where: { $0.source == source }) else { return nil }
        self = sample
    }

    var source: String { "sample:" + name }
    var path: String { "page/samples/" + file }
    var imageSource: ImageSource { .bytes(bytes, name: source) }
}
