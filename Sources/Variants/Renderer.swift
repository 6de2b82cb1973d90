import PipelineSupport
import CVips
import Glibc
import Synchronization

/// Renders in this process, on threads of its own.
///
/// Nothing protects the process from a decoder that crashes or cannot be stopped; that is what worker processes are
/// for. libvips is loaded on the first render.
public final class InProcessRenderer: Rendering {
    /// Renders run on these threads, because libvips evaluates on the calling thread.
    private let threads: OwnedThreads
    private let deadlines = RenderDeadlines()
    private let gathered: GatheredRenders
    private let formats: Set<ImageFormat>
    /// Whether libvips has been loaded.
    private let isLoaded = Atomic(false)

    /// - Parameters:
    ///   - count: how many renders run at once, of which one is kept for those that take little time, if there are two
    ///     or more; by default one more than processors.
    ///   - formats: the formats decoded in this process; by default all but `ImageFormat.decodedInWorkersOnly`.
    public convenience init(
        threads count: Int? = nil,
        formats: Set<ImageFormat> = Set(ImageFormat.decodable).subtracting(ImageFormat.decodedInWorkersOnly)
    ) {
        self.init(threads: count, formats: formats, longRenders: nil)
    }

    /// - Parameter longRenders: the most long renders at a time; nil for one less than `count`, but at least one.
    package init(threads count: Int?, formats: Set<ImageFormat>, longRenders: Int?) {
        self.formats = formats
        let count = max(1, count ?? sysconf(Int32(_SC_NPROCESSORS_ONLN)) + 1)
        gathered = GatheredRenders(longLimit: longRenders ?? max(1, count - 1))
        threads = OwnedThreads(count: count) { cvips_leave_thread() }
        deadlines.start()
    }

    deinit {
        deadlines.close()
    }

    package var libraries: RenderLibraries? { isLoaded.load(ordering: .acquiring) ? RenderLibraries.loaded : nil }

    package func loadLibraries() async -> RenderLibraries? {
        if let libraries { return libraries }
        return await threads.run { [self] in
            do throws(RenderError) { try load() } catch { return nil }
            return RenderLibraries.loaded
        }
    }

    private func load() throws(RenderError) {
        try VipsLibrary.load()
        isLoaded.store(true, ordering: .releasing)
    }

    /// Renders that no thread has taken.
    var waiting: Int { gathered.waiting }

    public func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
        try await run(job, .variant) { render throws(RenderError) in
            try render.variant()
        } cost: {
            $0.cpuMilliseconds
        }
    }

    public func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer {
        try await run(job, .pixels) { render throws(RenderError) in try render.pixels() }
    }

    /// Checks the header, then runs `body` on one of our threads; the calling task's cancellation and the deadline stop
    /// it through its control.
    ///
    /// - Parameter cost: the CPU milliseconds that it took, if the value says so.
    private func run<Value: Sendable>(
        _ job: RenderJob, _ kind: WorkerRequest.Kind,
        _ body: @escaping @Sendable (Render) throws(RenderError) -> Value,
        cost: @escaping @Sendable (Value) -> Double? = { _ in nil }
    ) async throws(RenderError) -> Value {
        try job.checkLimits()
        try checkFormat(job.header.format)
        // The render itself opens masks and overlays, so it needs the permitted formats too.
        let prepared = job.decoding(formats)
        let deadlines = deadlines
        let control = RenderControl(job.limits, job.output.format) { control in
            deadlines.add(control, seconds: job.limits.encodeSeconds)
        }
        let work = RenderWork(prepared, kind)
        let id = gathered.newID()
        let run = { @Sendable [self] (job: RenderJob, pictures: SharedPictures) -> Result<Value, RenderError> in
            deadlines.add(control, seconds: job.limits.seconds)
            let outcome = Result { () throws(RenderError) in
                try control.check()
                try load()
                return try job.original.bytes().withUnsafeBytes { bytes in
                    Result { () throws(RenderError) in try body(Render(job, bytes, control, pictures)) }
                }.get()
            }
            deadlines.remove(control)
            control.finish()
            if job.shared == nil, case .success(let value) = outcome, let cost = cost(value) {
                gathered.learn(work, milliseconds: cost)
            }
            // Any failure after a stop is due to the stop, whatever error libvips reports.
            if case .failure = outcome, let stopped = control.stopError { return .failure(stopped) }
            return outcome
        }
        let outcome: Result<Value, RenderError> = await withTaskCancellationHandler {
            await withTaskPriorityEscalationHandler {
                await withCheckedContinuation { continuation in
                    gathered.submit(prepared, work, id: id, to: threads) { job, pictures in
                        continuation.resume(returning: run(job, pictures))
                    }
                    // The cancellation may have come before there was anything to cancel.
                    if control.isStopped { gathered.cancel(id: id) }
                }
            } onPriorityEscalated: { [gathered] _, priority in
                gathered.raise(id: id, to: priority)
            }
        } onCancel: { [gathered] in
            control.stop(.cancelled)
            gathered.cancel(id: id)
        }
        return try outcome.get()
    }
}

