/// Reads the header of a JPEG XL codestream, either bare or in a container (ISO/IEC 18181-1 §D, 18181-2 §9).
///
/// libjxl applies the orientation while decoding, so the size in the header is the oriented size, and the orientation
/// is always 1. An animation has one page, because only its first frame is decoded.
enum JXLHeader {
    /// The maximum number of channels in addition to color. libjxl decodes all channels, but a picture needs only
    /// alpha.
    static let maxExtraChannels = 4

    static func isJXL(_ reader: ByteReader) -> Bool {
        reader.matches([0xFF, 0x0A])
            || reader.matches([0, 0, 0, 12, 0x4A, 0x58, 0x4C, 0x20, 13, 10, 0x87, 10])
    }

    static func parse(_ reader: ByteReader) throws(RenderError) -> ImageHeader {
        try HEIFHeader.checkCount(of: boxes(reader), "JPEG XL")
        let found = try read(reader)
        try ImageHeader.checkSize("JPEG XL", found.width, found.height)
        guard found.extraChannels <= maxExtraChannels else {
            throw RenderError(
                .overLimit,
                "JPEG XL with \(found.extraChannels) extra channels; the maximum is \(maxExtraChannels)")
        }
        let isTurned = found.orientation >= 5
        var header = ImageHeader(
            format: .jxl, encodedWidth: isTurned ? found.height : found.width,
            encodedHeight: isTurned ? found.width : found.height,
            hasAlpha: found.hasAlpha)
        header.hold(
            bytesPerPixel: JXLDecoder.bytesPerPixel(
                isPlain: found.bitDepth <= 8 && !found.hasAlpha))
        return header
    }

    static func details(_ reader: ByteReader) -> ImageDetails {
        var details = ImageDetails()
        // `ImageHeader.probe` has already read the same header and reported its errors.
        if let found = try? read(reader) {
            details.colorSpace = found.isGray ? "grey" : "RGB"
            details.bitDepth = found.bitDepth
            details.profileName = found.hdr?.title
        }
        for box in boxes(reader) {
            switch box.type {
            case "Exif":
                // The first four bytes are the offset of the TIFF header, relative to their end.
                if let skipped = box.data.uint32(0) { details.exif = EXIFSummary(box.data.part(4 + skipped)) }
            case "jhgm": details.hasGainMap = true
            case "jumb": if JXLDecoder.isCredentials(box.data) { details.hasContentCredentials = true }
            default: break
            }
        }
        return details
    }

    struct Found {
        var width = 0
        var height = 0
        var orientation = 1
        var bitDepth = 8
        var extraChannels = 0
        var hasAlpha = false
        var isGray = false
        var isAnimated = false
        /// Whether colors are premultiplied by alpha.
        var isPremultiplied = false
        /// The color space if it is PQ or HLG. The profile that libjxl creates for these color spaces is far too dark.
        var hdr: CodedColorSpace?
    }

    static func read(_ reader: ByteReader) throws(RenderError) -> Found {
        var codestream = reader
        if !reader.matches([0xFF, 0x0A]) {
            codestream = reader.part(reader.count)
            for box in boxes(reader) where codestream.count == 0 {
                // A `jxlp` part begins with its index. In all files from encoders, the first part contains the complete
                // headers.
                if box.type == "jxlc" {
                    codestream = box.data
                } else if box.type == "jxlp" {
                    codestream = box.data.part(4)
                }
            }
        }
        var bits = BitReader(codestream.part(2))
        guard codestream.matches([0xFF, 0x0A]), let found = metadata(&bits) else {
            throw ImageHeader.damaged("JPEG XL", "its header is truncated")
        }
        return found
    }

    /// Returns the boxes of a container. A bare codestream has no boxes.
    private static func boxes(_ reader: ByteReader) -> some Sequence<HEIFHeader.Box> {
        HEIFHeader.boxes(reader.byte(0) == 0 ? reader : reader.part(reader.count))
    }

    /// Reads SizeHeader and ImageMetadata up to the color space. Returns nil if the bits end before that.
    private static func metadata(_ bits: inout BitReader) -> Found? {
        var found = Found()
        guard let size = size(&bits), let isDefault = bits.flag() else { return nil }
        (found.width, found.height) = size
        if isDefault { return found }
        guard let hasExtra = bits.flag() else { return nil }
        if hasExtra {
            guard let orientation = bits.number(3), let hasIntrinsicSize = bits.flag(),
                !hasIntrinsicSize || Self.size(&bits) != nil,
                let hasPreview = bits.flag(), !hasPreview || skipPreview(&bits),
                let isAnimated = bits.flag(), !isAnimated || skipAnimation(&bits)
            else { return nil }
            found.orientation = orientation + 1
            found.isAnimated = isAnimated
        }
        // The flag between the depth and the channels is modular_16bit_buffers.
        guard let depth = depth(&bits), bits.flag() != nil,
            let channels = bits.choice((0, 0), (1, 0), (2, 4), (1, 12))
        else { return nil }
        found.bitDepth = depth
        found.extraChannels = channels
        // The caller rejects pictures with more channels, so the rest of their header is not needed.
        for _ in 0..<channels where channels <= maxExtraChannels {
            guard let alpha = skipChannel(&bits) else { return nil }
            if alpha != .none, !found.hasAlpha {
                (found.hasAlpha, found.isPremultiplied) = (true, alpha == .associated)
            }
        }
        if channels > maxExtraChannels { return found }
        guard bits.flag() != nil, let isUsualColor = bits.flag() else { return nil }
        if !isUsualColor {
            guard let hasProfile = bits.flag(), let space = bits.enumeration() else { return nil }
            found.isGray = space == 1
            if !hasProfile, space < 2 { found.hdr = hdr(&bits, isGray: space == 1) }
        }
        return found
    }

