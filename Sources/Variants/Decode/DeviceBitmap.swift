/// A bitmap in a BMP file or icon: a header, color masks or a palette, and rows of pixels from the bottom to the top.
///
/// The header has 12 bytes in OS/2 1, 16 to 64 bytes in OS/2 2, and 40, 52, 56, 108 or 124 bytes in Windows. Numbers
/// are little-endian.
/// 1. Microsoft, [MS-WMF] §2.2.2.2 to §2.2.2.5 (headers) and §3.1.6 (run lengths); "Bitmap Header Types".
/// 2. IBM, "OS/2 Presentation Manager Programming Reference", BITMAPINFOHEADER2.
struct DeviceBitmap {
    let width: Int
    let height: Int
    let bits: Int
    /// The embedded ICC profile. Empty if there is no profile.
    let profile: ByteReader

    private let isTopDown: Bool
    private let isRunLength: Bool
    /// The positions of red, green, blue and alpha. Unused if the bitmap has a palette.
    private let channels: [Channel]
    /// The stored colors, with `entryBytes` bytes each.
    private let palette: ByteReader
    private let entryBytes: Int
    private let lines: ByteReader
    /// Whether the bitmap is in an icon. In an icon, the rows are followed by a mask of transparent pixels, and 32-bit
    /// pixels contain alpha.
    private let isIcon: Bool

    var hasAlpha: Bool { isIcon || channels.last?.most ?? 0 > 0 }

    /// - Parameters:
    ///   - file: the bytes. The header of the bitmap begins at `start`.
    ///   - offset: the start of the rows, or 0 if they follow the palette.
    init(_ file: ByteReader, at start: Int = 0, lines offset: Int = 0, isIcon: Bool = false) throws(RenderError) {
        func signed(_ at: Int) -> Int? { file.uint32(start + at, .little).map { Int(Int32(truncatingIfNeeded: $0)) } }
        let size = file.uint32(start, .little) ?? 0
        /// Returns a number in the header, or 0 if the header ends before it.
        func field(_ at: Int) -> Int { at + 4 <= size ? file.uint32(start + at, .little) ?? 0 : 0 }
        let isOld = size == 12
        guard isOld || (16...64).contains(size) || size == 108 || size == 124 else {
            throw ImageHeader.damaged("BMP", "its header of \(size) bytes has an unknown version")
        }
        guard let storedWidth = isOld ? file.uint16(start + 4, .little) : signed(4),
            let storedHeight = isOld ? file.uint16(start + 6, .little) : signed(8),
            let bits = file.uint16(start + (isOld ? 10 : 14), .little), file.byte(start + size - 1) != nil
        else { throw ImageHeader.damaged("BMP", "its header is truncated") }
        // In an icon, half of the height belongs to the mask.
        let height = abs(storedHeight) / (isIcon ? 2 : 1)
        try ImageHeader.checkSize("BMP", storedWidth, height)
        (width, self.height, self.bits, self.isIcon) = (storedWidth, height, bits, isIcon)
        isTopDown = storedHeight < 0

        let compression = field(16)
        let isOS2 = size < 40 || size > 40 && size <= 64 && size != 52 && size != 56
        let hasMasks = !isOS2 && [3, 6].contains(compression) && [16, 24, 32].contains(bits)
        isRunLength = compression == 1 && bits == 8 || compression == 2 && bits == 4
        guard isRunLength || hasMasks || compression == 0 && [1, 2, 4, 8, 16, 24, 32].contains(bits) else {
            let name =
                switch (compression, isOS2) {
                case (0, _): "without compression"
                case (3, true): "with Huffman compression"
                case (4, true): "with 24-bit run-length encoding"
                case (4, false): "that contains a JPEG"
                case (5, false): "that contains a PNG"
                default: "with compression type \(compression)"
                }
            throw RenderError(
                .undecodable, "a BMP with \(bits) bits per pixel \(name) is not supported; convert it to PNG")
        }
        let masks: [Int] =
            if hasMasks {
                // The masks follow a header of 40 bytes, and are at the same position in longer headers.
                [40, 44, 48].map { file.uint32(start + $0, .little) ?? 0 }
                    + [size >= 56 || compression == 6 ? file.uint32(start + 52, .little) ?? 0 : 0]
            } else {
                bits == 16
                    ? [0x7C00, 0x3E0, 0x1F, 0] : [0xFF0000, 0xFF00, 0xFF, isIcon && bits == 32 ? 0xFF00_0000 : 0]
            }
        channels = bits > 8 ? masks.map(Channel.init) : []

        let paletteStart = start + size + (hasMasks && size == 40 ? (compression == 6 ? 16 : 12) : 0)
        entryBytes = isOld ? 3 : 4
        let used = field(32)
        let colors = used == 0 && bits <= 8 ? 1 << bits : used
        if offset > 0, offset < start + size {
            throw ImageHeader.damaged("BMP", "its pixel data begins at byte \(offset), inside the header")
        }
        let end = offset > 0 ? offset : paletteStart + colors * entryBytes
        palette = file.part(paletteStart, max(0, end - paletteStart)).part(0, min(colors, 256) * entryBytes)
        lines = file.part(end)
        // The value is LCS_PROFILE_EMBEDDED. The offset is relative to the first byte of the header.
        profile = size == 124 && field(56) == 0x4D42_4544 ? file.part(start + field(112), field(116)) : file.part(0, 0)
    }

