/// Reads the chunks of a PNG (W3C PNG, third edition): IHDR, tRNS, eXIf, iCCP.
enum PNGHeader {
    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Animated PNG counts as one page: decoders show its still picture. `profileBytes` is the size in the file, where the
    /// profile is compressed.
    static func parse(_ reader: ByteReader) throws(RenderError) -> ImageHeader {
        guard reader.uint32(8) == 13, reader.matches("IHDR", at: 12),
            let width = reader.uint32(16), let height = reader.uint32(20), let colour = reader.byte(25)
        else { throw ImageHeader.damaged("PNG", "it has no complete IHDR chunk") }
        try ImageHeader.checkSize("PNG", width, height)
        var header = ImageHeader(format: .png, width: width, height: height)
        header.hasAlpha = colour == 4 || colour == 6
        var offset = 33
        var hasPixels = false
        while let length = reader.uint32(offset) {
            let data = reader.part(offset + 8, length)
            if reader.matches("tRNS", at: offset + 4) {
                header.hasAlpha = true
            } else if reader.matches("eXIf", at: offset + 4) {
                header.orientation = TIFFHeader.orientation(exif: data) ?? 1
            } else if reader.matches("iCCP", at: offset + 4) {
                header.profileBytes = data.count
            } else if reader.matches("IDAT", at: offset + 4) {
                hasPixels = true
            } else if reader.matches("IEND", at: offset + 4) {
                break
            }
            offset += 12 + length
        }
        // libpng has no words for this.
        guard hasPixels else { throw ImageHeader.damaged("PNG", "it has no pixels (no IDAT chunk)") }
        return header
    }
}