extension RenderJob {
    /// The same job with the formats it may decode reduced to these.
    fileprivate func decoding(_ formats: Set<ImageFormat>) -> RenderJob {
        var job = self
        job.limits.formats.formIntersection(formats)
        return job
    }
}

extension InProcessRenderer {
    /// Refuses a format that is not decoded in this process.
    package func checkFormat(_ format: ImageFormat) throws(RenderError) {
        guard !formats.contains(format) else { return }
        throw RenderError(
            .unsupportedFormat,
            "\(format.rawValue) pictures are decoded in render workers only, because a vulnerability in their decoder could take over this "
                + "process: choose RenderIsolation.workers (render.isolation=workers), or name the format in "
                + "PipelineConfiguration.inProcessFormats for pictures you trust")
    }
}

/// One render on the current thread; `original` stays valid throughout.
struct Render {
    let job: RenderJob
    private var original: UnsafeRawBufferPointer
    /// Whether it lacks pixels, and what is there is rendered.
    private var isDamaged = false
    let context: RenderContext
    private let pictures: SharedPictures
    private let started = SystemClock.monotonic.seconds
    private let startedCPU = SystemClock.threadCPU.seconds

    init(_ job: RenderJob, _ original: UnsafeRawBufferPointer, _ control: RenderControl, _ pictures: SharedPictures) {
        self.job = job
        self.pictures = pictures
        // Discards the balance that a failed render may have left.
        _ = pictures.settle()
        self.original = ByteReader(original).withoutLeadingSpace.all
        context = RenderContext(
            light: job.light, isDrawn: job.isDrawn(ByteReader(self.original)), limits: job.limits, masks: job.masks,
            control: control)
    }

    func variant() throws(RenderError) -> RenderedVariant {
        try mending { render throws(RenderError) in try render.variantOfBytes() }
    }

    func pixels() throws(RenderError) -> PixelBuffer {
        try mending { render throws(RenderError) in try render.pixelsOfBytes() }
    }

    /// Runs `body`, and again if the original cannot be decoded: with mended bytes if it can be mended, else with what is
    /// there if `limits.damaged` accepts that.
    private func mending<Value>(_ body: (Render) throws(RenderError) -> Value) throws(RenderError) -> Value {
        do throws(RenderError) { return try body(self) } catch {
            guard error.code == .undecodable, let decoder = job.header.format.decoder else { throw error }
            var second = self
            let mended = decoder.mended(original)
            if let mended { second.original = mended.bytes } else { second.isDamaged = true }
            guard mended != nil || decoder.readsDamaged && job.limits.damaged == .accept else { throw error }
            try context.control.check()
            return try withExtendedLifetime(mended) { () throws(RenderError) in try body(second) }
        }
    }

    private func variantOfBytes() throws(RenderError) -> RenderedVariant {
        try Encoding.checkAvailability(job.output)
        let (frames, metadata, plan) = try open(frames: job.frameCount)
        let opened = SystemClock.monotonic.seconds
        let (pixels, profile) = try finished(frames, plan)
        let computed = SystemClock.monotonic.seconds
        let computedCPU = SystemClock.threadCPU.seconds
        var kept = metadata.kept(
            job.output.keep, of: PixelSize(width: pixels.width, height: pixels.height), isUpright: job.recipe.orients,
            tiff: ByteReader(original))
        if job.output.keep.contains(.icc) { kept.profile = profile }
        try context.control.beginEncoding()
        var encode = EncodeJob(output: job.output, kept: kept, control: context.control)
        if job.header.hasFewColours, pixels.width * pixels.height < job.header.width * job.header.height {
            encode.bound = job.original.count
        }
        let bytes = try Encoding.encode(pixels, encode)
        let ended = SystemClock.monotonic.seconds
        var variant = RenderedVariant(
            bytes: bytes, format: job.output.format, width: pixels.width, height: pixels.height,
            hasAlpha: pixels.bands == 4,
            milliseconds: Timings(
                decode: (opened - started) * 1000, operations: (computed - opened) * 1000,
                encode: (ended - computed) * 1000),
            // libvips' savers work on threads of their own, one at a time, so wall time stands for CPU time.
            cpuMilliseconds: max(0, computedCPU - startedCPU + pictures.settle() + ended - computed) * 1000)
        variant.libraries = RenderLibraries.loaded
        variant.isDamaged = isDamaged
        return variant
    }

    private func pixelsOfBytes() throws(RenderError) -> PixelBuffer {
        let (frames, _, plan) = try open(frames: 1)
        let picture = try applySteps(to: picture(of: frames, 0, plan))
        let image = try picture.image.withAlpha()
        let pixels = try image.computed(context.control)
        return PixelBuffer(width: image.width, height: image.height, pixels: pixels.array)
    }