    /// The position of a sample in a pixel.
    private struct Channel {
        let shift: Int
        /// The maximum value of the sample, or 0 if the channel is missing.
        let most: Int

        init(_ mask: Int) {
            shift = mask == 0 ? 0 : mask.trailingZeroBitCount
            most = mask >> shift
        }

        /// Returns the sample, scaled to eight bits.
        func sample(_ pixel: Int) -> UInt8 {
            let sample = pixel >> shift & most
            return UInt8(truncatingIfNeeded: most == 255 ? sample : (sample * 255 + most / 2) / max(1, most))
        }
    }

    private var lineBytes: Int { (width * bits + 31) / 32 * 4 }

    /// Returns all pixels with three bands, or with four if there is alpha.
    func image() throws(RenderError) -> Image {
        if !isRunLength, lines.count < lineBytes * (height - 1) + (width * bits + 7) / 8 {
            throw Self.cutShort
        }
        let indices = isRunLength ? try unpackedRuns() : []
        // Colors that are missing from the palette are black.
        var colors = [UInt8](repeating: 0, count: 256 * 3)
        for index in 0..<min(256, palette.count / entryBytes) {
            for band in 0..<3 { colors[index * 3 + band] = palette.byte(index * entryBytes + 2 - band) ?? 0 }
        }
        let bands = hasAlpha ? 4 : 3
        let storage = PixelStorage(byteCount: width * height * bands)
        let pixels = storage.mutableBytes
        var isSeen = false
        for line in 0..<height {
            let bytes = lines.all.dropFirst(isRunLength ? 0 : line * lineBytes)
            let first = bytes.startIndex
            var at = (isTopDown ? line : height - 1 - line) * width * bands
            for x in 0..<width {
                if bits <= 8 {
                    let (byte, bit) = (x * bits / 8, x * bits % 8)
                    let index =
                        isRunLength
                        ? Int(indices[line * width + x])
                        : Int(bytes[first + byte]) >> (8 - bits - bit) & (1 << bits - 1)
                    for band in 0..<3 { pixels[at + band] = colors[index * 3 + band] }
                } else {
                    var pixel = 0
                    for byte in 0..<bits / 8 { pixel |= Int(bytes[first + x * bits / 8 + byte]) << (8 * byte) }
                    for band in 0..<bands { pixels[at + band] = channels[band].sample(pixel) }
                    if bands == 4, pixels[at + 3] != 0 { isSeen = true }
                }
                at += bands
            }
        }
        // Programs that do not support alpha write zeros, which do not mean that the picture is transparent.
        if hasAlpha, !isSeen { setAlpha(of: pixels) }
        let image = try Image(storage, width: width, height: height, bands: bands).labeled("srgb")
        if profile.count > 0 { image.set("icc-profile-data", [UInt8](profile.all)) }
        return image
    }

    private static var cutShort: RenderError { ImageHeader.damaged("BMP", "its pixel data is truncated") }

    /// Makes pixels transparent according to the mask of an icon, which has one bit per pixel. All other pixels, and
    /// all pixels of a BMP, become opaque.
    private func setAlpha(of pixels: UnsafeMutableBufferPointer<UInt8>) {
        let mask = isIcon ? lines.part(lineBytes * height) : lines.part(0, 0)
        for line in 0..<height {
            let row = (isTopDown ? line : height - 1 - line) * width
            for x in 0..<width {
                let byte = mask.byte(line * ((width + 31) / 32 * 4) + x >> 3) ?? 0
                pixels[(row + x) * 4 + 3] = byte >> (7 - x & 7) & 1 == 1 ? 0 : 255
            }
        }
    }

    /// Returns the palette indices of run-length encoded rows in stored order. Skipped pixels have the first color.
    private func unpackedRuns() throws(RenderError) -> [UInt8] {
        var indices = [UInt8](repeating: 0, count: width * height)
        var (x, y, at) = (0, 0, 0)
        /// Stores one pixel of a byte. A byte contains one pixel of 8 bits or two pixels of 4 bits. Ignores pixels
        /// beyond the end of the row.
        func put(_ byte: UInt8, _ number: Int) {
            if x < width { indices[y * width + x] = bits == 8 ? byte : number & 1 == 0 ? byte >> 4 : byte & 15 }
            x += 1
        }
        while y < height {
            guard let count = lines.byte(at), let value = lines.byte(at + 1) else {
                if y == height - 1, x >= width { break }  // The end marker is missing.
                throw Self.cutShort
            }
            at += 2
            if count > 0 {
                let fitting = max(0, min(Int(count), width - x))
                for number in 0..<fitting { put(value, number) }
                x += Int(count) - fitting
                continue
            }
            switch value {
            case 0: (x, y) = (0, y + 1)
            case 1: return indices
            case 2:
                guard let right = lines.byte(at), let up = lines.byte(at + 1) else { throw Self.cutShort }
                (x, y, at) = (x + Int(right), y + Int(up), at + 2)
            default:
                for number in 0..<Int(value) {
                    guard let byte = lines.byte(at + (bits == 8 ? number : number / 2)) else { throw Self.cutShort }
                    put(byte, number)
                }
                // Literal pixels are padded to an even number of bytes.
                at += ((bits == 8 ? Int(value) : (Int(value) + 1) / 2) + 1) & ~1
            }
        }
        return indices
    }
}
