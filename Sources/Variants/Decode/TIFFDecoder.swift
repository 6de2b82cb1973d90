/// TIFF and BigTIFF. The picture of the first directory is decoded.
enum TIFFDecoder: OriginalDecoder {
    static let format = ImageFormat.tiff
    static let loader = "tiffload_buffer"

    static func recognises(_ file: ByteReader) -> Bool { TIFFHeader.isTIFF(file) }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        guard let directories = TIFFHeader(file) else { throw ImageHeader.damaged("TIFF", "its header is cut short") }
        guard let width = directories.value(256), let height = directories.value(257) else {
            throw ImageHeader.damaged("TIFF", "its first directory has no image size")
        }
        try ImageHeader.checkSize("TIFF", width, height)
        var header = ImageHeader(format: .tiff, width: width, height: height)
        header.pages = directories.countPages()
        header.orientation = directories.orientation ?? 1
        let colours =
            switch directories.value(262) ?? 1 {  // PhotometricInterpretation
            case 2, 6, 8: 3
            case 5: 4
            default: 1
            }
        header.hasAlpha = (directories.value(277) ?? 1) > colours  // SamplesPerPixel
        if let entry = directories.entry(34675) { header.profileBytes = directories.count(entry) ?? 0 }
        return header
    }

    static func drawnBits(_ file: ByteReader) -> Double? {
        // Compression: fax, LZW, Deflate under both its numbers, PackBits.
        guard let directories = TIFFHeader(file), let compression = directories.value(259),
            [2, 3, 4, 5, 8, 32773, 32946].contains(compression)
        else { return nil }
        return (directories.value(277) ?? 1) < 3 ? 2 : 4  // SamplesPerPixel
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        guard let directories = TIFFHeader(file) else { return ImageDetails() }
        var details = ImageDetails()
        details.colourSpace =
            switch directories.value(262) {
            case 0, 1: .grey
            case 2, 3, 6: .rgb
            case 5: .cmyk
            case 8: .lab
            default: nil
            }
        details.bitDepth = directories.short(258) ?? 1
        details.exif = EXIFSummary(file)
        details.hasContentCredentials = directories.block(52545) != nil
        details.profileName = directories.block(34675).flatMap { ProfileName.read($0) }
        return details
    }
}
