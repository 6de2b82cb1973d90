/// Decodes GIF. Parses the blocks of the GIF89a specification to find the frames, the dimensions and transparency.
enum GIFDecoder: OriginalDecoder {
    static let format = ImageFormat.gif
    static let loader = "gifload_buffer"

    static func recognizes(_ file: ByteReader) -> Bool { file.matches("GIF87a") || file.matches("GIF89a") }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        guard let found = Frames(file) else {
            throw ImageHeader.damaged("GIF", "its screen descriptor is truncated")
        }
        try HeaderParts.check("GIF", found.blocks, "blocks", most: HeaderParts.blocks)
        guard found.count > 0 else { throw ImageHeader.damaged("GIF", "it has no frames") }
        try ImageHeader.checkSize("GIF", found.canvas.x.upperBound, found.canvas.y.upperBound)
        var header = ImageHeader(
            format: .gif, encodedWidth: found.canvas.x.upperBound, encodedHeight: found.canvas.y.upperBound,
            pages: found.count, hasAlpha: found.namesTransparency || found.leavesHoles, hasFewColors: true)
        // The decoder keeps the canvas, and the canvas that is restored after a frame (disposal 3).
        header.hold(bytesPerPixel: 8)
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        var details = ImageDetails(colorSpace: "RGB", bitDepth: 8)
        details.hasContentCredentials = file.contains("\u{0B}C2PA_GIF")
        return details
    }

    /// Returns the XMP packet, which 258 bytes of an application extension follow (XMP part 3 §1.1.2). libvips does not
    /// read it.
    static func xmp(_ file: ByteReader) -> [UInt8]? {
        guard let start = file.firstOffset(of: "XMP DataXMP").map({ $0 + 11 }) else { return nil }
        var end = start
        while let found = file.firstOffset(of: 1, from: end), !file.matches([1, 0xFF, 0xFE, 0xFD], at: found) {
            end = found + 1
        }
        return file.firstOffset(of: 1, from: end).map {
            [UInt8](file.part(start, min($0 - start, KeptCredits.inputLimit)).all)
        }
    }

    static func drawnBits(_ file: ByteReader) -> Double? { 4 }

    /// The file is counted twice, because `source` may create a copy of it.
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int { 2 * count + header.heldBytes }

    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)] { [("n", .int(frames))] }

    /// Returns the bytes for libvips, adjusted so that areas that no frame has painted, or that a frame cleared, are
    /// transparent as in browsers. In libvips, transparency depends on frames with a transparent color. Without such a
    /// frame, libvips drops alpha, and a frame without a transparent color is cleared to the background color.
    /// Therefore, frames that clear themselves get an unused color as their transparent color, and a file without a
    /// transparent color gets an additional frame, which is not decoded.
    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String) {
        let file = ByteReader(bytes)
        guard let found = Frames(file), found.leavesHoles, !found.namesTransparency || !found.clearing.isEmpty else {
            return (.bytes(bytes), "truncated")
        }
        // A graphic control extension that makes color 0 transparent, and a frame with one pixel of that color.
        let transparent: [UInt8] = [
            0x21, 0xF9, 4, 1, 0, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0, 2, 2, 0x44, 1, 0, 0x3B,
        ]
        let end = found.namesTransparency ? bytes.count : min(found.end, bytes.count)
        let storage = PixelStorage(byteCount: end + (found.namesTransparency ? 0 : transparent.count))
        storage.write(UnsafeRawBufferPointer(rebasing: bytes[..<end]), at: 0)
        if !found.namesTransparency { transparent.withUnsafeBytes { storage.write($0, at: end) } }
        for frame in found.clearing {
            guard let index = unusedColor(file, frame.data) else { continue }
            storage.mutableBytes[frame.control + 3] |= 1
            storage.mutableBytes[frame.control + 6] = index
        }
        return (.stored(storage), "truncated")
    }

    /// Returns a color index that no pixel of a frame uses. Returns nil if the frame uses all 256 colors. Every color
    /// that LZW data uses occurs among its codes, so it is sufficient to follow the lengths of the codes (GIF89a
    /// appendix F).
    static func unusedColor(_ file: ByteReader, _ data: Int) -> UInt8? {
        guard let size = file.byte(data), size == 8 else { return 255 }
        var isUsed = [Bool](repeating: false, count: 256)
        // `next` is the number of the next table entry. The first code after the table has been cleared adds no entry.
        var (bits, count, length, next) = (0, 0, 9, 257)
        var at = data + 1
        while let block = file.byte(at), block > 0 {
            for offset in at + 1...at + Int(block) {
                bits |= Int(file.byte(offset) ?? 0) << count
                count += 8
                guard count >= length else { continue }
                let code = bits & (1 << length - 1)
                (bits, count) = (bits >> length, count - length)
                if code == 257 { return isUsed.firstIndex(of: false).map { UInt8($0) } }
                if code == 256 {
                    (length, next) = (9, 257)
                    continue
                }
                if code < 256 { isUsed[code] = true }
                next += 1
                if next == 1 << length, length < 12 { length += 1 }
            }
            at += 1 + Int(block)
        }
        return isUsed.firstIndex(of: false).map { UInt8($0) }
    }
}

