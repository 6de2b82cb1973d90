import Pipeline
import PipelineCaching
import Variants

/// The picture that an answer gives, for the logs.
package struct AnswerPicture: Sendable, Hashable {
    /// For example `webp`.
    package let format: String
    /// Pixels: `300x200`.
    package let size: String
    /// The key of a variant, or the digest of an original: `pipectl cache inspect` finds either by its first digits.
    package let key: String

    /// The picture of a variant's answer.
    init(_ image: ImageResponse) {
        (format, size) = (image.format.rawValue, "\(image.width)x\(image.height)")
        key = image.key ?? image.digest
    }

    /// Describes the picture in an answer of `/original`; nil if the original is not a picture.
    init?(_ record: OriginalRecord?) {
        guard let record, let header = record.header else { return nil }
        (format, size) = (header.format.rawValue, "\(header.width)x\(header.height)")
        key = record.digest
    }

    /// `webp 300x200 1a2b3c4d5e6f`.
    var text: String { "\(format) \(size) \(key.prefix(12))" }
}