    /// Reads the rest of ColourEncoding. Returns the color space if it is PQ or HLG with named primaries and a named
    /// white point.
    private static func hdr(_ bits: inout BitReader, isGray: Bool) -> CodedColorSpace? {
        guard let white = bits.enumeration(), let primaries = isGray ? 1 : bits.enumeration(), bits.flag() == false,
            let transfer = bits.enumeration(), transfer == 16 || transfer == 18,
            let code = [[1, 1]: 1, [1, 9]: 9, [1, 11]: 12, [11, 11]: 11][[white, primaries]]
        else { return nil }
        return CodedColorSpace(primaries: code, transfer: transfer, " (JPEG XL)")
    }

    private static func size(_ bits: inout BitReader) -> (Int, Int)? {
        func edge(_ bits: inout BitReader, _ isSmall: Bool) -> Int? {
            isSmall ? bits.number(5).map { ($0 + 1) * 8 } : bits.choice((1, 9), (1, 13), (1, 18), (1, 30))
        }
        guard let isSmall = bits.flag(), let height = edge(&bits, isSmall), let ratio = bits.number(3) else {
            return nil
        }
        if ratio == 0 { return edge(&bits, isSmall).map { ($0, height) } }
        let (across, down) = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)][ratio - 1]
        return (height * across / down, height)
    }

    private static func skipPreview(_ bits: inout BitReader) -> Bool {
        guard let isInEighths = bits.flag() else { return false }
        func edge(_ bits: inout BitReader) -> Int? {
            isInEighths
                ? bits.choice((16, 0), (32, 0), (1, 5), (33, 9)) : bits.choice((1, 6), (65, 8), (321, 10), (1345, 12))
        }
        guard edge(&bits) != nil, let ratio = bits.number(3) else { return false }
        return ratio != 0 || edge(&bits) != nil
    }

    private static func skipAnimation(_ bits: inout BitReader) -> Bool {
        bits.choice((100, 0), (1000, 0), (1, 10), (1, 30)) != nil
            && bits.choice((1, 0), (1001, 0), (1, 8), (1, 10)) != nil
            && bits.choice((0, 0), (0, 3), (0, 16), (0, 32)) != nil && bits.flag() != nil
    }

    /// Reads the number of bits per sample. Returns nil if the bits end before that.
    private static func depth(_ bits: inout BitReader) -> Int? {
        guard let isFloat = bits.flag() else { return nil }
        guard isFloat else { return bits.choice((8, 0), (10, 0), (12, 0), (1, 6)) }
        guard let depth = bits.choice((32, 0), (16, 0), (24, 0), (1, 6)), bits.number(4) != nil else { return nil }
        return depth
    }

    private enum ChannelAlpha { case none, straight, associated }

    /// Skips the description of a channel. Returns whether the channel is alpha, or nil if the bits end before that.
    private static func skipChannel(_ bits: inout BitReader) -> ChannelAlpha? {
        guard let isDefault = bits.flag() else { return nil }
        if isDefault { return .straight }
        guard let type = bits.enumeration(), depth(&bits) != nil, bits.choice((0, 0), (3, 0), (4, 0), (1, 3)) != nil,
            let name = bits.choice((0, 0), (0, 4), (16, 5), (48, 10)), bits.skip(name * 8)
        else { return nil }
        switch type {
        case 0: return bits.flag().map { $0 ? .associated : .straight }
        case 2: return bits.skip(4 * 16) ? ChannelAlpha.none : nil  // A spot color.
        case 5: return bits.choice((1, 0), (0, 2), (3, 4), (19, 8)).map { _ in .none }  // A color filter array.
        default: return ChannelAlpha.none
        }
    }
}

/// Reads integers with any number of bits, starting with the lowest bit of each byte. Returns nil if the bytes end
/// first.
private struct BitReader {
    private let bytes: ByteReader
    private var position = 0

    init(_ bytes: ByteReader) { self.bytes = bytes }

    mutating func number(_ count: Int) -> Int? {
        var value = 0
        for index in 0..<count {
            guard let byte = bytes.byte(position >> 3) else { return nil }
            value |= Int(byte >> (position & 7) & 1) << index
            position += 1
        }
        return value
    }

    mutating func flag() -> Bool? { number(1).map { $0 == 1 } }

    /// Reads a U32: a two-bit selector chooses a constant and the number of additional bits. The value of these bits is
    /// added to the constant.
    mutating func choice(
        _ first: (Int, Int), _ second: (Int, Int), _ third: (Int, Int), _ fourth: (Int, Int)
    ) -> Int? {
        guard let selector = number(2) else { return nil }
        let (constant, count) = [first, second, third, fourth][selector]
        return number(count).map { constant + $0 }
    }

    mutating func enumeration() -> Int? { choice((0, 0), (1, 0), (2, 4), (18, 6)) }

    mutating func skip(_ count: Int) -> Bool {
        position += count
        return position <= bytes.count * 8
    }
}
