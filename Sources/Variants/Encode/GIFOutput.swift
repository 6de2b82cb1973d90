/// GIF through libimagequant and cgif, still or animated.
///
/// Up to 256 colours (255 if a pixel is transparent) are kept exactly; of more, libimagequant picks a palette and
/// dithers. Alpha of 128 or more becomes opaque, less becomes transparent.
struct GIFOutput: OutputEncoder {
    static let format = ImageFormat.gif
    static let summary = "GIF, also animated (`frames:all`); at most 256 colours, alpha becomes all or nothing."
    static let example = "gif"
    static let losslessness = Losslessness.neverWithoutQuality
    /// The format cannot store EXIF, and programs ignore a profile in it.
    static let holds: KeptMetadata = [.copyright, .position, .xmp]
    static let saver: String? = "gifsave_target"
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double { 140 }

    let job: EncodeJob

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        let image = try pixels.image()
        if let timing = pixels.timing {
            image.set("page-height", pixels.height)
            image.set("delay", Self.written(timing.delays))
            image.set("loop", timing.loops)
        }
        return try job.kept.inserted(
            intoGIF: image.saved(by: "gifsave_target", ["in": .image(image), "strip": true], job.control))
    }
}

extension GIFOutput {
    /// Delays in milliseconds as a file holds them, in whole hundredths of a second: from 2, since browsers show a frame
    /// of less for 100 ms, to 65,535. What rounding adds or leaves over is taken from or given to the next frame, so that
    /// all frames together last as long as they should.
    static func written(_ delays: [Int]) -> [Int] {
        var owed = 0
        return delays.map { delay in
            let wanted = delay + owed
            let rounded = (wanted + 5) / 10
            let hundredths = min(max(2, rounded), 0xFFFF)
            owed = hundredths == rounded ? wanted - hundredths * 10 : 0
            return hundredths * 10
        }
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
