/// The decisions that the header and the recipe determine before decoding, such as how much the decoder shrinks.
struct RenderPlan: Sendable, Hashable {
    /// The picture's size after the orientation has been applied.
    var size: PixelSize
    /// The EXIF orientation to apply, 1…8.
    var orientation: Int
    /// The factor by which the decoder shrinks each edge. 1 for a full decode.
    var shrink: Int
    /// The part of the stored picture that a leading `crop` selects, if the decoder reads only this part or shrinks it.
    /// Its edges are multiples of `shrink`, except at the edges of the picture. Otherwise nil.
    var window: PixelRectangle?
    /// The part of the stored picture that a leading `crop` selects, if the render can share the decode of other parts.
    /// This requires that there is only one frame and that the decoder reads the picture from top to bottom.
    var tile: PixelRectangle?
    /// The area of a shared decode that contains `tile`, or nil if the render decodes the original itself.
    var sharedArea: PixelRectangle?
    /// The size of the part that the decoder reads. If the file contains smaller versions, this is the size in the
    /// version that is read.
    var read: PixelSize
    /// The size at which a vector drawing is rendered for the first step. If nil, the drawing's own size is used.
    var drawn: PixelSize?
    /// The size to which the first step shrinks the stored picture, if the render can use a shared decode. This
    /// requires that shrinking comes first, that there is only one frame, and that no later step amplifies invisible
    /// differences. Otherwise nil.
    var reduction: PixelSize?
    /// The light in which the first step resizes, if it resizes.
    var light: RenderLight
    /// The picture of a shared decode that the render starts with, or nil if the render decodes the original itself.
    var shared: SharedDecode.Target?
    /// Whether the original has alpha, according to the header.
    let hasAlpha: Bool

    init(_ job: RenderJob) {
        let header = job.header
        hasAlpha = header.hasAlpha
        let stored = PixelSize(width: header.encodedWidth, height: header.encodedHeight)
        orientation = job.recipe.orients ? header.orientation : 1
        size = orientation >= 5 ? stored.swapped : stored
        shrink = 1
        light = job.light
        read = stored

        // libvips shrinks only the first frame of an animation while decoding.
        if job.frameCount > 1 { return }
        // The decoder may shrink only if the recipe starts with a resize. Any other first step needs all pixels.
        let target: PixelSize
        var quality = job.quality
        var steps = job.recipe.steps[...]
        var whole = size
        var part: PixelRectangle?
        let shrinksParts = header.readsWindows || header.format.decoder?.averagesSquares == true
        if shrinksParts, orientation == 1, let crop = steps.first as? Crop, let found = crop.window(of: size) {
            part = found
            whole = PixelSize(width: found.width, height: found.height)
            if header.readsWindows { (window, read) = (found, whole) }
            steps = steps.dropFirst()
        }
        switch steps.first {
        case let thumbnail as Thumbnail:
            target = thumbnail.geometry(of: whole).scaled
            quality = thumbnail.resample ?? quality
            light = thumbnail.light ?? light
        case let scaled as Scaled:
            target = whole.scaled(by: scaled.factor)
            light = scaled.light ?? light
        default:
            share(part, job)
            return
        }
        if header.format.decoder?.isDrawing == true {
            let scale = max(
                Double(target.width) / Double(size.width), Double(target.height) / Double(size.height))
            func edge(_ length: Int) -> Int { max(1, Int((Double(length) * scale).rounded())) }
            drawn = PixelSize(width: edge(size.width), height: edge(size.height))
            return
        }
        let factor = min(Double(whole.width) / Double(target.width), Double(whole.height) / Double(target.height))
        shrink = header.shrink(factor, quality)
        while let part, shrink > 1, !part.isMultiple(of: shrink, in: stored) { shrink /= 2 }
        if header.levels > 0 {
            read = PixelSize(width: max(1, read.width / shrink), height: max(1, read.height / shrink))
        }
        if part != nil {
            if shrink > 1 { window = part }
            share(part, job)
            return
        }
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

    private mutating func share(_ part: PixelRectangle?, _ job: RenderJob) {
        if job.header.readsWindows || job.header.levels > 0 { return }
        tile = part
        if let decode = job.shared, decode.includes(self) { sharedArea = decode.area }
    }
}

extension PixelRectangle {
    /// Whether a picture of this size that is divided by `factor` contains the rectangle without partial pixels, except
    /// at the right and bottom edges.
    fileprivate func isMultiple(of factor: Int, in size: PixelSize) -> Bool {
        func isMultiple(_ start: Int, _ length: Int, _ edge: Int) -> Bool {
            start % factor == 0 && (length % factor == 0 || start + length == edge) && start / factor < edge / factor
        }
        return isMultiple(x, width, size.width) && isMultiple(y, height, size.height)
    }
}

extension RenderQuality {
    /// The minimum factor that a shrinking decoder leaves to the resampler. Decoders average small blocks in gamma
    /// space. If they shrink less, the result is closer to a full decode followed by the resampler
    /// (docs/benchmarks.md).
    var leftToResampler: Double {
        switch self {
        case .fast: 1.5
        case .balanced: 4.0
        case .best: .infinity
        }
    }
}

extension ImageHeader {
    /// Returns the factor by which the decoder shrinks each edge if the picture is reduced by `factor` in total.
    func shrink(_ factor: Double, _ quality: RenderQuality) -> Int {
        if levels == 0 { return format.decoder?.shrink(factor, quality) ?? 1 }
        return (0...levels).map { 1 << $0 }.last { $0 == 1 || Double($0) * quality.leftToResampler <= factor } ?? 1
    }

