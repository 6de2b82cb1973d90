/// Describes an output format: its options in recipe text, and how it encodes pixels.
///
/// A conforming type has one file in this folder, one line in `Catalog.outputs`, and one test file. It receives only
/// the pixels and the metadata to keep, so no other metadata can end up in its files.
protocol OutputEncoder: Sendable {
    /// The format. Recipe text uses the same name.
    static var format: ImageFormat { get }
    /// A one-sentence description.
    static var summary: String { get }
    /// An example of recipe text with this output, in canonical form.
    static var example: String { get }
    static var losslessness: Losslessness { get }
    /// The default quality, 1…100. It scores the same as JPEG at quality 80 (docs/benchmarks.md).
    static var defaultQuality: Int { get }
    /// The typical scores by quality at the default effort, or nil if the format has no quality. The scores are medians
    /// of 38 photographs, drawings, graphics and texts of 320 to 800 px.
    static var scores: ScoreCurve? { get }
    /// Whether `progressive` has an effect.
    static var canBeProgressive: Bool { get }
    /// Whether drawings are encoded losslessly if that is worthwhile and the recipe does not specify a quality.
    static var choosesLossless: Bool { get }
    /// Whether the format can store the coefficients of a JPEG.
    static var canTranscode: Bool { get }
    /// Whether `chroma` has an effect.
    static var hasChroma: Bool { get }
    /// The default efforts, 0…9, or nil if the encoder has no effort setting.
    static var efforts: DefaultEfforts? { get }
    /// The effort of a second pass, 0…9, or nil if more effort does not make the files notably smaller.
    static var secondEffort: Int? { get }
    /// The metadata that this format can store.
    static var holds: KeptMetadata { get }
    /// Whether `original` keeps this format. Otherwise originals of this format become JPEG, or PNG if they have alpha.
    static var keepsOriginals: Bool { get }
    /// The maximum number of pixels for which the format is negotiated.
    static var largestNegotiated: Int { get }
    /// Whether the encoder checks for stop requests every few milliseconds.
    static func heedsStops(_ output: ResolvedOutput) -> Bool
    /// The approximate CPU time of encoding in nanoseconds per pixel (`RenderWork`).
    static func nanosecondsPerPixel(_ output: ResolvedOutput) -> Double
    /// The libvips operation that the encoder uses, or nil if it does not use libvips.
    static var saver: String? { get }
    /// The Debian packages that provide the required libraries.
    static var packages: (debian12: String, debian13: String) { get }

    init(job: EncodeJob)
    /// Encodes the pixels. `quality` applies only to lossy outputs. Equal input always results in equal bytes.
    func encode(_ pixels: EncodablePixels, quality: Int) throws(RenderError) -> [UInt8]
}

enum Losslessness: Sendable {
    case never, onRequest, always
    /// Never lossless, and without any quality setting.
    case neverWithoutQuality
    /// Lossless. Only if the original has few colors (`ImageHeader.hasFewColors`), lossless encoding must be requested.
    case unlessFewColors

    var hasQuality: Bool { self == .never || self == .onRequest }
}

struct EncodeJob: Sendable {
    var output: ResolvedOutput
    var kept: KeptBlobs
    var control: RenderControl
    /// The size in bytes that the output must not exceed if this is possible. This is the size of the original if the
    /// original has few colors and has more pixels than the output, and nil otherwise.
    var bound: Int?
    /// Whether half the chroma resolution would lose visible detail (`PixelStatistics`).
    var hasChromaDetail = false

    /// Returns the value of libvips' `subsample-mode` for a quality.
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
    static var scores: ScoreCurve? { nil }
    static var canBeProgressive: Bool { false }
    static var choosesLossless: Bool { false }
    static var canTranscode: Bool { false }
    static var hasChroma: Bool { false }
    static var efforts: DefaultEfforts? { nil }
    static var secondEffort: Int? { nil }
    static var holds: KeptMetadata { [.copyright, .exif, .icc, .position, .xmp] }
    static var keepsOriginals: Bool { true }
    static var largestNegotiated: Int { .max }
    static func heedsStops(_ output: ResolvedOutput) -> Bool { false }
    static var saver: String? { nil }
    static var packages: (debian12: String, debian13: String) { ("libvips42", "libvips42t64") }
}

enum Encoding {
    /// Throws if the installed libvips cannot encode this output, or cannot decode it to measure its score. Called
    /// before decoding.
    static func checkAvailability(_ output: ResolvedOutput) throws(RenderError) {
        try RenderLibraries.loaded.checkWrites(output.format)
        if output.score != nil { try RenderLibraries.loaded.checkReads(output.format) }
    }

    private static func encoder(of output: ResolvedOutput) throws(RenderError) -> any OutputEncoder.Type {
        if let encoder = output.format.encoder { return encoder }
        throw RenderError(.notAvailable, "`\(output.format)` is not an output format")
    }

