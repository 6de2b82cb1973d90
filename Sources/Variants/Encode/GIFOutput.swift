/// Encodes still and animated GIFs with libimagequant and cgif.
///
/// Up to 256 colors (255 if a pixel is transparent) are preserved exactly. If there are more colors, libimagequant
/// chooses a palette and dithers. Alpha values of at least 128 become opaque, and lower values become transparent.
struct GIFOutput: OutputEncoder {
    static let format = ImageFormat.gif
    static let summary =
        "GIF, animated with `frames:all`. Has at most 256 colors, and each pixel is either opaque or transparent."
    static let example = "gif"
    static let losslessness = Losslessness.neverWithoutQuality
    /// The format cannot store EXIF, and programs ignore ICC profiles in GIF files.
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
    /// Converts delays in milliseconds to hundredths of a second, 2…65,535, which is the unit in a file. The minimum is
    /// 2 because browsers show shorter frames for 100 ms. The rounding error of each frame is carried over to the next,
    /// so that the total duration is correct.
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
    /// Returns the file with XMP inserted as an application extension before the trailer (XMP part 3 §1.1.2). The XMP
    /// is not split into sub-blocks. A reader that interprets bytes of the text as lengths still reaches the
    /// terminator, because 256 descending bytes follow the text.
    func inserted(intoGIF gif: [UInt8]) -> [UInt8] {
        guard let xmp, gif.last == 0x3B else { return gif }
        let head: [UInt8] = [0x21, 0xFF, 11] + [UInt8]("XMP DataXMP".utf8)
        let trailer: [UInt8] = [1] + (0...255).reversed().map { UInt8($0) } + [0]
        return gif.dropLast() + head + xmp + trailer + [0x3B]
    }
}
