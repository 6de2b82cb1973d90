/// What is decided from header and recipe before anything is decoded: how far the decoder may shrink.
struct RenderPlan: Sendable, Hashable {
    /// The picture's size after orientation.
    var size: PixelSize
    /// EXIF orientation to apply, 1…8.
    var orientation: Int
    /// How much smaller than stored the decoder makes each edge; 1 if it decodes in full.
    var shrink: Int
    /// The size that a drawing is drawn at for its first step; nil for its own size.
    var drawn: PixelSize?
    /// The size the first step shrinks the stored picture to, if another render's decode may be used: shrinking comes
    /// first, there is one frame, and no later step amplifies invisible differences. Otherwise nil.
    var reduction: PixelSize?
    /// What the first step adds up, if it resizes.
    var light: RenderLight
    /// The picture of a shared decode that the render starts with; nil if it decodes alone.
    var shared: SharedDecode.Target?
    /// Whether the original has alpha, as its header says.
    let hasAlpha: Bool

    init(_ job: RenderJob) {
        let header = job.header
        hasAlpha = header.hasAlpha
        let stored = PixelSize(width: header.width, height: header.height)
        orientation = job.recipe.orients ? header.orientation : 1
        size = orientation >= 5 ? stored.swapped : stored
        shrink = 1
        light = job.light

        // While decoding, libvips shrinks no frame of an animation but the first.
        if job.frameCount > 1 { return }
        // The decoder may shrink only if the recipe starts with a resize: any other first step needs all pixels.
        let target: PixelSize
        var quality = job.quality
        switch job.recipe.steps.first {
        case let thumbnail as Thumbnail:
            target = thumbnail.geometry(of: size).scaled
            quality = thumbnail.resample ?? quality
            light = thumbnail.light ?? light
        case let scaled as Scaled:
            target = size.scaled(by: scaled.factor)
            light = scaled.light ?? light
        default:
            return
        }
        if header.format.decoder?.isDrawing == true {
            let scale = max(
                Double(target.width) / Double(size.width), Double(target.height) / Double(size.height))
            func edge(_ length: Int) -> Int { max(1, Int((Double(length) * scale).rounded())) }
            drawn = PixelSize(width: edge(size.width), height: edge(size.height))
            return
        }
        let factor = min(Double(size.width) / Double(target.width), Double(size.height) / Double(target.height))
        shrink = header.format.decoder?.shrink(factor, quality) ?? 1
        let reduced = orientation >= 5 ? target.swapped : target
        guard reduced != stored, reduced.width <= stored.width, reduced.height <= stored.height,
            job.recipe.steps.reduce(1, { $0 * $1.differenceGain }) <= SharedDecode.gainLimit
        else { return }
        reduction = reduced
        if let decode = job.shared, let target = decode.target(of: self) {
            shared = target
            shrink = decode.shrink
        }
    }
}

extension RenderQuality {
    /// The factor that a decoder leaves to the resampler. Decoders average in gamma space over small blocks: the less
    /// they do, the nearer the picture is to what the resampler makes of a full decode (docs/benchmarks.md).
    var leftToResampler: Double {
        switch self {
        case .fast: 1.5
        case .balanced: 4.0
        case .best: .infinity
        }
    }
}

extension ImageHeader {
    /// How far the picture reaches in what its decoder made of it: a part of the last averaged squares. nil if it fills
    /// the image.
    func extent(of image: Image, shrink: Int) -> Reduction.Extent? {
        guard shrink > 1, format.decoder?.averagesSquares == true else { return nil }
        return Reduction.Extent(
            width: min(Double(image.width), Double(width) / Double(shrink)),
            height: min(Double(image.height), Double(height) / Double(shrink)))
    }
}

extension RenderLight {
    /// How much of what shrinking adds up is linear light, 0…1; the rest is the stored values. docs/benchmarks.md has the
    /// scores of other shares.
    ///
    /// Two shares, for a photograph and a drawing, if `isDrawn` is nil: the decoded rows decide (`CalmRows`).
    func linearShares(isDrawn: Bool?) -> [Double] {
        switch self {
        case .auto: isDrawn.map { [$0 ? 0.125 : 0.9375] } ?? [0.9375, 0.125]
        case .linear: [1]
        case .gamma: [0]
        }
    }
}

