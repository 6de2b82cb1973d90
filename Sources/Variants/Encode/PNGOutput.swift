/// Encodes PNG with libpng.
///
/// Chooses the smallest color type that can represent the picture (docs/benchmarks.md lists sizes and times):
/// - Up to 256 colors (or 16 opaque grays) are stored as a palette with 1, 2, 4 or 8 bits. It is unfiltered, because
///   filters only increase the size of indexes.
/// - If there are only grays, they are stored with 8 bits, and with alpha if needed. This is not possible if a profile
///   is kept, because the profile is for RGB.
/// - Other pictures are stored as RGB or RGBA, or with a dithered palette from libimagequant if the original has few
///   colors.
///
/// If there is no palette, each row uses its best filter, because libvips' default of no filter makes photographs a
/// third larger. Fully transparent pixels are written as black, which takes almost no space.
struct PNGOutput: OutputEncoder {
    static let format = ImageFormat.png
    static let summary =
        "PNG, compressed losslessly. Unless `lossless` is given, originals with a palette, "
        + "including GIFs, produce a PNG with a palette, which may lose colors."
    static let example = "png"
    static let losslessness = Losslessness.unlessFewColors
    /// The quality of the palette if the original has few colors. This is the best quality that 256 colors allow.
    static let defaultQuality = 100
    static let canBeProgressive = true
    /// The efforts are zlib compression levels, which are at least 1.
    static let efforts: DefaultEfforts? = DefaultEfforts(quick: 6, thorough: 8)
    static func heedsStops(_ output: ResolvedOutput) -> Bool { true }
    static let saver: String? = "pngsave_target"
    private static let effortFactors = [0.4, 0.4, 0.45, 0.5, 0.7, 0.8, 1, 1.2, 2, 9]
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double {
        // libimagequant takes most of the time if colors are reduced.
        (output.isLossless ? 160 : 400) * effortFactors[output.effort]
    }

    let job: EncodeJob

    /// - Parameter quality: below 100, colors are reduced as far as libimagequant's quality estimate allows.
    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        let visible = try pixels.blackWhereUnseen(job.control)
        let png: [UInt8]
        if quality == 100, let exact = try exact(visible) {
            png = exact
        } else {
            let paper = try visible.commonColor(job.control)
            png = try PNGChunk.palette(in: save(visible.image(), quantized: quality), keeping: paper)
        }
        return job.kept.inserted(intoPNG: PNGChunk.removing("pHYs", from: png))
    }

    /// Returns a file with all colors of the picture. Returns nil if there are many colors and the output may have
    /// fewer.
    private func exact(_ pixels: EncodablePixels) throws(RenderError) -> [UInt8]? {
        let isGray = job.kept.profile == nil ? try pixels.isGray(job.control) : false
        if let palette = try PNGPalette(pixels, job.control),
            !isGray || pixels.bands == 4 || palette.colors.count <= 16
        {
            return try write(palette, pixels)
        }
        guard isGray || job.output.isLossless else { return nil }
        return try save((isGray ? pixels.gray(job.control) : pixels).image(), filter: "all")
    }

    private func save(_ image: Image, filter: String) throws(RenderError) -> [UInt8] {
        return try image.saved(
            by: "pngsave_target",
            [
                "in": .image(image), "filter": .string(filter), "interlace": .bool(job.output.isProgressive),
                "compression": .int(max(1, job.output.effort)), "strip": true,
            ], job.control)
    }

    /// Saves with a reduced palette. Below quality 100, the file must be small, so zlib uses its highest level, and
    /// dithering, which adds noise, is off. At the lowest qualities, libimagequant chooses about 16 colors anyway.
    private func save(_ image: Image, quantized quality: Int) throws(RenderError) -> [UInt8] {
        return try image.saved(
            by: "pngsave_target",
            [
                "in": .image(image), "filter": "none", "interlace": .bool(job.output.isProgressive),
                "compression": .int(quality < 100 ? 9 : max(1, job.output.effort)), "palette": true,
                "Q": .int(quality), "dither": .double(quality < 100 ? 0 : 1), "bitdepth": .int(quality > 2 ? 8 : 4),
                "strip": true,
            ], job.control)
    }

    /// Writes a palette picture. Packed index rows have the layout of 8-bit gray rows, so libvips compresses them as
    /// such, and the header is replaced afterwards.
    private func write(_ palette: PNGPalette, _ pixels: EncodablePixels) throws(RenderError) -> [UInt8] {
        // Interlacing rearranges individual pixels, so interlaced indexes use one byte each.
        let depth = job.output.isProgressive ? 8 : palette.depth
        let rows = try palette.rows(of: pixels, depth: depth, job.control)
        let rowBytes = (pixels.width * depth + 7) / 8
        let image = try Image(PixelStorage(rows), width: rowBytes, height: pixels.height, bands: 1).labeled("b-w")
        return try palette.header(in: save(image, filter: "none"), width: pixels.width, depth: depth)
    }
}

