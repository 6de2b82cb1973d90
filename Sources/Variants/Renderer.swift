import PipelineSupport
import CVips

/// Renders in the calling process. Use it for pictures from trusted sources if the program needs no pipeline. A
/// pipeline creates its own renderer (`RenderIsolation.inProcess`).
///
/// ```swift
/// func thumbnail(of original: [UInt8]) async throws -> [UInt8] {
///     let renderer = InProcessRenderer(maxConcurrentRenders: 2)
///     let header = try ImageHeader.probe(original)
///     return try await renderer.render(
///         RenderJob(original: original, header: header, recipe: .thumbnail(300).webp())).bytes
/// }
/// ```
///
/// Nothing protects the process from a decoder that crashes or cannot be stopped. Use `WorkerPool` to render in
/// separate processes. libvips is loaded at the first render. Renders run on dedicated threads, because libvips
/// evaluates on the calling thread.
public final class InProcessRenderer: Rendering {
    private let core: PoolCore
    private let deadlines = RenderDeadlines()
    private let formats: Set<ImageFormat>

    /// - Parameters:
    ///   - count: the maximum number of concurrent renders. If there are at least two, one is reserved for short
    ///     renders. Defaults to the number of processors plus one.
    ///   - formats: the formats that are decoded in this process. Defaults to all except
    ///     `ImageFormat.decodedInWorkersOnly`.
    public convenience init(
        maxConcurrentRenders count: Int? = nil,
        formats: Set<ImageFormat> = Set(ImageFormat.decodable).subtracting(ImageFormat.decodedInWorkersOnly)
    ) {
        self.init(maxConcurrentRenders: count, formats: formats, longRenders: nil)
    }

    /// - Parameter longRenders: the maximum number of concurrent long renders. If nil, this is one less than `count`,
    ///   but at least one.
    package init(maxConcurrentRenders count: Int?, formats: Set<ImageFormat>, longRenders: Int?) {
        self.formats = formats
        var configuration = WorkerConfiguration()
        (configuration.maxConcurrentRenders, configuration.longRenders) = (count, longRenders)
        core = PoolCore(configuration) { [deadlines] in ThreadSlot(index: $0, core: $1, deadlines) }
    }

    deinit {
        core.close()
        deadlines.close()
    }

    package var libraries: RenderLibraries? { VipsLibrary.isLoaded ? RenderLibraries.loaded : nil }

    package func loadLibraries() async -> RenderLibraries? {
        if let libraries { return libraries }
        return await OwnedThreads(count: 1) { cvips_leave_thread() }.run {
            do throws(RenderError) { try VipsLibrary.load() } catch { return nil }
            return RenderLibraries.loaded
        }
    }

    /// The number of renders that no thread has started.
    var waiting: Int { core.waiting }
    /// The number of renders that used the decode of a different render.
    var shared: Int { core.statistics.shared }

    /// Renders a job and returns the encoded picture. Cancelling the calling task stops the render.
    public func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant {
        try await core.variant(of: try checked(job))
    }

    /// Applies the steps of the job's recipe and returns the decoded pixels for display. Ignores the recipe's output.
    public func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer {
        try await core.pixels(of: try checked(job.inPixels))
    }

    /// Returns the job if its header is within the limits. Restricts the job to the formats of this process, because
    /// masks and overlays are opened while the job runs.
    private func checked(_ job: RenderJob) throws(RenderError) -> RenderJob {
        try job.checkLimits()
        try checkFormat(job.header.format)
        var job = job
        job.limits.formats.formIntersection(formats)
        return job
    }

    /// Throws if the format is not decoded in this process.
    package func checkFormat(_ format: ImageFormat) throws(RenderError) {
        guard !formats.contains(format) else { return }
        throw RenderError(
            .unsupportedFormat,
            "\(format.rawValue) pictures are decoded only in render workers, because a malicious picture could exploit their decoder and take over this "
                + "process: use RenderIsolation.workers (render.isolation=workers), or add the format to "
                + "RenderingConfiguration.inProcessFormats if all pictures are trusted")
    }
}

/// One render on the current thread. The memory of `original` must stay valid until the render ends.
struct Render {
    private(set) var job: RenderJob
    private(set) var original: UnsafeRawBufferPointer
    /// Whether the original has missing pixels and the available part is rendered.
    private var isDamaged = false
    let context: RenderContext
    private let pictures: SharedPictures
    let started = SystemClock.monotonic.seconds
    let startedCPU = SystemClock.threadCPU.seconds

    init(_ job: RenderJob, _ original: UnsafeRawBufferPointer, _ control: RenderControl, _ pictures: SharedPictures) {
        self.job = job
        self.pictures = pictures
        // Discard the balance that a failed render may have left.
        _ = pictures.takeBalance()
        self.original = ByteReader(original).withoutLeadingSpace.all
        context = RenderContext(
            light: job.light, isDrawn: job.isDrawn(ByteReader(self.original)), limits: job.limits, masks: job.masks,
            control: control)
    }

