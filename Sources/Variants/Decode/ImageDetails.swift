/// Contains details of a picture beyond `ImageHeader`, such as its color space and EXIF data. Read it from
/// `SourceInformation.details`. The details are only for display, and no decision depends on them.
public struct ImageDetails: Sendable, Hashable {
    /// The color space: `RGB` (also for YCbCr and palettes, which decoders convert), `grey`, `CMYK` or `Lab`, or nil if
    /// the file does not specify it.
    public var colorSpace: String?
    /// The number of bits per sample. This is 8 for palettes in PNG and GIF, because their colors have 8 bits per
    /// sample.
    public var bitDepth: Int?
    /// The description of the ICC profile.
    public var profileName: String?
    /// The camera data of the picture.
    public var exif: EXIFSummary?
    /// Whether the file contains a gain map that makes the picture brighter on HDR displays (ISO 21496-1 and its
    /// predecessors from Adobe and Apple). Variants ignore the gain map.
    public var hasGainMap = false
    /// Whether the file contains content credentials, which state who made the picture and how (C2PA 2.1 §11.3).
    /// Variants never contain them, because a variant has different pixels.
    public var hasContentCredentials = false
    /// The features of an SVG that are drawn incorrectly or not at all, by their names in CSS and SVG, such as
    /// `oklch()` and `textPath`. Sorted by name. The list covers known problems of librsvg 2.54, so a picture can be
    /// incorrect without an entry.
    public var unsupportedFeatures: [String] = []

    /// Reads the details of a file with a known header. This is safe for any bytes. Damaged details are nil.
    package static func read(_ bytes: [UInt8], _ header: ImageHeader) -> ImageDetails {
        bytes.withUnsafeBytes { header.format.decoder?.details(ByteReader($0).withoutLeadingSpace) ?? ImageDetails() }
    }
}
