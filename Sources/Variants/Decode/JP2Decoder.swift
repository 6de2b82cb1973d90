/// Decodes JPEG 2000 with OpenJPEG. Disabled by default because few originals outside of archives use the format. It is
/// used only in workers, because OpenJPEG has had many vulnerabilities.
enum JP2Decoder: OriginalDecoder {
    static let format = ImageFormat.jp2
    static let isOnByDefault = false
    static let isForWorkersOnly = true
    static let loader = "jp2kload_buffer"
    static let packages = (debian12: "libvips42 with libopenjp2-7", debian13: "libvips42t64 with libopenjp2-7")

    static func recognizes(_ file: ByteReader) -> Bool { JP2Header.isJP2(file) }
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 100 }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        let found = try JP2Header(file)
        try ImageHeader.checkSize("JPEG 2000", found.width, found.height)
        try HeaderParts.check("JPEG 2000", found.tiles, "tiles", most: HeaderParts.tiles)
        var header = ImageHeader(
            format: .jp2, encodedWidth: found.width, encodedHeight: found.height, hasAlpha: found.hasAlpha,
            profileBytes: found.profile?.count ?? 0, heldBytes: found.heldBytes)
        header.levels = found.levels
        header.readsWindows = true
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        // `ImageHeader.probe` has already read the same header and reported its errors.
        guard let found = try? JP2Header(file) else { return ImageDetails() }
        var details = ImageDetails()
        details.colorSpace = [1: "grey", 3: "RGB", 4: "CMYK"][found.colors]
        details.bitDepth = found.bitDepth
        details.profileName = found.profile.flatMap { ProfileName.read($0) }
        return details
    }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let found = try JP2Header(ByteReader(bytes))
        if let refusal = found.refusal { throw RenderError(.undecodable, refusal) }
        let image = try load(.bytes(bytes), [("page", .int(shrink.trailingZeroBitCount))])
        return found.isPremultiplied && image.hasAlpha ? try image.dividedByAlpha() : image
    }
}

/// Reads the header of a JPEG 2000 codestream, either bare or in a container (ISO/IEC 15444-1 §A and §I).
struct JP2Header {
    private(set) var width = 0
    private(set) var height = 0
    /// The number of color components.
    private(set) var colors = 1
    private(set) var components = 0
    private(set) var bitDepth = 8
    private(set) var tiles = 1
    /// The number of times that OpenJPEG can halve the picture.
    private(set) var levels = 0
    private(set) var isPremultiplied = false
    private(set) var profile: ByteReader?
    /// The number of bytes that OpenJPEG and libvips keep in addition to the file.
    private(set) var heldBytes = 0
    /// The reason why the picture is not decoded, or nil if it is.
    private(set) var refusal: String?

    var hasAlpha: Bool { components > colors }

    static func isJP2(_ file: ByteReader) -> Bool {
        isCodestream(file) || file.matches([0, 0, 0, 12, 0x6A, 0x50, 0x20, 0x20, 13, 10, 0x87, 10])
    }

    private static func isCodestream(_ file: ByteReader) -> Bool { file.matches([0xFF, 0x4F, 0xFF, 0x51]) }

    /// - Throws: `undecodable` if the header is damaged or truncated.
    init(_ file: ByteReader) throws(RenderError) {
        var codestream = file
        var space: Int?
        if !Self.isCodestream(file) {
            try HEIFHeader.checkCount(of: HEIFHeader.boxes(file), "JPEG 2000")
            codestream = HEIFHeader.child("jp2c", of: file) ?? file.part(file.count)
            let header = HEIFHeader.child("jp2h", of: file) ?? file.part(file.count)
            try HEIFHeader.checkCount(of: HEIFHeader.boxes(header), "JPEG 2000")
            space = readColors(header)
        }
        guard Self.isCodestream(codestream), readSize(codestream.part(6)) else {
            throw ImageHeader.damaged("JPEG 2000", "its header is truncated")
        }
        colors = space.flatMap { [12: 4, 16: 3, 17: 1, 18: 3][$0] } ?? (components < 3 ? 1 : 3)
        if profile?.matches("GRAY", at: 16) == true { colors = 1 }
        if profile?.matches("CMYK", at: 16) == true { colors = 4 }
        if refusal == nil, components < colors || components > colors + 1 {
            refusal = "a JPEG 2000 with \(components) components is not supported; convert it to RGB"
        }
        if refusal == nil, !(8...16).contains(bitDepth) {
            refusal = "a JPEG 2000 with \(bitDepth)-bit samples is not supported; convert it to 8 or 16 bits"
        }
        readCoding(codestream)
    }