    /// Returns the area that the picture covers in the decoded image. If the edges are not multiples of `shrink`, the
    /// last averaged squares are only partly covered. Returns nil if the picture fills the image.
    func extent(of image: Image, shrink: Int) -> Reduction.Extent? {
        guard shrink > 1, format.decoder?.averagesSquares == true else { return nil }
        return Reduction.Extent(
            width: min(Double(image.width), Double(encodedWidth) / Double(shrink)),
            height: min(Double(image.height), Double(encodedHeight) / Double(shrink)))
    }
}

extension RenderLight {
    /// Returns the fraction of linear light that shrinking mixes in, 0…1. The rest is stored (gamma) values.
    /// docs/benchmarks.md lists the scores of other fractions.
    ///
    /// Returns two fractions, for a photograph and for a drawing, if `isDrawn` is nil. The decoded rows then decide
    /// (`DrawingDetector`).
    func linearShares(isDrawn: Bool?) -> [Double] {
        switch self {
        case .auto: isDrawn.map { [$0 ? 0.125 : 0.9375] } ?? [0.9375, 0.125]
        case .linear: [1]
        case .gamma: [0]
        }
    }
}

extension RenderJob {
    /// Whether the original with the bytes `file` is probably a drawing rather than a photograph. A drawing is stored
    /// losslessly in few bits per pixel, whereas the noise of a photograph takes more bits. Returns nil if the original
    /// needs up to twice as many bits as a drawing may have, because it can then be either. Never returns nil for an
    /// animation, because its frames could otherwise be shrunk in different lights.
    func isDrawn(_ file: ByteReader) -> Bool? {
        guard let limit = header.format.decoder?.drawnBits(file) else { return false }
        let pixels = Double(header.encodedWidth) * Double(header.encodedHeight) * Double(header.pages)
        let bits = Double(8 * original.count) / pixels
        return bits < limit ? true : bits < 2 * limit && frameCount == 1 ? nil : false
    }

    /// The number of frames that are decoded and encoded.
    var frameCount: Int { recipe.decodedFrames(of: header, into: output.format) }

