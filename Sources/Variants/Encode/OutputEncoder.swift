/// One output format: what recipe text may ask of it, and how pixels become its bytes.
///
/// A member is one file here, one line in `Catalogue.outputs`, and one test file. It gets pixels and what is kept of the
/// metadata, nothing else, so that nothing can slip through.
protocol OutputEncoder: Sendable {
    /// The format, and the name in recipe text.
    static var format: ImageFormat { get }
    /// What it is, in one sentence.
    static var summary: String { get }
    /// Recipe text that uses it, canonically written.
    static var example: String { get }
    static var losslessness: Losslessness { get }
    /// The quality in force when none is written, 1…100: the one whose score is JPEG 80's (docs/benchmarks.md).
    static var defaultQuality: Int { get }
    /// Whether `progressive` means something.
    static var canBeProgressive: Bool { get }
    /// The metadata a file of this format has a place for.
    static var holds: KeptMetadata { get }
    /// The libvips operation it needs, and the Debian package that brings it; nil where it needs none.
    static var saver: (operation: String, package: String)? { get }

    init(_ job: EncodeJob)
    /// The file. `quality` counts in lossy outputs; the same input always gives the same bytes.
    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8]
}

/// Whether every visible pixel survives.
enum Losslessness: Sendable {
    case never, onRequest, always
    /// No, though there is no quality to choose.
    case neverWithoutQuality

    var hasQuality: Bool { self == .never || self == .onRequest }
}

/// What an encoder is told beside the pixels.
struct EncodeJob: Sendable {
    var output: ResolvedOutput
    var kept: KeptBlobs
    var control: RenderControl
}

extension OutputEncoder {
    static var defaultQuality: Int { 80 }
    static var canBeProgressive: Bool { false }
    static var holds: KeptMetadata { [.exif, .icc, .xmp] }
    static var saver: (operation: String, package: String)? { nil }
}

/// From pixels to the bytes of a file.
enum Encoding {
    /// Refuses an output that cannot be written here, before anything is decoded.
    static func checkAvailability(_ output: ResolvedOutput) throws(RenderError) {
        guard let encoder = Catalogue.output(of: output.format) else {
            throw RenderError(.notAvailable, "`\(output.format.rawValue)` is no output")
        }
        if let saver = encoder.saver, !VipsLibrary.has(saver.operation) {
            throw RenderError(
                .notAvailable,
                "this libvips cannot write \(output.format.rawValue): it has no \(saver.operation); install the "
                    + "package \(saver.package) with a libvips built for it, or choose another output")
        }
    }

    /// The file, within the output's byte budget.
    static func encode(_ pixels: EncodablePixels, _ job: EncodeJob) throws(RenderError) -> [UInt8] {
        guard let type = Catalogue.output(of: job.output.format) else {
            throw RenderError(.notAvailable, "`\(job.output.format.rawValue)` is no output")
        }
        let encoder = type.init(job)
        func save(_ quality: Int) throws(RenderError) -> [UInt8] {
            try job.control.check()
            return try encoder.encode(pixels, quality: quality)
        }
        guard let budget = job.output.maxBytes else { return try save(job.output.quality) }
        if !job.output.isLossless {
            return try QualitySearch(budget: budget, highest: job.output.quality).result(save)
        }
        let bytes = try save(job.output.quality)
        if bytes.count <= budget { return bytes }
        throw RenderError(
            .overBudget,
            "the lossless \(job.output.format.rawValue) has \(bytes.count) bytes, over max=\(budget), and no quality to "
                + "lower; a smaller picture, a lossy output such as `webp` or a larger `max=` would help")
    }
}

extension Image {
    /// What a saver makes of this image; both stop when the render does.
    func saved(
        by nickname: String, _ arguments: KeyValuePairs<String, VipsArgument>, _ control: RenderControl
    ) throws(RenderError) -> [UInt8] {
        control.watch(self)
        return try VipsCall(nickname, arguments, failure: .encodingFailed).written(control)
    }
}
