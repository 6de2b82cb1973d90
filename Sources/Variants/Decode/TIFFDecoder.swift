/// Decodes TIFF and BigTIFF. Uses the picture in the first directory, or the full picture if the first one is a reduced
/// version. Smaller pictures are decoded from the smaller versions in a pyramid.
enum TIFFDecoder: OriginalDecoder {
    static let format = ImageFormat.tiff
    static let loader = "tiffload_buffer"

    static func recognizes(_ file: ByteReader) -> Bool { TIFFHeader.isTIFF(file) }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        guard let first = TIFFHeader(file) else { throw ImageHeader.damaged("TIFF", "its header is truncated") }
        let chain = first.chain
        try HeaderParts.check("TIFF", chain.count, "directories", most: HeaderParts.directories)
        let pages = first.pages(in: chain) { refusal($0) == nil }
        var header = try header(of: pages[0], in: chain)
        header.pages = max(1, chain.count)
        for page in pages.dropFirst() {
            // The pages before a damaged page can be selected.
            guard var found = try? Self.header(of: page, in: chain) else { break }
            found.pages = header.pages
            header.furtherPages.append(found)
        }
        return header
    }

    private static func header(of found: TIFFPicture, in chain: [Int]) throws(RenderError) -> ImageHeader {
        let picture = found.directory
        guard let width = picture.value(256), let height = picture.value(257) else {
            throw ImageHeader.damaged("TIFF", "its first directory has no image size")
        }
        try ImageHeader.checkSize("TIFF", width, height)
        var header = ImageHeader(format: .tiff, encodedWidth: width, encodedHeight: height)
        let levels = found.levels(in: chain)
        header.levels = levels.count
        header.readsWindows = found.isTiled && found.isPlain
        header.orientation = picture.orientation ?? 1
        header.hasAlpha = (picture.value(277) ?? 1) > TIFFSamples.colors(picture.value(262) ?? 1)
        // A complete strip or row of tiles is decoded at a time.
        let rows = ([found] + levels).map { part in
            let height = part.size?.height ?? 1
            let rows = min(height, max(1, part.directory.value(323) ?? part.directory.value(278) ?? height))
            return Double(rows) * Double(part.size?.width ?? width)
        }
        let samples = max(1, min(5, picture.value(277) ?? 1))
        let bits = Double(samples * min(64, picture.value(258) ?? 1))
        header.hold(bytesPerPixel: 2 * bits / 8 * (rows.max() ?? 0) / (Double(width) * Double(height)))
        if let entry = picture.entry(34675) { header.profileBytes = picture.count(entry) ?? 0 }
        return header
    }

    static func drawnBits(_ file: ByteReader) -> Double? {
        // Accept fax, LZW, Deflate (which has two numbers) and PackBits.
        guard let directories = TIFFHeader(file), let compression = directories.value(259),
            [2, 3, 4, 5, 8, 32773, 32946].contains(compression)
        else { return nil }
        return (directories.value(277) ?? 1) < 3 ? 2 : 4  // SamplesPerPixel
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        guard let first = TIFFHeader(file) else { return ImageDetails() }
        let picture = first.picture { refusal($0) == nil }.directory
        var details = ImageDetails()
        details.colorSpace =
            switch picture.value(262) {
            case 0, 1: "grey"
            case 2, 3, 6: "RGB"
            case 5: "CMYK"
            case 8, 9: "Lab"
            default: nil
            }
        details.bitDepth = picture.value(258) ?? 1
        details.exif = EXIFSummary(file)
        details.hasContentCredentials = first.block(52545) != nil
        details.profileName = picture.block(34675).flatMap { ProfileName.read($0) }
        return details
    }

    /// A file that libvips would misread is decoded from a modified copy (`TIFFSamples`).
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int { 2 * count + header.heldBytes }

    static func open(
        _ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int
    ) throws(RenderError) -> Image {
        guard let first = TIFFHeader(ByteReader(bytes)) else {
            throw ImageHeader.damaged("TIFF", "its header is truncated")
        }
        return try open(bytes, first.picture { refusal($0) == nil }, shrink: shrink)
    }

    static func open(_ bytes: UnsafeRawBufferPointer, page: Int, shrink: Int) throws(RenderError) -> Image {
        let first = TIFFHeader(ByteReader(bytes))
        guard let pages = first.map({ $0.pages(in: $0.chain) { refusal($0) == nil } }), pages.count >= page else {
            throw RenderError(.notApplicable, "the TIFF has no page \(page)")
        }
        return try open(bytes, pages[page - 1], shrink: shrink)
    }

    private static func open(
        _ bytes: UnsafeRawBufferPointer, _ picture: TIFFPicture, shrink: Int
    ) throws(RenderError) -> Image {
        if let refusal = refusal(picture.directory) { throw RenderError(.undecodable, refusal) }
        if let image = try TIFFSamples(picture.directory)?.image(picture.options) { return image }
        let image = try load(.bytes(bytes), picture.options)
        guard shrink > 1 else { return image }
        let levels = picture.levels(in: TIFFHeader(picture.directory.reader)?.chain ?? [])
        guard shrink.trailingZeroBitCount <= levels.count else {
            throw RenderError(.undecodable, "the TIFF has no version of 1/\(shrink)")
        }
        let level = try load(.bytes(bytes), levels[shrink.trailingZeroBitCount - 1].options).labeled(nil)
        level.copy("icc-profile-data", "exif-data", "xmp-data", "iptc-data", from: image)
        return level
    }

    /// Returns the reason why the samples cannot be decoded, or nil if they can. The tags are BitsPerSample,
    /// SamplesPerPixel, PhotometricInterpretation and SampleFormat (TIFF 6.0 §19: 1 for unsigned, 2 for signed, 3 for
    /// floats, 4 for undefined samples, which are treated as unsigned, and 5 and 6 for complex samples).
    static func refusal(_ picture: TIFFHeader) -> String? {
        let bits = picture.value(258) ?? 1
        let given = picture.value(339) ?? 1
        let kind = given == 4 ? 1 : given
        let photometric = picture.value(262) ?? 1
        // These two values are used for raw camera data.
        if photometric == 32_803 || photometric == 34_892 {
            return "a TIFF with raw camera data is not supported; convert it to RGB"
        }
        if photometric == 10 { return "a TIFF in ITU L*a*b* (used for faxes) is not supported; convert it to RGB" }
        if photometric == 6, !TIFFSamples.isConverted(picture), picture.numbers(530, limit: 2) != [1, 1] {
            return "a TIFF with subsampled YCbCr is supported only with JPEG compression; convert it to RGB"
        }
        let isRead =
            switch (kind, bits) {
            case (1...3, 32): photometric <= 2
            case (1, 1), (1, 2), (1, 4): picture.value(277) ?? 1 == 1
            case (1, 8), (1, 16), (2, 8), (2, 16): true
            default: false
            }
        if isRead { return nil }
        let name = [2: "signed ", 3: "float ", 5: "complex integer ", 6: "complex float "][kind] ?? ""
        return
            "a TIFF with \(bits)-bit \(name)samples is not supported; convert it to 8 or 16 bits, or to 32-bit floats"
    }
}