extension RenderJob {
    /// Whether the original, whose bytes are `file`, is likely drawn rather than photographed: it is stored without
    /// loss, in few bits a pixel. Photographs have noise, which cannot be stored in so few. Returns nil if up to
    /// twice as many bits leave that open. The frames of an animation never do: they would be shrunk in different lights.
    func isDrawn(_ file: ByteReader) -> Bool? {
        guard let limit = header.format.decoder?.drawnBits(file) else { return false }
        let pixels = Double(header.width) * Double(header.height) * Double(header.pages)
        let bits = Double(8 * original.count) / pixels
        return bits < limit ? true : bits < 2 * limit && frameCount == 1 ? nil : false
    }

    /// Frames decoded and written.
    var frameCount: Int { recipe.decodedFrames(of: header, into: output.format) }

    /// Refuses an original that exceeds a limit, judging by its size and header, before a decoder sees the bytes.
    ///
    /// - Parameter memory: bytes that a worker may use; nil in a process whose memory is not limited.
    package func checkLimits(memory: Int? = nil) throws(RenderError) {
        if let error = recipe.error { throw RenderError(.notApplicable, "recipe `\(recipe)`: \(error)") }
        func check(_ what: String, _ value: Int, _ limit: Int, _ name: String) throws(RenderError) {
            if value > limit { throw .overLimit("\(what) of \(value) is", name, limit) }
        }
        try limits.checkFormat(header.format)
        try check("an original", original.count, limits.bytes, "bytes")
        let frames = frameCount
        let (area, overflow) = header.width.multipliedReportingOverflow(by: header.height)
        let (pixels, overflowOfAll) = area.multipliedReportingOverflow(by: frames)
        let fitting = overflow || area < 1 ? 0 : min(limits.frames, limits.pixels / area)
        let remedy = frames > 1 && fitting > 0 ? "`frames:\(fitting)` fits" : nil
        if frames > limits.frames {
            throw .overLimit("\(frames) frames are", "frames", limits.frames, remedy: remedy)
        }
        if overflow || overflowOfAll || pixels > limits.pixels {
            var message = "\(header.width) × \(header.height) pixels"
            if frames > 1 { message += " × \(frames) frames" }
            throw .overLimit(message + " are", "pixels", limits.pixels, remedy: remedy)
        }
        try check("a number of JPEG scans", header.scans, limits.scans, "scans")
        try check("an ICC profile size", header.profileBytes, limits.profileBytes, "profileBytes")
        if header.width < 1 || header.height < 1 {
            throw RenderError(.undecodable, "the header declares an empty picture")
        }
        if let memory { try checkMemory(memory) }
        try checkWork()
    }
}

extension RenderJob {
    /// Refuses steps that cannot be applied to a picture of this size, or that exceed `outputEdge`, as far as sizes
    /// follow from the header.
    package func checkSizes() throws(RenderError) {
        var size = RenderPlan(alone: self).size
        for case let step as any ResizingOperation in recipe.steps {
            guard let result = try step.resultSize(of: size) else { return }
            // A crop never enlarges, and may bring an oversized picture within the limit.
            if !(step is Crop) { try limits.checkEdge(result) }
            size = result
        }
        try limits.checkEdge(size)
    }
}

extension RenderLimits {
    /// Refuses a result with an edge beyond `outputEdge`.
    func checkEdge(_ size: PixelSize) throws(RenderError) {
        let edge = max(size.width, size.height)
        guard edge <= outputEdge else {
            throw .overLimit(
                "an edge of \(edge) px (\(size.width) × \(size.height)) is", "outputEdge", outputEdge,
                remedy: "ask for a smaller size, as with `thumbnail:\(outputEdge)`")
        }
    }

    /// Refuses a format that is not among `formats`.
    func checkFormat(_ format: ImageFormat) throws(RenderError) {
        guard !formats.contains(format) else { return }
        let known = ImageFormat.decodable.filter(formats.contains).map(\.rawValue).joined(separator: ", ")
        throw RenderError(
            .unsupportedFormat,
            "\(format.rawValue) pictures are not decoded by this configuration (the setting `decoders` lists \(known)); add the format, or "
                + "convert the picture")
    }
}

extension RenderError {
    /// More than a limit allows. The message names what exceeds it, the limit's setting and value, and the remedy,
    /// which is to raise the limit unless a better one is given.
    static func overLimit(_ what: String, _ limit: String, _ value: Int, remedy: String? = nil) -> RenderError {
        RenderError(
            .overLimit,
            "\(what) over the limit limits.\(limit) = \(value); \(remedy ?? "raise the limit to accept such pictures")")
    }
}
