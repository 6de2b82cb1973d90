/// GIF through libimagequant and cgif, still or animated.
///
/// Up to 256 colours (255 where something is transparent) are kept exactly; more are chosen by libimagequant and dithered.
/// Alpha of 128 and more is opaque, less is transparent. Delays are hundredths of a second, rounded, and at least one where
/// there is a delay, at most 65,535 as the format has no more.
struct GIFOutput: OutputEncoder {
    static let format = ImageFormat.gif
    static let summary = "GIF, also animated (`frames:all`); at most 256 colours, alpha becomes all or nothing."
    static let example = "gif"
    static let losslessness = Losslessness.neverWithoutQuality
    /// The format has no place for EXIF, and none for profiles that programs look at.
    static let holds: KeptMetadata = [.xmp]
    static let saver: (operation: String, package: String)? = ("gifsave_target", "libcgif0")

    private let job: EncodeJob

    init(_ job: EncodeJob) { self.job = job }

    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8] {
        var image = try pixels.image()
        if let timing = pixels.timing {
            image = try VipsCall("copy", ["in": .image(image)]).image()
            image.set("page-height", pixels.height)
            image.set("delay", timing.delays.map { $0 == 0 ? 0 : min(max(1, ($0 + 5) / 10), 0xFFFF) * 10 })
            image.set("loop", timing.loops)
        }
        return try job.kept.inserted(
            intoGIF: image.saved(by: "gifsave_target", ["in": .image(image), "strip": true], job.control))
    }
}

extension KeptBlobs {
    /// XMP as an application extension before the trailer (XMP part 3 §1.1.2). It is not cut into sub-blocks: whatever its
    /// bytes are taken for as lengths, the 256 descending bytes behind it lead to the terminator.
    func inserted(intoGIF gif: [UInt8]) -> [UInt8] {
        guard let xmp, gif.last == 0x3B else { return gif }
        let head: [UInt8] = [0x21, 0xFF, 11] + [UInt8]("XMP DataXMP".utf8)
        let trailer: [UInt8] = [1] + (0...255).reversed().map { UInt8($0) } + [0]
        return gif.dropLast() + head + xmp + trailer + [0x3B]
    }
}
