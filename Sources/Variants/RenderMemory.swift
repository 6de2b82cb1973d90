/// What a render takes of a worker's memory, as far as its header and recipe say: an upper bound, because a worker that runs
/// out of memory is lost. Measured with pictures of 25 and 100 megapixels (docs/workers.md).
struct RenderMemory: Sendable, Hashable {
    /// Bytes for the file and what its decoder keeps.
    var decode: Int
    /// Bytes for what the steps and the encoder keep.
    var pictures: Int
    /// Bytes for rows and what any render takes.
    var rows: Int

    var total: Int { decode + pictures + rows }

    init(_ job: RenderJob) {
        let header = job.header
        let plan = RenderPlan(alone: job)
        decode = header.format.decoder?.memory(header, shrink: plan.shrink, count: job.original.count) ?? 0
        // Some 700 rows of four bands, in formats that may have 16 bits of eight bytes a pixel.
        rows = 40 << 20 + header.width * ([.jpeg, .webp, .gif].contains(header.format) ? 2800 : 5600)

        let steps = job.recipe.steps
        let bands = header.hasAlpha || steps.contains(where: { $0.alphaEffect != .keeps }) ? 4.0 : 3.0
        func bytes(_ size: PixelSize) -> Double { Double(size.width) * Double(size.height) * bands }
        var size = plan.size
        var held = 0.0
        for (index, step) in steps.enumerated() {
            let before = size
            // `checkSizes` reports a step that cannot be applied.
            if let step = step as? any ResizingOperation { size = (try? step.resultSize(of: size)) ?? size }
            // A picture that is enlarged, or scaled to be cropped, is larger between the two.
            let scaled = (step as? Thumbnail).map { bytes($0.geometry(of: before).scaled) } ?? 0
            let largest = max(step is Thumbnail || step is Scaled ? 0 : bytes(before), bytes(size), scaled)
            // A picture is turned in memory, before the first step or once this has scaled it.
            let turned = index == 0 && plan.orientation > 1 ? 1.0 : 0
            held = max(held, (step.heldPictures + turned) * largest)
        }
        if steps.isEmpty, plan.orientation > 1 { held = bytes(size) }
        // The encoder's input, and as much for the encoder.
        let output = 2 * bytes(size) * Double(job.frameCount)
        pictures = Int(min(held + output, 0x1p50))
    }
}

extension RenderJob {
    /// The original as messages about its cost name it.
    var pictureText: String {
        // Why the decoder keeps more than rows, if other files of the format take less.
        let kinds: [ImageFormat: String] = header.heldBytes > 0 ? [.jpeg: "progressive ", .png: "interlaced "] : [:]
        return "\(header.width) × \(header.height) pixels of \(kinds[header.format] ?? "")\(header.format.title)"
    }

    /// Refuses a render that may take more memory than a worker has.
    func checkMemory(_ limit: Int) throws(RenderError) {
        let memory = RenderMemory(self)
        guard memory.total > limit else { return }
        func megabytes(_ bytes: Int) -> String { "\((bytes + 999_999) / 1_000_000) MB" }
        throw .overLimit(
            "\(pictureText) may take \(megabytes(memory.total)) of memory (\(megabytes(memory.decode)) to decode, \(megabytes(memory.pictures)) for the "
                + "steps and the output), which is",
            "workerMemory", limit,
            remedy: memory.pictures > memory.decode
                ? "raise the limit, or begin the recipe with a step that makes the picture smaller" : nil)
    }
}