/// The palette of a picture that has few colors.
struct PNGPalette {
    /// The colors, with red, green, blue and alpha from the highest byte down. Transparent colors come first, which
    /// keeps `tRNS` short.
    let colors: [UInt32]
    private let hasAlpha: Bool

    init?(_ pixels: EncodablePixels, _ control: RenderControl) throws(RenderError) {
        var seen = ColorTable(limit: 256)
        var last: UInt32?
        let fits = try pixels.forEachColor(control) { color in
            if color == last { return true }
            last = color
            return seen.insert(color)
        }
        guard fits else { return nil }
        colors = seen.colors.sorted { ($0 & 0xFF, $0) < ($1 & 0xFF, $1) }
        hasAlpha = pixels.bands == 4
    }

    /// The number of bits per index: 1, 2, 4 or 8.
    var depth: Int { [1, 2, 4].first { colors.count <= 1 << $0 } ?? 8 }

    /// Returns the indexes of all pixels, packed from the highest bit down. Each row starts at a new byte.
    func rows(
        of pixels: EncodablePixels, depth: Int, _ control: RenderControl
    ) throws(RenderError) -> [UInt8] {
        var table = ColorTable(limit: 256)
        for color in colors { table.insert(color) }
        let rowBytes = (pixels.width * depth + 7) / 8
        var rows = [UInt8](repeating: 0, count: rowBytes * pixels.height)
        var (x, at) = (0, 0)
        _ = try pixels.forEachColor(control) { color in
            let shift = 8 - depth - x * depth % 8
            rows[at + x * depth / 8] |= UInt8(table.index(of: color) << shift)
            x += 1
            if x == pixels.width { (x, at) = (0, at + rowBytes) }
            return true
        }
        return rows
    }

    /// Returns the header that turns a gray PNG of these rows into a palette PNG: IHDR, `PLTE` and `tRNS` (PNG third
    /// edition, 11.2, 11.3.1.1).
    func header(in png: [UInt8], width: Int, depth: Int) throws(RenderError) -> [UInt8] {
        // IHDR follows the signature, and its 13 bytes of data start at offset 16.
        guard png.count > 33, png[12..<16].elementsEqual("IHDR".utf8) else {
            throw RenderError(.encodingFailed, "libpng's file does not begin with a header")
        }
        let size = Bytes.bigEndian(width) + png[20..<24]
        var chunks = PNGChunk.bytes("IHDR", size + [UInt8(depth), 3, 0, 0, png[28]])
        chunks += PNGChunk.bytes(
            "PLTE", colors.flatMap { [UInt8($0 >> 24), UInt8($0 >> 16 & 0xFF), UInt8($0 >> 8 & 0xFF)] })
        let alphas = colors.map { UInt8($0 & 0xFF) }.prefix { $0 < 255 }
        if hasAlpha, !alphas.isEmpty { chunks += PNGChunk.bytes("tRNS", Array(alphas)) }
        return png[..<8] + chunks + png[33...]
    }
}

extension EncodablePixels {
    /// Calls `body` with the red, green, blue and alpha values of each pixel until it returns false. Returns true if
    /// `body` never returned false.
    fileprivate func forEachColor(
        _ control: RenderControl, _ body: (UInt32) -> Bool
    ) throws(RenderError) -> Bool {
        let bytes = storage.bytes
        for run in runs {
            try control.check()
            for at in stride(from: run.lowerBound, to: run.upperBound, by: bands) {
                let rgb = UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16 | UInt32(bytes[at + 2]) << 8
                if !body(rgb | (bands == 4 ? UInt32(bytes[at + 3]) : 255)) { return false }
            }
        }
        return true
    }

    /// Returns the most frequent color in a sample of the rows.
    fileprivate func commonColor(_ control: RenderControl) throws(RenderError) -> UInt32 {
        var counts: [UInt32: Int] = [:]
        var (last, length, at) = (UInt32(0), 0, 0)
        _ = try forEachColor(control) { color in
            at += 1
            if at / width % 8 != 0 { return true }
            if color == last {
                length += 1
            } else {
                counts[last, default: 0] += length
                (last, length) = (color, 1)
            }
            return true
        }
        counts[last, default: 0] += length
        return counts.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key ?? 0
    }

    fileprivate func isGray(_ control: RenderControl) throws(RenderError) -> Bool {
        try forEachColor(control) { $0 >> 24 == $0 >> 16 & 0xFF && $0 >> 24 == $0 >> 8 & 0xFF }
    }

    /// Returns the pixels with a single color band and, if they have alpha, an alpha band.
    fileprivate func gray(_ control: RenderControl) throws(RenderError) -> EncodablePixels {
        let result = PixelStorage(byteCount: storage.count / bands * (bands - 2))
        let (from, to) = (storage.bytes, result.mutableBytes)
        for run in runs {
            try control.check()
            var at = run.lowerBound / bands * (bands - 2)
            for pixel in stride(from: run.lowerBound, to: run.upperBound, by: bands) {
                to[at] = from[pixel]
                if bands == 4 { to[at + 1] = from[pixel + 3] }
                at += bands - 2
            }
        }
        return EncodablePixels(storage: result, width: width, height: height, bands: bands - 2)
    }

