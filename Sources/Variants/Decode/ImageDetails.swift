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
    /// The name of the colour profile.
    public var profileName: String?
    public var exif: EXIFSummary?

    /// Reads the details of a file whose header has already been read. Safe on any bytes; damaged details are nil.
    public static func read(_ bytes: [UInt8], _ header: ImageHeader) -> ImageDetails {
        bytes.withUnsafeBytes { header.format.decoder?.details(ByteReader($0)) ?? ImageDetails() }
    }
}
