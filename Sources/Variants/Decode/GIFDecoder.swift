/// GIF. Reads the blocks (GIF89a specification): frames, extents, transparency.
enum GIFDecoder: OriginalDecoder {
    static let format = ImageFormat.gif
    static let loader = "gifload_buffer"
    static let zeroDelay = 100
    /// Counting stops here; the limits checked afterwards are far lower.
    static let maxCountedFrames = 100_000

    static func recognises(_ file: ByteReader) -> Bool { file.matches("GIF87a") || file.matches("GIF89a") }

    /// The size is that of the canvas as decoders allocate it: the logical screen, enlarged if the first frame extends
    /// beyond it. Later frames are clipped to it.
    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        guard let screenWidth = file.uint16(6, .little), let screenHeight = file.uint16(8, .little),
            let flags = file.byte(10), file.byte(12) != nil
        else { throw ImageHeader.damaged("GIF", "its screen descriptor is cut short") }
        var width = screenWidth
        var height = screenHeight
        var frames = 0
        var hasAlpha = false
        var offset = 13 + colourTableBytes(flags)
        while frames < maxCountedFrames, let block = file.byte(offset) {
            if block == 0x21 {
                if file.byte(offset + 1) == 0xF9, let control = file.byte(offset + 3), control & 1 == 1 {
                    hasAlpha = true
                }
                offset = endOfSubBlocks(file, offset + 2)
            } else if block == 0x2C {
                guard let left = file.uint16(offset + 1, .little), let top = file.uint16(offset + 3, .little),
                    let frameWidth = file.uint16(offset + 5, .little),
                    let frameHeight = file.uint16(offset + 7, .little), let local = file.byte(offset + 9)
                else { break }
                frames += 1
                if frames == 1 {
                    width = max(width, left + frameWidth)
                    height = max(height, top + frameHeight)
                }
                offset = endOfSubBlocks(file, offset + 11 + colourTableBytes(local))
            } else if block == 0x3B {
                break
            } else {
                offset += 1  // stray bytes between blocks, which decoders skip
            }
        }
        guard frames > 0 else { throw ImageHeader.damaged("GIF", "it has no frame") }
        try ImageHeader.checkSize("GIF", width, height)
        return ImageHeader(
            format: .gif, width: width, height: height, pages: frames, hasAlpha: hasAlpha, hasFewColours: true)
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        var details = ImageDetails(colourSpace: .rgb, bitDepth: 8)
        details.hasContentCredentials = file.contains("\u{0B}C2PA_GIF")
        return details
    }

    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)] { [("n", .int(frames))] }

    private static func colourTableBytes(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }

    private static func endOfSubBlocks(_ reader: ByteReader, _ start: Int) -> Int {
        var offset = start
        while let length = reader.byte(offset), length > 0 { offset += 1 + Int(length) }
        return offset + 1
    }
}
