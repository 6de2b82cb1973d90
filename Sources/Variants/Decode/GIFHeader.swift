/// Reads the blocks of a GIF (GIF89a specification): frames, extents, transparency.
enum GIFHeader {
    /// Counting stops here; the limits checked afterwards are far lower.
    static let maxCountedFrames = 100_000

    /// The size is that of the canvas as decoders allocate it: the logical screen, enlarged if the first frame extends
    /// beyond it. Later frames are clipped to it.
    static func parse(_ reader: ByteReader) throws(RenderError) -> ImageHeader {
        guard let screenWidth = reader.uint16(6, .little), let screenHeight = reader.uint16(8, .little),
            let flags = reader.byte(10), reader.byte(12) != nil
        else { throw ImageHeader.damaged("GIF", "its screen descriptor is cut short") }
        var width = screenWidth
        var height = screenHeight
        var frames = 0
        var hasAlpha = false
        var offset = 13 + colourTableBytes(flags)
        while frames < maxCountedFrames, let block = reader.byte(offset) {
            if block == 0x21 {
                if reader.byte(offset + 1) == 0xF9, let control = reader.byte(offset + 3), control & 1 == 1 {
                    hasAlpha = true
                }
                offset = endOfSubBlocks(reader, offset + 2)
            } else if block == 0x2C {
                guard let left = reader.uint16(offset + 1, .little), let top = reader.uint16(offset + 3, .little),
                    let frameWidth = reader.uint16(offset + 5, .little),
                    let frameHeight = reader.uint16(offset + 7, .little), let local = reader.byte(offset + 9)
                else { break }
                frames += 1
                if frames == 1 {
                    width = max(width, left + frameWidth)
                    height = max(height, top + frameHeight)
                }
                offset = endOfSubBlocks(reader, offset + 11 + colourTableBytes(local))
            } else if block == 0x3B {
                break
            } else {
                offset += 1  // stray bytes between blocks, which decoders skip
            }
        }
        guard frames > 0 else { throw ImageHeader.damaged("GIF", "it has no frame") }
        try ImageHeader.checkSize("GIF", width, height)
        return ImageHeader(format: .gif, width: width, height: height, pages: frames, hasAlpha: hasAlpha)
    }

    private static func colourTableBytes(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }

    private static func endOfSubBlocks(_ reader: ByteReader, _ start: Int) -> Int {
        var offset = start
        while let length = reader.byte(offset), length > 0 { offset += 1 + Int(length) }
        return offset + 1
    }
}