    func variant() throws(RenderError) -> RenderedVariant {
        if job.isVector { return try vector() }
        let kept = job.output.transcodes ? try transcoded() : nil
        if case .success(let variant)? = kept, !job.output.transcodesIfSmaller { return variant }
        var encoding = self
        encoding.job.output.transcodes = false
        var variant = try encoding.repairing { render throws(RenderError) in try render.variantOfBytes() }
        switch kept {
        case .success(var smaller)? where smaller.bytes.count <= variant.bytes.count:
            (smaller.cpuTime, smaller.timings) = (variant.cpuTime, variant.timings)
            return smaller
        case .failure(let refusal)? where !job.output.transcodesIfSmaller: variant.reencodingReason = refusal.reason
        default: break
        }
        return variant
    }

    func pixels() throws(RenderError) -> PixelBuffer {
        try repairing { render throws(RenderError) in try render.pixelsOfBytes() }
    }

    /// Runs `body`. If the original cannot be decoded, runs `body` again with repaired bytes if a repair is possible,
    /// or otherwise with the available part if `limits.acceptsDamaged` is set.
    private func repairing<Value>(_ body: (Render) throws(RenderError) -> Value) throws(RenderError) -> Value {
        do throws(RenderError) { return try body(self) } catch {
            guard error.code == .undecodable, let decoder = job.header.format.decoder else { throw error }
            var second = self
            if job.shared?.area != nil {
                // The area of the other renders may be damaged in a different place.
                second.job.shared = nil
                return try second.repairing(body)
            }
            let repaired = decoder.repaired(original)
            if let repaired { second.original = repaired.bytes } else { second.isDamaged = true }
            guard repaired != nil || decoder.readsDamaged && job.limits.acceptsDamaged else { throw error }
            try context.control.check()
            return try withExtendedLifetime(repaired) { () throws(RenderError) in try body(second) }
        }
    }

    private func variantOfBytes() throws(RenderError) -> RenderedVariant {
        try Encoding.checkAvailability(job.output)
        let (frames, metadata, plan) = try open(frames: job.frameCount)
        let opened = SystemClock.monotonic.seconds
        let (pixels, profile) = try finished(frames, plan)
        let computed = SystemClock.monotonic.seconds
        let computedCPU = SystemClock.threadCPU.seconds
        try context.control.beginEncoding()
        let beforeEncoding = SystemClock.processCPU.seconds
        let (bytes, format): ([UInt8], ImageFormat)
        if job.output.isSecondPass {
            let others = job.output.secondFormats.map { format in
                encodeJob(job.output.inSecondPass(as: format), pixels, metadata, profile)
            }
            let first = job.masks[RenderJob.firstVersionKey] ?? []
            (bytes, format) = try Encoding.secondPass(pixels, others, replacing: first, context.control)
        } else {
            bytes = try Encoding.encode(pixels, encodeJob(job.output, pixels, metadata, profile))
            format = job.output.format
        }
        let ended = SystemClock.monotonic.seconds
        // The encoders of libvips run on their own threads, one at a time, so wall time approximates CPU time. This is not
        // so at a low CPU priority, but then no other render runs in the process.
        let encoding = job.output.isSecondPass ? SystemClock.processCPU.seconds - beforeEncoding : ended - computed
        var variant = RenderedVariant(
            bytes: bytes, format: format, width: pixels.width, height: pixels.height,
            hasAlpha: pixels.bands == 4,
            timings: Timings(
                decode: .seconds(opened - started), operations: .seconds(computed - opened),
                encode: .seconds(ended - computed)),
            cpuTime: .seconds(max(0, computedCPU - startedCPU + pictures.takeBalance() + encoding)))
        variant.libraries = RenderLibraries.loaded
        variant.isDamaged = isDamaged
        return variant
    }

    private func encodeJob(
        _ output: ResolvedOutput, _ pixels: EncodablePixels, _ metadata: KeptBlobs, _ profile: [UInt8]?
    ) -> EncodeJob {
        var kept = metadata.kept(
            for: output, of: PixelSize(width: pixels.width, height: pixels.height), isUpright: job.recipe.orients,
            tiff: ByteReader(original))
        if output.keep.contains(.icc) { kept.profile = profile }
        var encode = EncodeJob(output: output, kept: kept, control: context.control)
        if job.header.hasFewColors, pixels.width * pixels.height < job.header.encodedWidth * job.header.encodedHeight {
            encode.bound = job.original.count
        }
        return encode
    }

