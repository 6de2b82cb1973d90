import CVips
import Glibc

/// Renders in this process, on threads of its own.
///
/// Nothing protects the process from a decoder that crashes or cannot be stopped; that is what worker processes are
/// for. libvips is loaded with the first render.
public final class InProcessRenderer: Rendering {
    /// libvips evaluates on the thread that asks.
    private let threads: OwnedThreads
    private let deadlines = RenderDeadlines()

    /// `threads`: how many renders run at once; by default one a core.
    public init(threads count: Int? = nil) {
        threads = OwnedThreads(count: max(1, count ?? sysconf(Int32(_SC_NPROCESSORS_ONLN)))) { cvips_leave_thread() }
        deadlines.start()
    }

    deinit {
        deadlines.close()
    }

    public func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
        try await run(job) { control throws(RenderError) in
            try job.original.bytes().withUnsafeBytes { bytes in
                Result { () throws(RenderError) in try Render(job, bytes, control).variant() }
            }.get()
        }
    }

    public func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer {
        try await run(job) { control throws(RenderError) in
            try job.original.bytes().withUnsafeBytes { bytes in
                Result { () throws(RenderError) in try Render(job, bytes, control).pixels() }
            }.get()
        }
    }

    /// Checks the header, then runs `body` on one of our threads; the calling task's cancellation and the deadline stop
    /// it through its control.
    private func run<Value: Sendable>(
        _ job: RenderJob, _ body: @escaping @Sendable (RenderControl) throws(RenderError) -> Value
    ) async throws(RenderError) -> Value {
        try job.checkLimits()
        let control = RenderControl(seconds: job.limits.seconds)
        let deadlines = deadlines
        let outcome: Result<Value, RenderError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                threads.submit {
                    deadlines.add(control, seconds: job.limits.seconds)
                    let outcome = Result { () throws(RenderError) in
                        try control.check()
                        try VipsLibrary.load()
                        return try body(control)
                    }
                    deadlines.remove(control)
                    control.finish()
                    // What fails after a stop fails because of it, whatever libvips calls it.
                    if case .failure = outcome, let stopped = control.stopError {
                        continuation.resume(returning: .failure(stopped))
                    } else {
                        continuation.resume(returning: outcome)
                    }
                }
            }
        } onCancel: {
            control.stop(.cancelled)
        }
        return try outcome.get()
    }
}

/// One render on the current thread; `original` stays valid throughout.
struct Render {
    let job: RenderJob
    let original: UnsafeRawBufferPointer
    let context: RenderContext
    private let started = Clock.monotonic.seconds
    private let startedCPU = Clock.threadCPU.seconds

    init(_ job: RenderJob, _ original: UnsafeRawBufferPointer, _ control: RenderControl) {
        self.job = job
        self.original = original
        context = RenderContext(quality: job.quality, limits: job.limits, masks: job.masks, control: control)
    }

    func variant() throws(RenderError) -> RenderedVariant {
        try Encoder.checkAvailability(job.output)
        let (decoded, metadata) = try open()
        let opened = Clock.monotonic.seconds
        var picture = try applySteps(to: decoded)
        if !job.output.format.holdsAlpha, picture.image.hasAlpha {
            let white = Colour(red: 255, green: 255, blue: 255)
            picture = try picture.flattened(onto: picture.background ?? white)
        }
        let pixels = EncodablePixels(
            storage: try picture.image.computed(context.control), width: picture.image.width,
            height: picture.image.height, bands: picture.image.bands
        ).droppingOpaqueAlpha()
        let computed = Clock.monotonic.seconds
        let computedCPU = Clock.threadCPU.seconds
        var kept = metadata
        if job.output.keep.contains(.icc) { kept.profile = picture.profile }
        let bytes = try Encoder.encode(pixels, job.output, kept, context.control)
        let ended = Clock.monotonic.seconds
        return RenderedVariant(
            bytes: bytes, format: job.output.format, width: pixels.width, height: pixels.height,
            hasAlpha: pixels.bands == 4,
            milliseconds: (
                (opened - started) * 1000, (computed - opened) * 1000, (ended - computed) * 1000
            ),
            // libvips' savers work on threads of their own, one at a time: their wall time stands for their CPU.
            cpuMilliseconds: (computedCPU - startedCPU + ended - computed) * 1000)
    }

    func pixels() throws(RenderError) -> PixelBuffer {
        let picture = try applySteps(to: try open().picture)
        let image = try picture.image.withAlpha()
        let pixels = try image.computed(context.control)
        return PixelBuffer(width: image.width, height: image.height, pixels: pixels.array)
    }

    private func open() throws(RenderError) -> (picture: Picture, metadata: KeptBlobs) {
        let plan = RenderPlan(job)
        let isResized = job.recipe.steps.contains { $0 is Thumbnail || $0 is Scaled || $0 is Crop || $0 is Trim }
        if !isResized { try context.checkEdge(plan.size) }
        let image = try Decoder.open(original, job.header.format, shrink: plan.shrink)
        context.control.watch(image)
        try Decoder.check(image, job.header, shrink: plan.shrink)
        if let profile = image.blob("icc-profile-data"), profile.count > job.limits.profileBytes {
            throw RenderError(
                .overLimit,
                "an ICC profile size of \(profile.count) is over the limit profileBytes of \(job.limits.profileBytes)")
        }
        var metadata = KeptBlobs()
        if job.output.keep.contains(.exif) {
            let exif = image.blob("exif-data")
            metadata.exif = job.recipe.orients ? exif.map(KeptBlobs.upright) : exif
        }
        if job.output.keep.contains(.xmp) { metadata.xmp = image.blob("xmp-data") }
        let size = plan.shrink > 1 ? plan.size : PixelSize(width: image.width, height: image.height)
        let oriented = plan.shrink == 1 && plan.orientation >= 5 ? size.swapped : size
        let picture = Picture(
            image: image, size: oriented, orientation: plan.orientation,
            keepsProfile: job.recipe.keepsProfile && job.output.format.holdsProfile)
        return (picture, metadata)
    }

    private func applySteps(to decoded: Picture) throws(RenderError) -> Picture {
        var picture = decoded
        for step in job.recipe.steps {
            try context.control.check()
            picture = try step.apply(to: picture, in: context)
        }
        picture = try picture.settled(context)
        try context.checkEdge(picture.size)
        return picture
    }
}