    /// Reads the boxes in the header of a container. Returns the enumerated color space.
    private mutating func readColors(_ header: ByteReader) -> Int? {
        var space: Int?
        for box in HEIFHeader.boxes(header) {
            switch box.type {
            // The first description takes precedence. Its method is 1 for an enumerated space and 2 for an ICC profile.
            case "colr" where space == nil && profile == nil:
                if box.data.byte(0) == 1 {
                    space = box.data.uint32(3)
                } else if box.data.byte(0) == 2 {
                    profile = box.data.part(3)
                }
            case "cdef":
                // Each channel has its number, its type (2 for premultiplied alpha) and its association.
                isPremultiplied = (0..<min(5, box.data.uint16(0) ?? 0)).contains { box.data.uint16(4 + $0 * 6) == 2 }
            case "pclr": refusal = "a JPEG 2000 with a palette is not supported; convert it to RGB"
            default: break
            }
        }
        return space
    }

    /// Reads the content of the SIZ marker segment. Returns false if it is truncated or invalid.
    private mutating func readSize(_ segment: ByteReader) -> Bool {
        let edges = (0..<8).compactMap { segment.uint32(2 + $0 * 4) }
        guard edges.count == 8, let count = segment.uint16(34), count > 0, let depth = segment.byte(36) else {
            return false
        }
        let (tileWidth, tileHeight) = (edges[4], edges[5])
        (width, height, components) = (edges[0] - edges[2], edges[1] - edges[3], count)
        bitDepth = Int(depth & 0x7F) + 1
        guard tileWidth > 0, tileHeight > 0, edges[6] <= edges[2], edges[7] <= edges[3] else { return false }
        let across = (edges[0] - edges[6] + tileWidth - 1) / tileWidth
        let down = (edges[1] - edges[7] + tileHeight - 1) / tileHeight
        guard across > 0, down > 0 else { return false }
        // The product of larger numbers would overflow.
        tiles = min(across, 1 << 20) * min(down, 1 << 20)
        tileSize = (min(tileWidth, max(1, width)), min(tileHeight, max(1, height)))
        return true
    }

    private var tileSize = (width: 1, height: 1)

    /// Reads the COD marker segment, which precedes the first tile.
    private mutating func readCoding(_ codestream: ByteReader) {
        var offset = 2
        var segments = 0
        var block = 4096
        while let marker = codestream.uint16(offset), marker != 0xFF90, let length = codestream.uint16(offset + 2),
            length > 1
        {
            let segment = codestream.part(offset + 4, length - 2)
            offset += 2 + length
            segments += 1
            guard segments < HeaderParts.segments else { break }
            guard marker == 0xFF52 else { continue }
            levels = min(32, Int(segment.byte(5) ?? 0))
            block = 1 << (Int(segment.byte(6) ?? 4) & 15 + Int(segment.byte(7) ?? 4) & 15 + 4)
            // Precincts limit the size of code-blocks.
            guard (segment.byte(0) ?? 0) & 1 == 1 else { break }
            for index in 0...levels {
                let both = Int(segment.byte(10 + index) ?? 0xFF)
                block = min(block, 1 << max(0, both & 15 + both >> 4 - (index == 0 ? 0 : 2)))
            }
            break
        }
        // OpenJPEG keeps about 8 kB for each tile and component, 400 bytes for each code-block of a tile, and the
        // numbers of a decoded tile. libvips keeps the rows of tiles that it is about to need.
        let samples = Double(tileSize.width) * Double(tileSize.height) * Double(min(components, 5))
        let isTiled = tiles > 1
        let decoded = isTiled ? 8 * samples : 0
        let rows = Double(isTiled ? tileSize.height : 512) * Double(width) * Double(min(components, 5)) * 5
        heldBytes = Int(
            min(Double(tiles * components) * 8192 + samples / Double(block) * 400 + decoded + rows, 0x1p40))
    }
}
