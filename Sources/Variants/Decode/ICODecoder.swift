/// Decodes icons and cursors of Windows. Uses the largest picture in the file, which is a PNG or a bitmap with a mask.
///
/// Each 16-byte entry of the directory ends with the length and offset of its picture. The sizes in the entries are not
/// used, because they cannot exceed 256 and may be wrong. The lengths are not used either, because some writers store
/// lengths that are too short.
enum ICODecoder: OriginalDecoder {
    static let format = ImageFormat.ico
    static let loader = "pngload_buffer"

    static func recognizes(_ file: ByteReader) -> Bool {
        (file.matches([0, 0, 1, 0]) || file.matches([0, 0, 2, 0])) && (file.uint16(4, .little) ?? 0) > 0
            && (file.uint32(18, .little) ?? 0) >= 22
    }

    /// Reads the header. `pages` is the number of pictures in the file.
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        var header: ImageHeader
        switch try picture(file) {
        case .png(let png):
            header = try PNGDecoder.header(png)
            header.format = .ico
        case .bitmap(let bitmap):
            header = ImageHeader(
                format: .ico, encodedWidth: bitmap.width, encodedHeight: bitmap.height, hasAlpha: true,
                hasFewColors: bitmap.bits <= 8)
            header.hold(bytesPerPixel: 4)
        }
        header.pages = max(1, file.uint16(4, .little) ?? 1)
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        // `ImageHeader.probe` has already reported errors in the directory.
        if case .png(let png)? = try? picture(file) { return PNGDecoder.details(png) }
        return ImageDetails(colorSpace: "RGB", bitDepth: 8)
    }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        switch try picture(ByteReader(bytes)) {
        case .png(let png): try PNGDecoder.open(png.all, shrink: shrink, frames: frames)
        case .bitmap(let bitmap): try bitmap.image()
        }
    }

    static func repaired(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? {
        if case .png(let png)? = try? picture(ByteReader(bytes)) { RepairedPNG.bytes(png.all) } else { nil }
    }

    private enum Picture {
        case png(ByteReader)
        case bitmap(DeviceBitmap)
    }

    /// Returns the picture with the most pixels. Among equally large pictures, returns the picture with the most bits
    /// per pixel. A file that has been repaired is a plain PNG.
    private static func picture(_ file: ByteReader) throws(RenderError) -> Picture {
        if PNGDecoder.recognizes(file) { return .png(file) }
        // A cursor stores a position instead of the number of bits.
        let isCursor = file.byte(2) == 2
        var best: (picture: Picture, pixels: Int, bits: Int)?
        for index in 0..<(file.uint16(4, .little) ?? 0) {
            guard let bits = file.uint16(12 + index * 16, .little), let at = file.uint32(18 + index * 16, .little)
            else { break }
            let data = file.part(at)
            let found: (Picture, pixels: Int, bits: Int)
            if PNGDecoder.recognizes(data), let width = data.uint32(16), let height = data.uint32(20) {
                // Some icons contain copies for old systems that were reduced to fewer colors but are stored as RGBA.
                let given = isCursor || bits == 0 ? 32 : bits
                found = (.png(data), min(width, 1 << 24) * min(height, 1 << 24), given)
            } else if let bitmap = try? DeviceBitmap(data, isIcon: true) {  // Skip a damaged bitmap.
                found = (.bitmap(bitmap), bitmap.width * bitmap.height, bitmap.bits)
            } else {
                continue
            }
            if best.map({ (found.pixels, found.bits) > ($0.pixels, $0.bits) }) ?? true { best = found }
        }
        guard let best else { throw ImageHeader.damaged("ICO", "none of its pictures can be read") }
        return best.picture
    }
}