extension GIFDecoder {
    /// A rectangle of the canvas.
    private struct Area {
        var x, y: Range<Int>

        var isEmpty: Bool { x.isEmpty || y.isEmpty }

        func clipped(to other: Area) -> Area { Area(x: x.clamped(to: other.x), y: y.clamped(to: other.y)) }

        func contains(_ other: Area) -> Bool {
            let part = other.clipped(to: self)
            return part.x == other.x && part.y == other.y
        }
    }

    /// The frames of a file, according to its blocks.
    private struct Frames {
        /// The canvas that decoders allocate. This is the logical screen, enlarged if the first frame extends beyond
        /// it. Later frames are clipped to the canvas.
        private(set) var canvas: Area
        private(set) var count = 0
        /// The number of frames and extensions.
        private(set) var blocks = 0
        private(set) var namesTransparency = false
        /// Whether a frame is shown while part of the canvas has not been painted or has been cleared.
        private(set) var leavesHoles = false
        /// The frames without a transparent color that are cleared after they were shown (GIF89a §23, disposal 2). Each
        /// element contains the offsets of the frame's graphic control extension and of its data.
        private(set) var clearing: [(control: Int, data: Int)] = []
        /// The offset after the last block, where the trailer begins.
        private(set) var end = 0

        /// Reads the blocks. Returns nil if the file ends within the screen descriptor.
        init?(_ file: ByteReader) {
            guard let width = file.uint16(6, .little), let height = file.uint16(8, .little),
                let flags = file.byte(10), file.byte(12) != nil
            else { return nil }
            canvas = Area(x: 0..<width, y: 0..<height)
            end = 13 + Self.colorTableBytes(flags)
            var control: Int?
            /// The area that is possibly unpainted: the canvas, or the area that was cleared last.
            var hole: Area?
            while blocks < HeaderParts.maxCounted, let block = file.byte(end) {
                if block == 0x21 || block == 0x2C { blocks += 1 }
                if block == 0x21 {
                    if file.byte(end + 1) == 0xF9 { control = end }
                    end = Self.endOfSubBlocks(file, end + 2)
                } else if block == 0x2C {
                    guard let left = file.uint16(end + 1, .little), let top = file.uint16(end + 3, .little),
                        let frameWidth = file.uint16(end + 5, .little),
                        let frameHeight = file.uint16(end + 7, .little), let local = file.byte(end + 9)
                    else { break }
                    let area = Area(x: left..<left + frameWidth, y: top..<top + frameHeight)
                    count += 1
                    if count == 1 {
                        canvas = Area(
                            x: 0..<max(width, area.x.upperBound), y: 0..<max(height, area.y.upperBound))
                        hole = canvas
                    }
                    let data = end + 10 + Self.colorTableBytes(local)
                    let flags = control.flatMap { file.byte($0 + 3) } ?? 0
                    if flags & 1 == 1 { namesTransparency = true }
                    let isCovered = hole.map { flags & 1 == 0 && area.contains($0) } ?? true
                    if !isCovered { leavesHoles = true }
                    switch flags >> 2 & 7 {  // The disposal method (§23).
                    case 2:
                        let part = area.clipped(to: canvas)
                        hole = part.isEmpty ? nil : part
                        if flags & 1 == 0, let control { clearing.append((control, data)) }
                    case 3, 4: break
                    default: if isCovered { hole = nil }
                    }
                    control = nil
                    end = Self.endOfSubBlocks(file, data + 1)
                } else if block == 0x3B {
                    break
                } else {
                    end += 1  // Decoders skip stray bytes between blocks.
                }
            }
        }

        private static func colorTableBytes(_ flags: UInt8) -> Int {
            flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1)
        }

        private static func endOfSubBlocks(_ reader: ByteReader, _ start: Int) -> Int {
            var offset = start
            while let length = reader.byte(offset), length > 0 { offset += 1 + Int(length) }
            return offset + 1
        }
    }
}
