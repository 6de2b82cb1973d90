/// GIF through libimagequant and cgif, still or animated.
///
/// Up to 256 colours (255 if a pixel is transparent) are kept exactly; of more, libimagequant picks a palette and
/// dithers. Alpha of 128 or more becomes opaque, less becomes transparent. Delays are rounded to hundredths of a
/// second: at least one unless the delay is 0, and at most 65,535, the format's maximum.
struct GIFOutput: OutputEncoder {
    static let format = ImageFormat.gif
    static let summary = "GIF, also animated (`frames:all`); at most 256 colours, alpha becomes all or nothing."
    static let example = "gif"
    static let losslessness = Losslessness.neverWithoutQuality
    /// The format cannot store EXIF, and programs ignore a profile in it.
    static let holds: KeptMetadata = [.xmp]
    static let saver: String? = "gifsave_target"
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double { 140 }

    let job: EncodeJob

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        let image = try pixels.image()
        if let timing = pixels.timing {
            image.set("page-height", pixels.height)
            image.set("delay", timing.delays.map { $0 == 0 ? 0 : min(max(1, ($0 + 5) / 10), 0xFFFF) * 10 })
            image.set("loop", timing.loops)
        }
        return try job.kept.inserted(
            intoGIF: image.saved(by: "gifsave_target", ["in": .image(image), "strip": true], job.control))
    }
}

extension KeptBlobs {
    /// Inserts XMP as an application extension before the trailer (XMP part 3 §1.1.2). It is not split into sub-blocks:
    /// whatever lengths a reader takes its bytes for, the 256 descending bytes that follow lead it to the terminator.
    func inserted(intoGIF gif: [UInt8]) -> [UInt8] {
        guard let xmp, gif.last == 0x3B else { return gif }
        let head: [UInt8] = [0x21, 0xFF, 11] + [UInt8]("XMP DataXMP".utf8)
        let trailer: [UInt8] = [1] + (0...255).reversed().map { UInt8($0) } + [0]
        return gif.dropLast() + head + xmp + trailer + [0x3B]
    }
}
