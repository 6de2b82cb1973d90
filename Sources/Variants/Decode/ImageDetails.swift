/// What a file says about its picture beyond `ImageHeader`. It is for display only; no decision depends on it.
public struct ImageDetails: Sendable, Hashable {
    /// What the samples of a pixel mean.
    public enum ColourSpace: String, Sendable, Hashable {
        /// Also YCbCr and palettes, which decoders convert to RGB.
        case rgb = "RGB"
        case grey
        case cmyk = "CMYK"
        case lab = "Lab"
    }

    /// nil if the file does not say.
    public var colourSpace: ColourSpace?
    /// Bits per sample; for the palettes of PNG and GIF 8, the depth of their colours.
    public var bitDepth: Int?
    /// Of the ICC profile, as its description names it.
    public var profileName: String?
    /// What the camera noted.
    public var exif: EXIFSummary?
    /// Whether a map beside the picture makes it brighter on HDR displays (ISO 21496-1, and its forerunners of Adobe and
    /// Apple). Variants are made from the picture alone.
    public var hasGainMap = false
    /// Whether the file says who made it and how (C2PA 2.1 §11.3). No variant carries that on: its pixels are others.
    public var hasContentCredentials = false
    /// Features of an SVG that are drawn wrong or not at all, by the names that CSS and SVG give them, such as `oklch()` and
    /// `textPath`; sorted. The list covers what is known of librsvg 2.54: a picture can be wrong without an entry.
    public var unsupportedFeatures: [String] = []

    /// Reads the details of a file whose header has already been read. Safe on any bytes; damaged details are nil.
    package static func read(_ bytes: [UInt8], _ header: ImageHeader) -> ImageDetails {
        bytes.withUnsafeBytes { header.format.decoder?.details(ByteReader($0).withoutLeadingSpace) ?? ImageDetails() }
    }
}
