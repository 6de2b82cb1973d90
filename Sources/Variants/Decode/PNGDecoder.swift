/// Decodes PNG. Reads the chunks (W3C PNG, third edition) IHDR, tRNS and eXIf, and the color chunks of §11.3.2.
enum PNGDecoder: OriginalDecoder {
    static let format = ImageFormat.png
    static let loader = "pngload_buffer"

    static func recognizes(_ file: ByteReader) -> Bool {
        file.matches([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    }

    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double { header.heldBytes > 0 ? 40 : 30 }

    /// Reads the header. The number of pages is the number of pictures in an animation. `profileBytes` is the
    /// compressed size of the profile in the file.
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        guard file.uint32(8) == 13, file.matches("IHDR", at: 12),
            let width = file.uint32(16), let height = file.uint32(20), let depth = file.byte(24),
            let color = file.byte(25)
        else { throw ImageHeader.damaged("PNG", "it has no complete IHDR chunk") }
        try ImageHeader.checkSize("PNG", width, height)
        var header = ImageHeader(format: .png, encodedWidth: width, encodedHeight: height)
        header.hasAlpha = color == 4 || color == 6
        header.hasFewColors = color == 3 || depth < 8
        // The rows of an interlaced picture are complete only after the last pass. A palette may contain alpha.
        if file.byte(28) == 1 {
            let samples = [0: 2, 2: 4, 3: 4, 4: 2, 6: 4][color] ?? 4
            header.hold(bytesPerPixel: Double(samples * (depth == 16 ? 2 : 1)))
        }
        var (hasPixels, dataChunks, others) = (false, 0, 0)
        forEachChunk(file) { type, data in
            if type == "IDAT" || type == "fdAT" { dataChunks += 1 } else { others += 1 }
            guard others <= HeaderParts.chunks else { return }
            switch type {
            case "tRNS": header.hasAlpha = true
            case "eXIf": header.orientation = TIFFHeader.orientation(exif: data) ?? 1
            case "iCCP": header.profileBytes = data.count
            case "IDAT": hasPixels = true
            default: break
            }
        }
        try HeaderParts.check("PNG", others, "chunks other than pixel data", most: HeaderParts.chunks)
        try HeaderParts.check("PNG", dataChunks, "chunks of pixel data", most: HeaderParts.dataChunks)
        // libpng reports no useful error for this problem.
        guard hasPixels else { throw ImageHeader.damaged("PNG", "it has no pixels (no IDAT chunk)") }
        let animation = animation(file)
        header.pages = animation.pages
        if let first = animation.hidden, first.width != width || first.height != height { header.hasAlpha = true }
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        var details = ImageDetails()
        let kind = file.byte(25)
        details.colorSpace = kind == 0 || kind == 4 ? "grey" : "RGB"
        details.bitDepth = kind == 3 ? 8 : file.byte(24).map(Int.init)
        forEachChunk(file) { type, data in
            switch type {
            case "eXIf": details.exif = EXIFSummary(data)
            // The profile is compressed, but it is preceded by its name in plain text.
            case "iCCP": details.profileName = data.text(0, limit: 79)
            case "caBX": details.hasContentCredentials = true
            default: break
            }
        }
        details.profileName = color(file, hasProfile: details.profileName != nil)?.title ?? details.profileName
        return details
    }

    static func drawnBits(_ file: ByteReader) -> Double? { [0, 4].contains(file.byte(25)) ? 2 : 4 }

    static func repaired(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? { RepairedPNG.bytes(bytes) }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let file = ByteReader(bytes)
        var image: Image
        if let frame = animation(file).hidden, let canvas = PixelSize(file) {
            let still = stillPicture(file, frame)
            image = try load(.stored(withoutTexts(still.bytes) ?? still), [])
            if frame.width != canvas.width || frame.height != canvas.height {
                image = try image.withAlpha().placed(on: canvas, x: frame.x, y: frame.y, extend: "black")
            }
        } else {
            image = try load(withoutTexts(bytes).map { .stored($0) } ?? .bytes(bytes), [])
        }
        return try ColorConversion.described(image) { color(file, hasProfile: $0) }
    }

    /// This is the size of the file and of a copy without text.
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int { 2 * count + header.heldBytes }

    /// Returns the file without compressed text, except for the first XMP packet. Returns nil if the file has no such
    /// text. Each text can inflate to 8 MB, and no recipe uses it.
    private static func withoutTexts(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? {
        guard let origin = bytes.baseAddress else { return nil }
        var (kept, from, hasPacket) = ([] as [Range<Int>], 0, false)
        forEachChunk(ByteReader(bytes)) { type, data in
            guard type == "zTXt" || type == "iTXt", let place = data.all.baseAddress else { return }
            let start = place - origin
            if type == "iTXt", !hasPacket, data.matches("XML:com.adobe.xmp\0") {
                hasPacket = true
            } else {
                // A chunk's length and type precede its data, and a checksum follows it.
                kept.append(from..<start - 8)
                from = min(bytes.count, start + data.count + 4)
            }
        }
        if kept.isEmpty { return nil }
        kept.append(from..<bytes.count)
        let storage = PixelStorage(byteCount: kept.reduce(0) { $0 + $1.count })
        var at = 0
        for part in kept {
            storage.write(UnsafeRawBufferPointer(rebasing: bytes[part]), at: at)
            at += part.count
        }
        return storage
    }

    static let readsDamaged = true

    /// Opens the rows that can be decoded completely. Other rows are transparent, because libvips would repeat earlier
    /// rows instead.
    static func openDamaged(_ bytes: UnsafeRawBufferPointer, shrink: Int) throws(RenderError) -> Image {
        let file = ByteReader(bytes)
        guard let canvas = PixelSize(file), let (part, rows) = RepairedPNG.part(bytes), rows > 0 else {
            throw ImageHeader.damaged("PNG", "no row of its pixel data can be read")
        }
        let plain = withoutTexts(part.bytes) ?? part
        let image = try ColorConversion.described(load(.stored(plain), failOn: "none", [])) {
            color(file, hasProfile: $0)
        }
        guard rows < canvas.height, image.height == canvas.height else { return image }
        return try image.area(PixelRectangle(x: 0, y: 0, width: image.width, height: rows)).withAlpha()
            .placed(on: canvas, x: 0, y: 0, extend: "black")
    }

    /// Returns the number of pictures. If the first frame of an animation is not the default image (IDAT), also returns
    /// the position of the first frame on the canvas. Viewers of animations do not show the default image in that case
    /// (§4.9).
    ///
    /// An animation with chunks in the wrong order is treated as a still picture that consists of the default image.
    private static func animation(_ file: ByteReader) -> (pages: Int, hidden: PixelRectangle?) {
        var (isAnimated, hasDefault, isDefaultShown, hasData) = (false, false, false, false)
        var frames = 0
        var frame: PixelRectangle?
        forEachChunk(file) { type, data in
            switch type {
            case "acTL" where !hasDefault && frames == 0: isAnimated = true
            case "IDAT": hasDefault = true
            case "fcTL":
                frames += 1
                if !hasDefault { isDefaultShown = true }
                guard !hasData, let width = data.uint32(4), let height = data.uint32(8), let x = data.uint32(12),
                    let y = data.uint32(16)
                else { return }
                frame = PixelRectangle(x: x, y: y, width: width, height: height)
            case "fdAT" where frame != nil: hasData = true
            default: break
            }
        }
        guard isAnimated else { return (1, nil) }
        guard !isDefaultShown, hasData, let frame, let canvas = PixelSize(file), frame.width > 0, frame.height > 0,
            frame.x + frame.width <= canvas.width, frame.y + frame.height <= canvas.height
        else { return (max(1, frames), nil) }
        return (frames, frame)
    }

    /// Returns the first frame after the default image as a separate PNG.
    private static func stillPicture(_ file: ByteReader, _ frame: PixelRectangle) -> PixelStorage {
        let size = Bytes.bigEndian(frame.width) + Bytes.bigEndian(frame.height)
        var png = [UInt8](file.part(0, 8).all) + PNGChunk.bytes("IHDR", size + [UInt8](file.part(24, 5).all))
        var (hasDefault, isComplete) = (false, false)
        var pixels: [UInt8] = []
        forEachChunk(file) { type, data in
            switch type {
            case "IDAT": hasDefault = true
            case "fcTL": isComplete = !pixels.isEmpty
            case "fdAT" where !isComplete: pixels += data.part(4).all  // The pixels follow the sequence number.
            case "acTL", "fdAT": break
            default: if !hasDefault { png += PNGChunk.bytes(type, [UInt8](data.all)) }
            }
        }
        return PixelStorage(png + PNGChunk.bytes("IDAT", pixels) + PNGChunk.bytes("IEND", []))
    }

    /// Returns the color space. The order of precedence is cICP, iCCP, sRGB, and gAMA with cHRM (§11.3.2). If there are
    /// several chunks of a type, the first one is used.
    static func color(_ file: ByteReader, hasProfile: Bool) -> CodedColorSpace? {
        var chunks: [String: ByteReader] = [:]
        forEachChunk(file, until: "IDAT") { type, data in chunks[type] = chunks[type] ?? data }
        // PNG defines only full-range RGB.
        if let data = chunks["cICP"], data.matches([0, 1], at: 2), let codes = data.uint16(0),
            var color = CodedColorSpace(primaries: codes >> 8, transfer: codes & 255, " (cICP)")
        {
            if let light = chunks["cLLI"]?.uint32(0), light > 0 { color.peak = Double(light) / 10_000 }
            return color
        }
        if hasProfile { return nil }
        if chunks["sRGB"] != nil { return CodedColorSpace(primaries: 1, transfer: 13, "") }
        guard let gamma = chunks["gAMA"]?.uint32(0) else { return nil }
        let points = chunks["cHRM"].map { data in (0..<8).map { data.uint32($0 * 4) ?? 0 } }
        return CodedColorSpace(gamma: gamma, chromaticities: points)
    }

    /// Calls `body` with each chunk after IHDR. Stops at IEND, at the first chunk of type `last`, or after
    /// `HeaderParts.maxCounted` chunks.
    static func forEachChunk(
        _ reader: ByteReader, until last: String = "IEND", _ body: (_ type: String, _ data: ByteReader) -> Void
    ) {
        var (offset, count) = (33, 0)
        while let length = reader.uint32(offset), let type = reader.fourCharacters(offset + 4), type != "IEND",
            type != last, count < HeaderParts.maxCounted
        {
            body(type, reader.part(offset + 8, length))
            offset += 12 + length
            count += 1
        }
    }
}

extension PixelSize {
    /// Reads the canvas of a PNG. Returns nil if the header is truncated.
    fileprivate init?(_ png: ByteReader) {
        guard let width = png.uint32(16), let height = png.uint32(20) else { return nil }
        self.init(width: width, height: height)
    }
}