    private func open(
        frames: Int
    ) throws(RenderError) -> (frames: FrameSequence, metadata: KeptBlobs, plan: RenderPlan) {
        var plan = isDamaged ? RenderPlan(alone: job) : RenderPlan(job)
        try job.checkSizes()
        var image: Image
        if let drawn = plan.drawn, let file = job.header.format.decoder?.redrawn(original, drawn) {
            guard drawn.width * drawn.height <= job.limits.pixels else {
                throw .overLimit(
                    "drawing at \(drawn.width) × \(drawn.height) is", "pixels", job.limits.pixels,
                    remedy: "ask for a smaller size")
            }
            var header = job.header
            (header.width, header.height) = (drawn.width, drawn.height)
            image = try Decoding.open(file.bytes, header)
        } else {
            image = try Decoding.open(
                original, job.header, shrink: plan.shrink, frames: frames, isDamaged: isDamaged)
        }
        if let shared = job.shared, plan.shared != nil, !shared.fits(image) {
            // Such a picture has to be converted before it is shrunk, so it cannot share a decode.
            plan = RenderPlan(alone: job)
            image = try Decoding.open(original, job.header, shrink: plan.shrink, frames: frames)
        }
        context.control.watch(image)
        if let profile = image.blob("icc-profile-data"), profile.count > job.limits.profileBytes {
            throw .overLimit("an ICC profile size of \(profile.count) is", "profileBytes", job.limits.profileBytes)
        }
        var metadata = KeptBlobs()
        if !job.output.keep.isEmpty {
            metadata.exif = image.blob("exif-data")
            metadata.xmp = image.blob("xmp-data")
        }
        return (try FrameSequence(image, count: frames), metadata, plan)
    }

    private func picture(
        of frames: FrameSequence, _ index: Int, _ plan: RenderPlan
    ) throws(RenderError) -> Picture {
        let size =
            plan.shrink > 1 || plan.drawn != nil
            ? plan.size : PixelSize(width: frames.width, height: frames.height)
        let oriented = plan.shrink == 1 && plan.orientation >= 5 ? size.swapped : size
        var picture = Picture(
            image: try frames.frame(index), size: oriented, orientation: plan.orientation,
            keepsProfile: job.recipe.keepsProfile && job.output.format.holdsProfile)
        picture.extent = job.header.extent(of: picture.image, shrink: plan.shrink)
        if let shared = job.shared, let target = plan.shared {
            let (job, control) = (job, context.control)
            // Safe: only a step of this render calls the closure, and the bytes stay valid until the render ends.
            nonisolated(unsafe) let original = original
            picture.shared = SharedReduction(
                shared: shared, target: target, pictures: pictures, isDrawn: context.isDrawn
            ) { () throws(RenderError) in
                let plan = RenderPlan(alone: job)
                let image = try Decoding.open(original, job.header, shrink: plan.shrink)
                control.watch(image)
                return (image, job.header.extent(of: image, shrink: plan.shrink))
            }
        }
        return picture
    }

    /// All frames with the steps applied, and the profile that describes them.
    private func finished(
        _ frames: FrameSequence, _ plan: RenderPlan
    ) throws(RenderError) -> (pixels: EncodablePixels, profile: [UInt8]?) {
        var picture = try finishedFrame(frames, 0, plan)
        let first = picture.image
        if frames.count > 1, first.width * first.height * frames.count > job.limits.pixels {
            throw .overLimit(
                "\(frames.count) frames of \(first.width) × \(first.height) pixels are", "pixels", job.limits.pixels,
                remedy: "`frames:\(max(1, job.limits.pixels / (first.width * first.height)))` fits")
        }
        let frameBytes = first.byteCount
        let storage = PixelStorage(byteCount: frameBytes * frames.count)
        for index in 0..<frames.count {
            if index > 0 { picture = try finishedFrame(frames, index, plan) }
            let image = picture.image
            guard image.width == first.width, image.height == first.height, image.bands == first.bands else {
                throw RenderError(.notApplicable, "the steps give the frames of the animation different sizes")
            }
            try image.compute(into: storage, at: index * frameBytes, context.control)
        }
        let pixels = EncodablePixels(
            storage: storage, width: first.width, height: first.height, bands: first.bands, timing: frames.timing)
        return (try pixels.droppingOpaqueAlpha(context.control), picture.profile)
    }

    /// One frame with the steps applied, without alpha if the output's format holds none.
    private func finishedFrame(
        _ frames: FrameSequence, _ index: Int, _ plan: RenderPlan
    ) throws(RenderError) -> Picture {
        context.windows.beginFrame()
        let picture = try applySteps(to: try picture(of: frames, index, plan))
        guard !job.output.format.holdsAlpha, picture.image.hasAlpha else { return picture }
        let white = Colour(red: 255, green: 255, blue: 255)
        return try picture.flattened(onto: picture.background ?? white)
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