    fileprivate func blackWhereUnseen(_ control: RenderControl) throws(RenderError) -> EncodablePixels {
        if bands < 4 { return self }
        let isBlack = try forEachColor(control) { $0 & 0xFF != 0 || $0 == 0 }
        if isBlack { return self }
        let result = PixelStorage(byteCount: storage.count)
        result.write(storage.bytes, at: 0)
        let to = result.mutableBytes
        for run in runs {
            try control.check()
            for at in stride(from: run.lowerBound, to: run.upperBound, by: 4) where to[at + 3] == 0 {
                to[at] = 0
                to[at + 1] = 0
                to[at + 2] = 0
            }
        }
        return EncodablePixels(storage: result, width: width, height: height, bands: 4)
    }
}

extension KeptBlobs {
    /// Returns the file with `iCCP`, `eXIf` and `iTXt` chunks inserted after IHDR (PNG third edition, 11.3).
    func inserted(intoPNG png: [UInt8]) -> [UInt8] {
        let endOfHeader = 8 + 25
        guard !isEmpty, png.count > endOfHeader else { return png }
        var chunks: [UInt8] = []
        if let profile { chunks += PNGChunk.bytes("iCCP", [UInt8]("icc\0\0".utf8) + PNGChunk.storedZlib(profile)) }
        if let tiff { chunks += PNGChunk.bytes("eXIf", tiff) }
        if let xmp { chunks += PNGChunk.bytes("iTXt", [UInt8]("XML:com.adobe.xmp\0\0\0\0\0".utf8) + xmp) }
        return png[..<endOfHeader] + chunks + png[endOfHeader...]
    }
}

/// PNG chunks, including the CRC-32 (ISO 3309) and zlib streams of stored blocks (RFC 1950, RFC 1951 §3.2.4).
enum PNGChunk {
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
    }

    static func bytes(_ type: String, _ body: [UInt8]) -> [UInt8] {
        let checked = [UInt8](type.utf8) + body
        return Bytes.bigEndian(body.count) + checked + Bytes.bigEndian(Int(crc32(checked)))
    }

    /// Removes the first chunk of a type before the pixels. libvips writes `pHYs` because every image in memory has a
    /// resolution.
    static func removing(_ type: String, from png: [UInt8]) -> [UInt8] {
        guard let place = place(of: type, in: png) else { return png }
        return Array(png[..<place.lowerBound] + png[place.upperBound...])
    }

    /// Returns the range of the first non-empty chunk of a type before the pixels.
    private static func place(of type: String, in png: [UInt8]) -> Range<Int>? {
        png.withUnsafeBytes { bytes in
            var found: Range<Int>?
            PNGDecoder.forEachChunk(ByteReader(bytes), until: "IDAT") { name, data in
                guard found == nil, name == type, let start = data.all.baseAddress, let origin = bytes.baseAddress,
                    start - origin + data.count + 4 <= bytes.count
                else { return }
                // A chunk's length and type precede its data, and a checksum follows it.
                found = start - origin - 8..<start - origin + data.count + 4
            }
            return found
        }
    }

    /// Replaces a palette color that is almost equal to the given color with the given color. libimagequant mixes the
    /// white background of a picture with similar colors, and the result would then differ from the white of the page.
    static func palette(in png: [UInt8], keeping color: UInt32) -> [UInt8] {
        guard let place = place(of: "PLTE", in: png) else { return png }
        var entries = Array(png[(place.lowerBound + 8)..<(place.upperBound - 4)])
        let kept = [color >> 24, color >> 16 & 0xFF, color >> 8 & 0xFF].map { Int($0) }
        func distance(_ at: Int) -> Int { (0..<3).map { abs(Int(entries[at + $0]) - kept[$0]) }.max() ?? 0 }
        let nearest = stride(from: 0, to: entries.count - 2, by: 3).min { distance($0) < distance($1) }
        guard let nearest, distance(nearest) <= 8 else { return png }
        entries.replaceSubrange(nearest..<(nearest + 3), with: kept.map { UInt8($0) })
        return png[..<place.lowerBound] + bytes("PLTE", entries) + png[place.upperBound...]
    }

    static func crc32(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(~UInt32(0)) { table[Int(($0 ^ UInt32($1)) & 0xFF)] ^ ($0 >> 8) }
    }

    static func storedZlib(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [0x78, 0x01]
        var at = 0
        repeat {
            let count = min(65535, bytes.count - at)
            let isLast: UInt8 = at + count == bytes.count ? 1 : 0
            let low = UInt8(count & 0xFF)
            let high = UInt8(count >> 8)
            result += [isLast, low, high, ~low, ~high] + bytes[at..<(at + count)]
            at += count
        } while at < bytes.count
        var (a, b): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            a = (a + UInt32(byte)) % 65521
            b = (b + a) % 65521
        }
        return result + [UInt8(b >> 8), UInt8(b & 0xFF), UInt8(a >> 8), UInt8(a & 0xFF)]
    }
}
