import Pipeline
import PipelineCaching
import Variants

/// Describes the picture in a response, for the logs.
package struct AnswerPicture: Sendable, Hashable {
    /// The format, for example `webp`.
    package let format: String
    /// Width and height in pixels, for example `300x200`.
    package let size: String
    /// The key of a variant, or the digest of an original. `pipectl cache inspect` finds the picture by the first
    /// digits.
    package let key: String

    /// Describes a rendered variant.
    init(_ image: ImageResponse) {
        // For an original, this is the size as stored, which `/original` also logs.
        let header = image.key == nil ? image.record.header : nil
        let (width, height) = (header?.encodedWidth ?? image.width, header?.encodedHeight ?? image.height)
        (format, size) = (image.format.rawValue, "\(width)x\(height)")
        key = image.key ?? image.digest
    }

    /// Describes the picture in a response of `/original`. Returns nil if the original is not a picture.
    init?(_ record: OriginalRecord?) {
        guard let record, let header = record.header else { return nil }
        (format, size) = (header.format.rawValue, "\(header.encodedWidth)x\(header.encodedHeight)")
        key = record.digest
    }

    /// The description in the log, for example `webp 300x200 1a2b3c4d5e6f`.
    var text: String { "\(format) \(size) \(key.prefix(12))" }
}