    /// Throws if the original exceeds a limit according to its size and header, before a decoder reads the bytes.
    ///
    /// - Parameter memory: the number of bytes that a worker may use, or nil if the process has no memory limit.
    package func checkLimits(memory: Int? = nil) throws(RenderError) {
        if let error = recipe.error { throw RenderError(.notApplicable, "recipe `\(recipe)`: \(error)") }
        func check(
            _ value: Int, _ limit: Int, _ name: String, _ message: @autoclosure () -> String
        ) throws(RenderError) {
            if value > limit { throw .overLimit(message(), name, limit) }
        }
        try check(original.count, limits.bytes, "bytes", "the original has \(original.count) bytes")
        if isVector { return try checkVectorSteps() }
        try limits.checkFormat(header.format)
        let frames = frameCount
        let (area, overflow) = header.encodedWidth.multipliedReportingOverflow(by: header.encodedHeight)
        let (pixels, overflowOfAll) = area.multipliedReportingOverflow(by: frames)
        let fitting = overflow || area < 1 ? 0 : min(limits.frames, limits.pixels / area)
        let remedy = frames > 1 && fitting > 0 ? "use `frames:\(fitting)` for fewer frames" : nil
        if frames > limits.frames {
            throw .overLimit("the animation has \(frames) frames", "frames", limits.frames, remedy: remedy)
        }
        func fits(_ read: PixelSize) -> Bool {
            let (area, overflow) = read.width.multipliedReportingOverflow(by: read.height)
            return !overflow && area <= limits.pixels
        }
        let isPart = frames == 1 && area > 0 && !overflow && (header.readsWindows || header.levels > 0)
        if overflow || overflowOfAll || pixels > limits.pixels, !isPart || !fits(RenderPlan(alone: self).read) {
            var message = header.sizeText
            let remedy = isPart ? "begin the recipe with a smaller `crop`, or raise the limit" : remedy
            if frames > 1 { message += " × \(frames) frames" }
            throw .overLimit("the picture has " + message, "pixels", limits.pixels, remedy: remedy)
        }
        try check(header.scans, limits.scans, "scans", "the JPEG has \(header.scans) scans")
        try check(
            header.profileBytes, limits.profileBytes, "profileBytes",
            "the ICC profile has \(header.profileBytes) bytes")
        if header.encodedWidth < 1 || header.encodedHeight < 1 {
            throw RenderError(.undecodable, "the header declares an empty picture")
        }
        if let memory { try checkMemory(memory) }
        try checkWork()
    }
}

extension RenderJob {
    /// Throws if a step cannot be applied to a picture of this size or exceeds `outputEdge`. Checks only sizes that the
    /// header determines.
    package func checkSizes() throws(RenderError) {
        if isVector { return }
        var size = RenderPlan(alone: self).size
        for case let step as any ResizingOperation in recipe.steps {
            guard let result = try step.resultSize(of: size) else { return }
            // A crop never enlarges, and can bring an oversized picture within the limit.
            if !(step is Crop) { try limits.checkEdge(result) }
            size = result
        }
        try limits.checkEdge(size)
    }
}

extension RenderLimits {
    /// Throws `overLimit` if an edge exceeds `outputEdge`.
    func checkEdge(_ size: PixelSize) throws(RenderError) {
        let edge = max(size.width, size.height)
        guard edge <= outputEdge else {
            throw .overLimit(
                "the result has an edge of \(edge) px (\(size.width) × \(size.height))", "outputEdge", outputEdge,
                remedy: "use a smaller size, such as `thumbnail:\(outputEdge)`")
        }
    }

    /// Throws if the format is not in `formats`.
    func checkFormat(_ format: ImageFormat) throws(RenderError) {
        guard !formats.contains(format) else { return }
        let known = ImageFormat.decodable.filter(formats.contains).map(\.rawValue).joined(separator: ", ")
        throw RenderError(
            .unsupportedFormat,
            "\(format.rawValue) pictures are not decoded, because the setting `decoders` contains only \(known); add the format, or "
                + "convert the picture")
    }
}

extension RenderError {
    /// Returns an error for a value above a limit. The message contains the value, the name of the limit and a remedy.
    /// By default, the message suggests raising the limit.
    static func overLimit(_ what: String, _ limit: String, _ value: Int, remedy: String? = nil) -> RenderError {
        RenderError(
            .overLimit,
            "\(what), which exceeds limits.\(limit) = \(value); \(remedy ?? "raise the limit to accept such pictures")")
    }
}
