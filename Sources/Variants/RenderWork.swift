/// The expected cost of a render, estimated from the header and the recipe. The cost is the number of pixels multiplied
/// by weights (`nanosecondsPerPixel`) that the decoder, the steps and the encoder declare. The weights are
/// single-threaded CPU times, measured roughly as docs/workers.md describes. `RenderCosts` corrects the estimates with
/// the actual costs of renders.
struct RenderWork: Sendable, Hashable {
    /// The CPU milliseconds for opening and decoding. Renders that share a decode spend this time only once.
    var decode: Double
    /// The CPU milliseconds for everything else.
    var rest: Double
    /// Whether the render is treated as long regardless of the estimate.
    var isLong = false
    /// Identifies renders with the same steps, output, and original format. This is a hash, so that the pool compares
    /// only integers while it holds its lock.
    var kind: Int

    /// The minimum cost of a render, however few pixels it has.
    private static let least = 1.0
    /// The average number of encodes for a `max=` option (docs/benchmarks.md).
    private static let budgetAttempts = 2.5
    /// The average number of encodes for a `score=` option, and the CPU time of decoding and measuring each file.
    private static let (scoreAttempts, measuringNanosecondsPerPixel) = (2.7, 40.0)

    /// The CPU time of sanitizing an SVG.
    private static let vectorNanosecondsPerByte = 60.0

    init(decode: Double, rest: Double, kind: Int) {
        self.decode = decode
        self.rest = rest
        self.kind = kind
    }

    init(_ job: RenderJob, _ kind: WorkerRequest.Kind = .variant) {
        if job.isVector {
            self.init(
                decode: Double(job.original.count) * Self.vectorNanosecondsPerByte / 1e6, rest: Self.least, kind: 0)
            return
        }
        let plan = RenderPlan(alone: job)
        let frames = Double(job.frameCount)
        func pixels(_ size: PixelSize) -> Double { Double(size.width) * Double(size.height) * frames }
        var size = plan.size
        let stored = pixels(plan.read)
        var now = job.header.levels > 0 ? stored : stored / Double(plan.shrink * plan.shrink)
        // A decoder that shrinks still reads the complete file, which is about half of its work.
        let decoded = (stored + now) / 2 * (job.header.format.decoder?.nanosecondsPerPixel(job.header) ?? 0)
        var nanoseconds = 0.0
        for step in job.recipe.steps {
            // Ignore the error here: `checkSizes` reports a step that cannot be applied.
            if let step = step as? any ResizingOperation { size = (try? step.resultSize(of: size)) ?? size }
            nanoseconds += step.nanosecondsPerPixel * max(now, pixels(size))
            now = pixels(size)
        }
        if kind == .variant {
            var attempts = job.output.maxBytes == nil || job.output.isLossless ? 1 : Self.budgetAttempts
            var encode = job.output.format.encoder?.nanosecondsPerPixel(job.output) ?? 0
            if job.output.score != nil {
                attempts = Self.scoreAttempts
                encode += Self.measuringNanosecondsPerPixel
            }
            nanoseconds += encode * now * attempts
        }
        self.init(
            decode: decoded / 1e6, rest: nanoseconds / 1e6 + Self.least,
            kind: [job.header.format.rawValue, job.recipe.stepsDescription, job.output.description].hashValue)
        // The size of a vector drawing does not predict its cost. A file that is larger than its uncompressed pixels
        // contains other data of unknown cost. Decoders examine all pages, some of them in quadratic time.
        isLong =
            job.header.format.decoder?.isDrawing == true || job.header.pages > Self.ordinaryPages
            || Double(job.original.count) > Self.ordinaryBytes
                + 16 * Double(job.header.encodedWidth) * Double(job.header.encodedHeight) * Double(job.header.pages)
    }

    /// The allowance for metadata in a small picture, in bytes.
    private static let ordinaryBytes = 262_144.0
    /// libwebp needs 3 ms to examine this many frames, and libtiff needs 10 ms for this many directories.
    private static let ordinaryPages = 1000
}

extension RenderJob {
    /// Throws if decoding is expected to exceed `limits.seconds`, instead of stopping the render at that time.
    /// Estimates below one second are too inaccurate for this.
    func checkWork() throws(RenderError) {
        let seconds = RenderWork(self).decode / 1000
        guard seconds > max(1, limits.seconds) else { return }
        let scans = header.scans > 1 ? " in \(header.scans) scans" : ""
        throw RenderError(
            .overLimit,
            "\(pictureText)\(scans) may take \(Int(seconds.rounded(.up))) s to decode, which exceeds "
                + "limits.seconds = \(limits.seconds); raise the limit to accept such pictures")
    }
}

/// The expected costs of renders: their estimates, corrected with the actual costs of renders with the same steps.
struct RenderCosts: Sendable {
    /// The number of CPU milliseconds above which a render is long. Ordinary variants stay below this value: a 12 MP
    /// photograph takes 40 ms at 300 px, and about 220 ms as a 1600 px WebP. Users notice the wait for a longer render.
    static let long = 250.0
    /// The minimum CPU time, in milliseconds, of a render that is used to correct an estimate. Much of the cost of a
    /// shorter render is not proportional to its pixels.
    private static let minCorrectingTime = 20.0
    /// The largest correction factor. Larger ratios are outliers.
    private static let maxCorrection = 8.0
    private static let kindLimit = 512
    /// A render is treated as long after this many CPU milliseconds or this multiple of its estimate, whichever is
    /// greater. Ordinary thumbnails stay below it even with random variation.
    private static let (minThreshold, thresholdFactor) = (100.0, 4.0)

    private var factors: [Int: Double] = [:]

    /// Whether renders that are made one after another from one decode are long in total.
    func isLong(_ renders: some Sequence<RenderWork>) -> Bool {
        var (decode, rest) = (0.0, 0.0)
        for work in renders {
            let factor = factors[work.kind] ?? 1
            decode = max(decode, work.decode * factor)
            rest += work.rest * factor
            if work.isLong { return true }
        }
        return decode + rest > Self.long
    }

    func isLong(_ work: RenderWork) -> Bool { isLong(CollectionOfOne(work)) }

    /// Returns the seconds of CPU time after which a render is treated as long.
    func longRenderThreshold(_ work: RenderWork) -> Double {
        let estimate = (work.decode + work.rest) * (factors[work.kind] ?? 1)
        return min(Self.long, max(Self.minThreshold, Self.thresholdFactor * estimate)) / 1000
    }

    /// Corrects the estimates of renders of the same kind.
    ///
    /// - Parameter milliseconds: the CPU time of a render that shared no decode.
    mutating func learn(_ work: RenderWork, milliseconds: Double) {
        let estimate = work.decode + work.rest
        guard !work.isLong, max(estimate, milliseconds) >= Self.minCorrectingTime else { return }
        let factor = min(max(milliseconds / estimate, 1 / Self.maxCorrection), Self.maxCorrection)
        if let known = factors[work.kind] {
            factors[work.kind] = (known + factor) / 2
        } else {
            // It is unknown which kinds will recur, so drop all factors. They are quickly learned again.
            if factors.count >= Self.kindLimit { factors.removeAll() }
            factors[work.kind] = factor
        }
    }
}
