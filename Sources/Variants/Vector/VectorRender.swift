import PipelineSupport

/// Specifies how SVG originals are handled (`RenderLimits.svg`).
public enum SVGHandling: String, Sendable, Hashable, CaseIterable {
    /// An SVG stays a vector unless the recipe names an output: it is sanitized and sent as SVG. This is the default.
    case pass
    /// Every variant of an SVG consists of pixels. `RenderLimits.formats` must contain `.svg`.
    case raster
    /// SVG originals are refused.
    case refuse
}

extension ResolvedOutput {
    /// An SVG that stays a vector. It has no options but the maximum size in bytes.
    static func vector(_ maxBytes: Int?) -> ResolvedOutput {
        ResolvedOutput(format: .svg, quality: 100, isLossless: true, maxBytes: maxBytes)
    }
}

extension RenderJob {
    /// Whether the result is an SVG.
    package var isVector: Bool { output.format == .svg }

    /// The job for decoded pixels, which have no output.
    var inPixels: RenderJob {
        guard isVector else { return self }
        var job = self
        job.output = ResolvedOutput(format: .png)
        return job
    }

    /// The advice for a recipe that an SVG does not support.
    var drawingHint: String {
        "add an output to the recipe, such as `webp`"
            + (limits.formats.contains(.svg) ? "" : ", and `svg` to the setting `decoders`")
    }

    /// Throws `notApplicable` if the recipe has steps that only pixels support.
    func checkVectorSteps() throws(RenderError) {
        for (index, step) in recipe.steps.enumerated() {
            guard index == 0, let thumbnail = step as? Thumbnail, !thumbnail.anchor.looksAtPixels else {
                throw RenderError(
                    .notApplicable,
                    "the step `\(step.canonicalText)` needs pixels, and the original is an SVG, which stays a vector: "
                        + drawingHint)
            }
        }
    }
}

extension Render {
    /// Returns the sanitized SVG at the size that the recipe specifies.
    func vector() throws(RenderError) -> RenderedVariant {
        try SVGDocument(ByteReader(original))?.check()
        var bytes = try SVGSanitizer.sanitized(original, context.control)
        // The size in the original may contain references.
        let header = try ImageHeader.probe(bytes)
        var size = PixelSize(width: header.encodedWidth, height: header.encodedHeight)
        if let thumbnail = job.recipe.steps.first as? Thumbnail {
            let geometry = thumbnail.geometry(of: size)
            bytes = try resized(bytes, from: size, by: thumbnail, geometry)
            size = geometry.output
        }
        if let budget = job.output.maxBytes, bytes.count > budget {
            throw RenderError(
                .overBudget,
                "the SVG has \(bytes.count) bytes, more than max=\(budget), and has no quality to lower; use a larger `max=`, or "
                    + job.drawingHint)
        }
        let ended = SystemClock.threadCPU.seconds
        return RenderedVariant(
            bytes: bytes, format: .svg, width: size.width, height: size.height, hasAlpha: true,
            timings: Timings(operations: .seconds(SystemClock.monotonic.seconds - started)),
            cpuTime: .seconds(max(0, ended - startedCPU)))
    }

    private func resized(
        _ bytes: [UInt8], from size: PixelSize, by thumbnail: Thumbnail, _ geometry: ThumbnailGeometry
    ) throws(RenderError) -> [UInt8] {
        let isWhole = thumbnail.mode == .fit
        let (sized, background) = bytes.withUnsafeBytes {
            let document = SVGDocument(ByteReader($0))
            return (
                document?.sized(isWhole ? geometry.scaled : size, isNested: !isWhole).array,
                document?.backgroundColor
            )
        }
        guard let sized else { throw ImageHeader.damaged("SVG", "its root element is too long") }
        if isWhole { return sized }
        // The picture keeps its size inside a new root, whose `viewBox` is the visible part. The units of lengths in
        // the picture then stay the same, and so does its own `preserveAspectRatio`.
        let (scaled, output) = (geometry.scaled, geometry.output)
        let across = Double(size.width) / Double(scaled.width)
        let down = Double(size.height) / Double(scaled.height)
        let window =
            thumbnail.mode == .pad
            ? thumbnail.anchor.rectangle(scaled, in: output) : thumbnail.anchor.rectangle(output, in: scaled)
        let sign = thumbnail.mode == .pad ? -1.0 : 1.0
        let box = [
            sign * Double(window.x) * across, sign * Double(window.y) * down, Double(output.width) * across,
            Double(output.height) * down,
        ]
        let root =
            "<svg xmlns=\"\(SVGNames.namespace)\" width=\"\(output.width)\" height=\"\(output.height)\" viewBox=\""
            + box.map { "\($0)" }.joined(separator: " ")
            + "\" preserveAspectRatio=\"none\" style=\"width:\(output.width)px "
            + "!important;height:\(output.height)px !important\">"
        // Only the outermost root has a background.
        let canvas =
            background.map {
                "<rect width=\"\(size.width)\" height=\"\(size.height)\" style=\"fill:\($0)\"/>"
            } ?? ""
        return Array((root + canvas).utf8) + sized + Array("</svg>".utf8)
    }
}

extension SVGDocument {
    /// The background color in the `style` attribute of the root, as written there, or nil if the attribute has no color.
    fileprivate var backgroundColor: String? {
        let style = attributes.first { $0.name == "style" }?.value ?? ""
        let declaration = CSSText.declarations(Array(style.utf8)).last {
            ["background", "background-color"].contains($0.name.lowercased())
        }
        // A color contains no quotes, references or further declarations.
        guard let value = declaration?.value, !value.contains(where: { "\"'&<>;:".contains($0) }),
            !CSSText.functions(value).contains("url")
        else { return nil }
        return value
    }
}
