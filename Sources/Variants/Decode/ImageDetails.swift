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
        bytes.withUnsafeBytes { read(ByteReader($0), header.format) }
    }

    static func read(_ reader: ByteReader, _ format: ImageFormat) -> ImageDetails {
        switch format {
        case .jpeg: jpeg(reader)
        case .png: png(reader)
        case .webp: webp(reader)
        case .gif: ImageDetails(colourSpace: .rgb, bitDepth: 8)
        case .avif, .heif: HEIFHeader.details(reader)
        case .tiff: tiff(reader)
        case .jxl: JXLHeader.details(reader)
        case .svg: ImageDetails()
        }
    }

    private static func jpeg(_ reader: ByteReader) -> ImageDetails {
        var details = ImageDetails()
        // `ImageHeader.probe` has read the same segments and reported their errors.
        _ = try? JPEGHeader.forEachSegment(reader) { marker, segment, _ in
            if JPEGHeader.isFrame(marker), details.bitDepth == nil {
                details.bitDepth = segment.byte(0).map(Int.init)
                details.colourSpace =
                    switch segment.byte(5) {
                    case 1: .grey
                    case 3: .rgb
                    case 4: .cmyk
                    default: nil
                    }
            } else if marker == 0xE1, details.exif == nil, segment.matches("Exif\0\0") {
                details.exif = EXIFSummary(segment.part(6))
            } else if marker == 0xE2, segment.matches("ICC_PROFILE\0"), segment.byte(12) == 1 {
                // The profile's name is in the first of its segments.
                details.profileName = ProfileName.read(segment.part(14))
            }
            return marker != 0xDA
        }
        return details
    }

    private static func png(_ reader: ByteReader) -> ImageDetails {
        var details = ImageDetails()
        let colour = reader.byte(25)
        details.colourSpace = colour == 0 || colour == 4 ? .grey : .rgb
        details.bitDepth = colour == 3 ? 8 : reader.byte(24).map(Int.init)
        PNGHeader.forEachChunk(reader) { type, data in
            switch type {
            case "eXIf": details.exif = EXIFSummary(data)
            // The profile is compressed, but its name precedes it in plain text.
            case "iCCP": details.profileName = data.text(0, limit: 79)
            case "sRGB": if details.profileName == nil { details.profileName = "sRGB" }
            default: break
            }
        }
        return details
    }

    private static func webp(_ reader: ByteReader) -> ImageDetails {
        var details = ImageDetails(colourSpace: .rgb, bitDepth: 8)
        guard reader.matches("VP8X", at: 12) else { return details }
        WebPHeader.forEachChunk(reader) { type, _, data in
            switch type {
            case "EXIF": details.exif = EXIFSummary(data.withoutExifPrefix)
            case "ICCP": details.profileName = ProfileName.read(data)
            default: break
            }
        }
        return details
    }

    private static func tiff(_ reader: ByteReader) -> ImageDetails {
        guard let file = TIFFHeader(reader) else { return ImageDetails() }
        var details = ImageDetails()
        details.colourSpace =
            switch file.value(262) {
            case 0, 1: .grey
            case 2, 3, 6: .rgb
            case 5: .cmyk
            case 8: .lab
            default: nil
            }
        details.bitDepth = file.short(258) ?? 1
        details.exif = EXIFSummary(reader)
        details.profileName = file.block(34675).flatMap { ProfileName.read($0) }
        return details
    }
}