    static func encode(_ pixels: EncodablePixels, _ job: EncodeJob) throws(RenderError) -> [UInt8] {
        let type = try encoder(of: job.output)
        var job = job
        let hasQuality = type.losslessness.hasQuality && !job.output.isLossless
        let look = hasQuality ? try PixelStatistics(pixels, job.control) : PixelStatistics()
        job.hasChromaDetail = look.hasChromaDetail
        let encoder = type.init(job: job)
        let control = job.control
        func save(_ quality: Int) throws(RenderError) -> [UInt8] {
            try control.check()
            return try encoder.encode(pixels, quality: quality)
        }
        func encodedLosslessly() throws(RenderError) -> [UInt8] {
            var exact = job
            exact.output.isLossless = true
            return try type.init(job: exact).encode(pixels, quality: 100)
        }
        var lossless: [UInt8]?
        if job.output.mayBeLossless, look.isDrawn { lossless = try encodedLosslessly() }
        var highest = job.output.quality
        if let target = job.output.score {
            let found = try scored(pixels, job, target: Double(target))
            // A lossless file reaches every score. Lossy WebP does not, because it halves the chroma resolution.
            let isFar = found.score < Double(target) - ScoreSearch.shortfall
            if lossless == nil, job.output.mayBeLossless, isFar { lossless = try encodedLosslessly() }
            let isBetter = found.score >= Double(target) - ScoreSearch.tolerance
            var files = [found.bytes]
            if let lossless {
                files.insert(lossless, at: isBetter && found.bytes.count < lossless.count ? 1 : 0)
            }
            if let file = files.first(where: { $0.count <= job.output.maxBytes ?? .max }) { return file }
            highest = max(1, found.quality - 1)
        } else if let lossless {
            if let budget = job.output.maxBytes {
                if lossless.count <= budget { return lossless }
            } else {
                let lossy = try save(job.output.quality)
                // If a drawing is encoded lossily, it scores 15 to 50 points less, and no quality achieves a similar
                // score with fewer bytes (docs/benchmarks.md).
                return lossless.count * 2 <= lossy.count * 3 ? lossless : lossy
            }
        }
        guard let budget = job.output.maxBytes else {
            guard let bound = job.bound, type.losslessness == .unlessFewColors, !job.output.isLossless else {
                return try save(job.output.quality)
            }
            return try within(bound, save)
        }
        if !job.output.isLossless {
            return try QualitySearch(budget: budget, highest: highest).result(save)
        }
        let bytes = try save(job.output.quality)
        if bytes.count <= budget { return bytes }
        throw RenderError(
            .overBudget,
            "the lossless \(job.output.format.rawValue) file has \(bytes.count) bytes, more than max=\(budget), and lossless files have no quality to "
                + "lower; use a smaller size, a lossy output such as `webp`, or a larger `max=`")
    }

    /// Returns the smallest file that reaches a score of `target`, 10…95, with the format and effort of the job. The
    /// score can be up to 1.5 lower if qualities are too coarse, and much lower if no quality reaches the target.
    ///
    /// If `isStrict` is true, the score is lower only if no quality that was tried reaches the target.
    ///
    /// Ignores the quality and the limits of the job. If chroma is `auto`, all encodes use the same resolution, because
    /// the score would otherwise jump: half the resolution below 50, where it saves bytes, if
    /// `job.hasChromaDetail` is false.
    static func scored(
        _ pixels: EncodablePixels, _ job: EncodeJob, target: Double, isStrict: Bool = false
    ) throws(RenderError) -> ScoredFile {
        let type = try encoder(of: job.output)
        guard let curve = type.scores else {
            throw RenderError(
                .notApplicable, "`\(type.format)` has no quality, so `score=` has no effect; remove the option")
        }
        var job = job
        if job.output.chroma == .auto { job.output.chroma = target < 50 && !job.hasChromaDetail ? .half : .full }
        // The sharp conversion of WebP saves 4 to 14 % at these scores, and reaches higher scores.
        if target >= 75 { job.hasChromaDetail = true }
        let (encoder, control) = (type.init(job: job), job.control)
        return try ScoreSearch(target: target, curve: curve, isStrict: isStrict).result {
            (quality) throws(RenderError) in
            try control.check()
            let bytes = try encoder.encode(pixels, quality: quality)
            let score = try PictureScore.measured(bytes, type.format, against: pixels, control)
            return ScoredFile(bytes: bytes, quality: quality, score: score)
        }
    }

    /// Returns the best file of at most `bound` bytes. If no file is small enough, returns the best file of any size.
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
    /// Encodes this image with a libvips saver. Stopping the render stops the image and the saver.
    func saved(
        by nickname: String, _ arguments: KeyValuePairs<String, VipsArgument>, _ control: RenderControl
    ) throws(RenderError) -> [UInt8] {
        control.watch(self)
        return try VipsCall(nickname, arguments, failure: .encodingFailed).written(control)
    }
}