    private func pixelsOfBytes() throws(RenderError) -> PixelBuffer {
        let (frames, _, plan) = try open(frames: 1)
        let picture = try applySteps(plan, to: picture(of: frames, 0, plan))
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
                    "the SVG would be drawn at \(drawn.width) × \(drawn.height) pixels", "pixels", job.limits.pixels,
                    remedy: "use a smaller size")
            }
            var header = job.header
            (header.encodedWidth, header.encodedHeight) = (drawn.width, drawn.height)
            image = try Decoding.open(file.bytes, header)
        } else {
            image = try Decoding.open(
                original, job.header, page: job.recipe.page, shrink: plan.shrink, frames: frames, isDamaged: isDamaged)
        }
        if let shared = job.shared, plan.shared != nil || plan.sharedArea != nil, !shared.fits(image) {
            // This picture must be converted before it is shrunk, so it cannot share a decode.
            plan = RenderPlan(alone: job)
            image = try Decoding.open(
                original, job.header, page: job.recipe.page, shrink: plan.shrink, frames: frames)
        }
        context.control.watch(image)
        if let profile = image.blob("icc-profile-data"), profile.count > job.limits.profileBytes {
            throw .overLimit("the ICC profile has \(profile.count) bytes", "profileBytes", job.limits.profileBytes)
        }
        let keep = job.output.keep
        let metadata = keep.isEmpty ? KeptBlobs() : KeptBlobs(image, ByteReader(original), job.header.format, for: keep)
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
        if let tile = plan.tile, let area = plan.sharedArea, let shared = job.shared {
            picture.image = try pictures.area(area, of: picture, shared, context.control)
            let part = PixelRectangle(
                x: tile.x - area.x, y: tile.y - area.y, width: tile.width, height: tile.height)
            if plan.shrink > 1 {
                try picture.select(part, shrink: plan.shrink)
            } else {
                picture = try picture.normalized(context).cropped(to: part)
            }
        } else if let window = plan.window {
            try picture.select(window, shrink: plan.shrink)
        }
        if let shared = job.shared, let target = plan.shared {
            let (job, control) = (job, context.control)
            // This is safe because only a step of this render calls the closure, and the bytes stay valid until the
            // render ends.
            nonisolated(unsafe) let original = original
            picture.shared = SharedReduction(
                shared: shared, target: target, pictures: pictures, isDrawn: context.isDrawn
            ) { () throws(RenderError) in
                let plan = RenderPlan(alone: job)
                let image = try Decoding.open(original, job.header, page: job.recipe.page, shrink: plan.shrink)
                control.watch(image)
                return (image, job.header.extent(of: image, shrink: plan.shrink))
            }
        }
        return picture
    }

    /// Returns all frames with the steps applied, and the profile that describes the frames.
    private func finished(
        _ frames: FrameSequence, _ plan: RenderPlan
    ) throws(RenderError) -> (pixels: EncodablePixels, profile: [UInt8]?) {
        var picture = try finishedFrame(frames, 0, plan)
        let first = picture.image
        if frames.count > 1, first.width * first.height * frames.count > job.limits.pixels {
            throw .overLimit(
                "the result has \(frames.count) frames of \(first.width) × \(first.height) pixels", "pixels",
                job.limits.pixels,
                remedy: "use `frames:\(max(1, job.limits.pixels / (first.width * first.height)))` for fewer frames")
        }
        let frameBytes = first.byteCount
        let storage = PixelStorage(byteCount: frameBytes * frames.count)
        for index in 0..<frames.count {
            if index > 0 { picture = try finishedFrame(frames, index, plan) }
            let image = picture.image
            guard image.width == first.width, image.height == first.height, image.bands == first.bands else {
                throw RenderError(
                    .notApplicable,
                    "the frames of the animation have different sizes after the steps; remove steps such as `trim`")
            }
            try image.compute(into: storage, at: index * frameBytes, context.control)
        }
        let pixels = EncodablePixels(
            storage: storage, width: first.width, height: first.height, bands: first.bands, timing: frames.timing)
        return (try pixels.droppingOpaqueAlpha(context.control), picture.profile)
    }

    /// Returns one frame with the steps applied. Removes alpha if the output format cannot store it.
    private func finishedFrame(
        _ frames: FrameSequence, _ index: Int, _ plan: RenderPlan
    ) throws(RenderError) -> Picture {
        context.windows.beginFrame()
        let picture = try applySteps(plan, to: try picture(of: frames, index, plan))
        guard !job.output.format.holdsAlpha, picture.image.hasAlpha else { return picture }
        let white = Color(red: 255, green: 255, blue: 255)
        return try picture.flattened(onto: picture.background ?? white)
    }

    private func applySteps(_ plan: RenderPlan, to decoded: Picture) throws(RenderError) -> Picture {
        var picture = decoded
        // The window or tile is the result of the first step.
        for step in job.recipe.steps.dropFirst(plan.window == nil && plan.sharedArea == nil ? 0 : 1) {
            try context.control.check()
            picture = try step.apply(to: picture, in: context)
        }
        picture = try picture.normalized(context)
        try context.checkEdge(picture.size)
        return picture
    }
}
