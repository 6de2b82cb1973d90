/// An estimate of the memory that a render needs in a worker, based on the header and the recipe. The estimate is an
/// upper bound, because a worker that runs out of memory is lost. It was measured with pictures of 25 and 100
/// megapixels (docs/workers.md).
struct RenderMemory: Sendable, Hashable {
    /// Bytes for the file and the data that its decoder keeps.
    var decode: Int
    /// Bytes for the data that the steps and the encoder keep.
    var pictures: Int
    /// Bytes for row buffers and the fixed cost of a render.
    var rows: Int

    var total: Int { decode + pictures + rows }

    init(_ job: RenderJob) {
        let header = job.header
        let plan = RenderPlan(alone: job)
        decode = header.format.decoder?.memory(header, shrink: plan.shrink, count: job.original.count) ?? 0
        // This is enough for about 700 rows of four bands. A pixel takes eight bytes if the format may have 16 bits per
        // sample.
        rows = 40 << 20 + plan.read.width * ([.jpeg, .webp, .gif].contains(header.format) ? 2800 : 5600)

        let steps = job.recipe.steps
        let bands = header.hasAlpha || steps.contains(where: { $0.alphaEffect != .keeps }) ? 4.0 : 3.0
        func bytes(_ size: PixelSize) -> Double { Double(size.width) * Double(size.height) * bands }
        var size = plan.size
        var held = 0.0
        for (index, step) in steps.enumerated() {
            let before = size
            // Ignore the error here: `checkSizes` reports a step that cannot be applied.
            if let step = step as? any ResizingOperation { size = (try? step.resultSize(of: size)) ?? size }
            // A picture that is enlarged, or is scaled before it is cropped, is largest after it has been scaled.
            let scaled = (step as? Thumbnail).map { bytes($0.geometry(of: before).scaled) } ?? 0
            let largest = max(step is Thumbnail || step is Scaled ? 0 : bytes(before), bytes(size), scaled)
            // The EXIF rotation happens in memory: before the first step, or after this step has scaled the picture.
            let turned = index == 0 && plan.orientation > 1 ? 1.0 : 0
            held = max(held, (step.heldPictures + turned) * largest)
        }
        if steps.isEmpty, plan.orientation > 1 { held = bytes(size) }
        // The encoder needs its input and the same amount for its own data. Measuring a score decodes one frame again.
        let output = 2 * bytes(size) * Double(job.frameCount) + (job.output.score == nil ? 0 : bytes(size))
        pictures = Int(min(held + output, 0x1p50))
    }
}

extension RenderJob {
    /// The description of the original in messages about cost.
    var pictureText: String {
        // Explain why the decoder keeps the complete picture when other files of this format need only rows.
        let kinds: [ImageFormat: String] = header.heldBytes > 0 ? [.jpeg: "progressive ", .png: "interlaced "] : [:]
        return "\(header.sizeText) of \(kinds[header.format] ?? "")\(header.format.title)"
    }

    /// Throws `overLimit` if the render may need more memory than a worker has.
    func checkMemory(_ limit: Int) throws(RenderError) {
        let memory = RenderMemory(self)
        guard memory.total > limit else { return }
        func megabytes(_ bytes: Int) -> String { "\((bytes + 999_999) / 1_000_000) MB" }
        throw .overLimit(
            "\(pictureText) may take \(megabytes(memory.total)) of memory (\(megabytes(memory.decode)) for decoding, \(megabytes(memory.pictures)) for the "
                + "steps and the output)",
            "workerMemory", limit,
            remedy: memory.pictures > memory.decode
                ? "raise the limit, or begin the recipe with a step that reduces the size" : nil)
    }
}
