/// What a render is expected to cost, as far as its header and recipe say: pixels, times the weights that the decoder,
/// the steps and the encoder declare (`nanosecondsPerPixel`). The weights are CPU time of one thread, measured roughly
/// (docs/workers.md says how); `RenderCosts` corrects them by what renders did cost.
struct RenderWork: Sendable, Hashable {
    /// CPU milliseconds of opening and decoding, which renders that share a decode spend once.
    var decode: Double
    /// CPU milliseconds of everything else.
    var rest: Double
    /// Whether it counts as long, whatever the estimate says.
    var isLong = false
    /// Equal for renders of the same steps, output, and format of the original. A hash, so that the pool compares numbers
    /// while it holds its lock.
    var kind: Int

    /// What any render costs, however few its pixels are.
    private static let least = 1.0
    /// Files that are made for a `max=`, on average (docs/benchmarks.md).
    private static let budgetAttempts = 2.5

    init(decode: Double, rest: Double, kind: Int) {
        self.decode = decode
        self.rest = rest
        self.kind = kind
    }

    init(_ job: RenderJob, _ kind: WorkerRequest.Kind = .variant) {
        let plan = RenderPlan(alone: job)
        let frames = Double(job.frameCount)
        func pixels(_ size: PixelSize) -> Double { Double(size.width) * Double(size.height) * frames }
        var size = plan.size
        let stored = pixels(size)
        var now = stored / Double(plan.shrink * plan.shrink)
        // A decoder that shrinks still reads the whole file, which is about half of its work.
        let decoded = (stored + now) / 2 * (job.header.format.decoder?.nanosecondsPerPixel(job.header) ?? 0)
        var nanoseconds = 0.0
        for step in job.recipe.steps {
            // `checkSizes` reports a step that cannot be applied.
            if let step = step as? any ResizingOperation { size = (try? step.resultSize(of: size)) ?? size }
            nanoseconds += step.nanosecondsPerPixel * max(now, pixels(size))
            now = pixels(size)
        }
        if kind == .variant {
            let attempts = job.output.maxBytes == nil || job.output.isLossless ? 1 : Self.budgetAttempts
            nanoseconds += (job.output.format.encoder?.nanosecondsPerPixel(job.output) ?? 0) * now * attempts
        }
        self.init(
            decode: decoded / 1e6, rest: nanoseconds / 1e6 + Self.least,
            kind: [job.header.format.rawValue, job.recipe.stepsDescription, job.output.description].hashValue)
        // The size of a drawing does not tell its cost. A file that is larger than its uncompressed pixels holds other
        // things, of unknown cost.
        isLong =
            job.header.format.decoder?.isDrawing == true
            || Double(job.original.count) > Self.ordinaryBytes
                + 16 * Double(job.header.width) * Double(job.header.height) * Double(job.header.pages)
    }

    /// Metadata of a small picture.
    private static let ordinaryBytes = 262_144.0
}

extension RenderJob {
    /// Refuses a picture whose decoding is expected to exceed `limits.seconds`, rather than stop it then. Estimates say
    /// nothing of fractions of a second.
    func checkWork() throws(RenderError) {
        let seconds = RenderWork(self).decode / 1000
        guard seconds > max(1, limits.seconds) else { return }
        let scans = header.scans > 1 ? " in \(header.scans) scans" : ""
        throw RenderError(
            .overLimit,
            "\(pictureText)\(scans) may take \(Int(seconds.rounded(.up))) s to decode, which is over the limit "
                + "limits.seconds = \(limits.seconds); raise the limit to accept such pictures")
    }
}

/// What renders are expected to cost: their estimates, times what renders with the same steps took in comparison.
struct RenderCosts: Sendable {
    /// CPU milliseconds above which a render is long. Ordinary variants stay below: a 12 MP photograph takes 40 at
    /// 300 px, and some 220 as WebP of 1600 px. What waits for one that is longer is a delay that people notice.
    static let long = 250.0
    /// Renders that took less say little about large ones: much of it is not proportional to pixels.
    private static let telling = 20.0
    /// A factor beyond this is an exception, not a rule.
    private static let mostCorrection = 8.0
    private static let kindLimit = 512
    /// A render counts as long after so many milliseconds of CPU time, or so many times its estimate, whichever is more. An
    /// ordinary thumbnail takes less, also by chance.
    private static let (patience, patienceFactor) = (100.0, 4.0)

    private var factors: [Int: Double] = [:]

    /// Whether renders that are made one after another, from one decode, are long together.
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

    /// Seconds of CPU time after which a render counts as long.
    func patience(_ work: RenderWork) -> Double {
        let estimate = (work.decode + work.rest) * (factors[work.kind] ?? 1)
        return min(Self.long, max(Self.patience, Self.patienceFactor * estimate)) / 1000
    }

    /// Corrects the estimates of renders with the same steps.
    ///
    /// - Parameter milliseconds: of CPU time that a render took by itself.
    mutating func learn(_ work: RenderWork, milliseconds: Double) {
        let estimate = work.decode + work.rest
        guard !work.isLong, max(estimate, milliseconds) >= Self.telling else { return }
        let factor = min(max(milliseconds / estimate, 1 / Self.mostCorrection), Self.mostCorrection)
        if let known = factors[work.kind] {
            factors[work.kind] = (known + factor) / 2
        } else {
            // Which kinds come again is unknown, and they are soon learned again.
            if factors.count >= Self.kindLimit { factors.removeAll() }
            factors[work.kind] = factor
        }
    }
}
