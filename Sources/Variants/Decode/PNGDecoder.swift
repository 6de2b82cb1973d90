/// PNG. Reads the chunks (W3C PNG, third edition) IHDR, tRNS, eXIf and iCCP.
enum PNGDecoder: OriginalDecoder {
    static let format = ImageFormat.png
    static let loader = "pngload_buffer"

    static func recognises(_ file: ByteReader) -> Bool {
        file.matches([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    }

    /// An animated PNG counts as one page, because decoders show its still picture. `profileBytes` is the size in the
    /// file, where the profile is compressed.
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { 30 }
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        guard file.uint32(8) == 13, file.matches("IHDR", at: 12),
            let width = file.uint32(16), let height = file.uint32(20), let depth = file.byte(24),
            let colour = file.byte(25)
        else { throw ImageHeader.damaged("PNG", "it has no complete IHDR chunk") }
        try ImageHeader.checkSize("PNG", width, height)
        var header = ImageHeader(format: .png, width: width, height: height)
        header.hasAlpha = colour == 4 || colour == 6
        header.hasFewColours = colour == 3 || depth < 8
        var hasPixels = false
        forEachChunk(file) { type, data in
            switch type {
            case "tRNS": header.hasAlpha = true
            case "eXIf": header.orientation = TIFFHeader.orientation(exif: data) ?? 1
            case "iCCP": header.profileBytes = data.count
            case "IDAT": hasPixels = true
            default: break
            }
        }
        // libpng reports no useful error for this.
        guard hasPixels else { throw ImageHeader.damaged("PNG", "it has no pixels (no IDAT chunk)") }
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        var details = ImageDetails()
        let colour = file.byte(25)
        details.colourSpace = colour == 0 || colour == 4 ? .grey : .rgb
        details.bitDepth = colour == 3 ? 8 : file.byte(24).map(Int.init)
        forEachChunk(file) { type, data in
            switch type {
            case "eXIf": details.exif = EXIFSummary(data)
            // The profile is compressed, but its name precedes it in plain text.
            case "iCCP": details.profileName = data.text(0, limit: 79)
            case "caBX": details.hasContentCredentials = true
            case "sRGB": if details.profileName == nil { details.profileName = "sRGB" }
            default: break
            }
        }
        return details
    }

    static func drawnBits(_ file: ByteReader) -> Double? { [0, 4].contains(file.byte(25)) ? 2 : 4 }

    static func mended(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? { MendedPNG.bytes(bytes) }

    /// Calls `body` with each chunk after IHDR, up to IEND.
    static func forEachChunk(_ reader: ByteReader, _ body: (_ type: String, _ data: ByteReader) -> Void) {
        var offset = 33
        while let length = reader.uint32(offset), let type = reader.fourCharacters(offset + 4), type != "IEND" {
            body(type, reader.part(offset + 8, length))
            offset += 12 + length
        }
    }
}
