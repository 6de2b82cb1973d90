/// One output format: the options recipe text may give it, and how pixels are encoded.
///
/// A conforming type has one file here, one line in `Catalogue.outputs`, and one test file. It receives only the pixels
/// and the metadata to keep, so no other metadata can get into its files.
protocol OutputEncoder: Sendable {
    /// The format, and the name in recipe text.
    static var format: ImageFormat { get }
    /// What it is, in one sentence.
    static var summary: String { get }
    /// Recipe text that uses it, in canonical form.
    static var example: String { get }
    static var losslessness: Losslessness { get }
    /// The quality used if the recipe gives none, 1…100: the one that scores the same as JPEG 80 (docs/benchmarks.md).
    static var defaultQuality: Int { get }
    /// Whether `progressive` has an effect.
    static var canBeProgressive: Bool { get }
    /// Whether drawn pictures become lossless, where that pays, if the recipe gives no quality.
    static var choosesLossless: Bool { get }
    /// Whether `chroma` has an effect.
    static var hasChroma: Bool { get }
    /// The efforts used if the recipe gives none, 0…9; nil if the encoder has none to choose.
    static var efforts: DefaultEfforts? { get }
    /// The metadata that this format can store.
    static var holds: KeptMetadata { get }
    /// Whether `original` writes originals of this format as they were; otherwise they become JPEG, or PNG with alpha.
    static var keepsOriginals: Bool { get }
    /// The most pixels for which a negotiated format is chosen.
    static var largestNegotiated: Int { get }
    /// Whether the encoder polls for stops every few milliseconds.
    static func heedsStops(_ output: ResolvedOutput) -> Bool
    /// Roughly the CPU time that encoding takes, in nanoseconds a pixel (`RenderWork`).
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double
    /// The libvips operation it needs; nil if it needs none.
    static var saver: String? { get }
    /// The Debian packages that bring what it needs.
    static var packages: (debian12: String, debian13: String) { get }

    init(job: EncodeJob)
    /// Encodes a file. `quality` applies to lossy outputs only. The same input always gives the same bytes.
    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8]
}

enum Losslessness: Sendable {
    case never, onRequest, always
    /// Never lossless, although there is no quality to choose.
    case neverWithoutQuality
    /// Lossless unless the original has few colours (`ImageHeader.hasFewColours`); then on request.
    case unlessFewColours

    var hasQuality: Bool { self == .never || self == .onRequest }
}

struct EncodeJob: Sendable {
    var output: ResolvedOutput
    var kept: KeptBlobs
    var control: RenderControl
    /// The bytes that the output should not exceed if that is possible: those of an original of few colours that has more
    /// pixels; else nil.
    var bound: Int?
    /// Whether half the chroma resolution would lose detail that is seen (`PixelLook`).
    var hasChromaDetail = false

    /// libvips' `subsample-mode` at a quality.
    func subsampling(_ quality: Int) -> VipsArgument {
        switch output.chroma {
        case .full: "off"
        case .half: "on"
        case .auto: quality >= 90 || hasChromaDetail ? "off" : "on"
        }
    }
}

extension OutputEncoder {
    static var defaultQuality: Int { 80 }
    static var canBeProgressive: Bool { false }
    static var choosesLossless: Bool { false }
    static var hasChroma: Bool { false }
    static var efforts: DefaultEfforts? { nil }
    static var holds: KeptMetadata { [.copyright, .exif, .icc, .position, .xmp] }
    static var keepsOriginals: Bool { true }
    static var largestNegotiated: Int { .max }
    static func heedsStops(_ output: ResolvedOutput) -> Bool { false }
    static var saver: String? { nil }
    static var packages: (debian12: String, debian13: String) { ("libvips42", "libvips42t64") }
}

enum Encoding {
    /// Throws if the installed libvips cannot write this output. Called before anything is decoded.
    static func checkAvailability(_ output: ResolvedOutput) throws(RenderError) {
        try RenderLibraries.loaded.checkWrites(output.format)
    }

    private static func encoder(of output: ResolvedOutput) throws(RenderError) -> any OutputEncoder.Type {
        if let encoder = output.format.encoder { return encoder }
        throw RenderError(.notAvailable, "`\(output.format)` is not an output format")
    }

    static func encode(_ pixels: EncodablePixels, _ job: EncodeJob) throws(RenderError) -> [UInt8] {
        let type = try encoder(of: job.output)
        var job = job
        let hasQuality = type.losslessness.hasQuality && !job.output.isLossless
        let look = hasQuality ? try PixelLook(pixels, job.control) : PixelLook()
        job.hasChromaDetail = look.hasChromaDetail
        let encoder = type.init(job: job)
        let control = job.control
        func save(_ quality: Int) throws(RenderError) -> [UInt8] {
            try control.check()
            return try encoder.encode(pixels, quality: quality)
        }
        if job.output.mayBeLossless, look.isDrawn {
            var exact = job
            exact.output.isLossless = true
            let lossless = try type.init(job: exact).encode(pixels, quality: 100)
            if let budget = job.output.maxBytes {
                if lossless.count <= budget { return lossless }
            } else {
                let lossy = try save(job.output.quality)
                // The lossy file of a drawn picture scores 15 to 50 points less, and no quality brings it near in fewer
                // bytes (docs/benchmarks.md).
                return lossless.count * 2 <= lossy.count * 3 ? lossless : lossy
            }
        }
        guard let budget = job.output.maxBytes else {
            guard let bound = job.bound, type.losslessness == .unlessFewColours, !job.output.isLossless else {
                return try save(job.output.quality)
            }
            return try within(bound, save)
        }
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

    /// The best file of at most `bound` bytes; the best of all if none is that small.
    private static func within(
        _ bound: Int, _ save: (Int) throws(RenderError) -> [UInt8]
    ) throws(RenderError) -> [UInt8] {
        var best: [UInt8]?
        do throws(RenderError) {
            return try QualitySearch(budget: bound, highest: 100).result { (quality) throws(RenderError) in
                let bytes = try save(quality)
                best = best ?? bytes
                return bytes
            }
        } catch {
            if error.code == .overBudget, let best { return best }
            throw error
        }
    }
}

extension Image {
    /// The file that a libvips saver makes of this image. Stopping the render stops the image and the saver.
    func saved(
        by nickname: String, _ arguments: KeyValuePairs<String, VipsArgument>, _ control: RenderControl
    ) throws(RenderError) -> [UInt8] {
        control.watch(self)
        return try VipsCall(nickname, arguments, failure: .encodingFailed).written(control)
    }
}
