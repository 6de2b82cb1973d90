/// Finished pixels on their way into a file: 8 bits, 3 bands or 4 with alpha, rows without padding.
struct EncodablePixels: Sendable {
    let storage: PixelStorage
    let width: Int
    let height: Int
    let bands: Int

    /// Without the alpha band where it is opaque everywhere: smaller files, and formats without alpha suffice.
    func droppingOpaqueAlpha() -> EncodablePixels {
        let bytes = storage.bytes
        guard bands == 4, stride(from: 3, to: bytes.count, by: 4).allSatisfy({ bytes[$0] == 255 }) else { return self }
        let opaque = [UInt8](unsafeUninitializedCapacity: width * height * 3) { buffer, count in
            var to = 0
            for from in stride(from: 0, to: bytes.count, by: 4) {
                buffer[to] = bytes[from]
                buffer[to + 1] = bytes[from + 1]
                buffer[to + 2] = bytes[from + 2]
                to += 3
            }
            count = to
        }
        return EncodablePixels(storage: PixelStorage(opaque), width: width, height: height, bands: 3)
    }
}

/// From pixels to the bytes of a file.
///
/// Savers get pixels and nothing else, so no metadata can slip through; what is kept is put into the finished file.
enum Encoder {
    /// Refuses an output that cannot be written, before anything is decoded.
    static func checkAvailability(_ output: ResolvedOutput) throws(RenderError) {
        let saver: String? =
            switch output.format {
            case .jpeg: "jpegsave_buffer"
            case .png: "pngsave_buffer"
            case .webp: nil
            case .gif: "gifsave_buffer"
            case .avif: "heifsave_buffer"
            case .heif, .tiff, .jxl, .svg:
                throw RenderError(.notAvailable, "output `\(output.format.rawValue)` is not available yet")
            }
        if let saver, !VipsLibrary.has(saver) {
            throw RenderError(
                .notAvailable, "this libvips cannot write \(output.format.rawValue): it has no \(saver)")
        }
        if !output.keep.isEmpty, output.format == .gif || output.format == .avif {
            throw RenderError(
                .notAvailable,
                "`keep=`, and so `profile:keep`, is not available yet for output `\(output.format.rawValue)`; "
                    + "leave it out, or choose jpeg, png or webp")
        }
        if output.isLossless, output.format == .jpeg {
            throw RenderError(.notAvailable, "output `jpeg` cannot be lossless")
        }
    }

    static func encode(
        _ pixels: EncodablePixels, _ output: ResolvedOutput, _ kept: KeptBlobs, _ control: RenderControl
    ) throws(RenderError) -> [UInt8] {
        if output.format == .webp {
            return try WebPEncoder(output: output, kept: kept, control: control).encode(pixels)
        }
        let image = try Image(pixels.storage, width: pixels.width, height: pixels.height, bands: pixels.bands)
            .labelled("srgb")
        control.watch(image)
        func save(_ quality: Int) throws(RenderError) -> [UInt8] {
            try control.check()
            let bytes = try saver(image, output, quality).bytes()
            switch output.format {
            case .jpeg: return kept.inserted(intoJPEG: bytes)
            case .png: return kept.inserted(intoPNG: bytes)
            default: return bytes
            }
        }
        let isLossy = !output.isLossless && (output.format == .jpeg || output.format == .avif)
        return try withinBudget(output, isLossy: isLossy, save)
    }

    private static func saver(_ image: Image, _ output: ResolvedOutput, _ quality: Int) -> VipsCall {
        switch output.format {
        case .png:
            VipsCall(
                "pngsave_buffer",
                [
                    // Row filters: libvips' default of none makes files a third larger.
                    "in": .image(image), "filter": "all", "interlace": .bool(output.isProgressive), "strip": true,
                ], failure: .encodingFailed)
        case .gif:
            VipsCall("gifsave_buffer", ["in": .image(image), "strip": true], failure: .encodingFailed)
        case .avif:
            VipsCall(
                "heifsave_buffer",
                [
                    "in": .image(image), "compression": "av1", "Q": .int(quality), "lossless": .bool(output.isLossless),
                    "strip": true,
                ], failure: .encodingFailed)
        default:
            VipsCall(
                "jpegsave_buffer",
                [
                    "in": .image(image), "Q": .int(quality), "interlace": .bool(output.isProgressive),
                    "optimize-coding": .bool(output.isProgressive), "strip": true,
                ], failure: .encodingFailed)
        }
    }

    /// The largest quality up to the output's own whose file meets the budget, in at most six encodes.
    static func withinBudget(
        _ output: ResolvedOutput, isLossy: Bool, _ save: (Int) throws(RenderError) -> [UInt8]
    ) throws(RenderError) -> [UInt8] {
        let first = try save(output.quality)
        guard let limit = output.maxBytes, first.count > limit else { return first }
        var smallest = first.count
        if isLossy {
            var (low, high) = (1, output.quality - 1)
            var best: [UInt8]?
            for attempt in 1...5 where low <= high {
                let quality = attempt == 5 && best == nil ? low : (low + high) / 2
                let bytes = try save(quality)
                smallest = min(smallest, bytes.count)
                if bytes.count <= limit {
                    best = bytes
                    low = quality + 1
                } else {
                    high = quality - 1
                }
            }
            if let best { return best }
        }
        throw RenderError(.overBudget, "no quality gives \(limit) bytes or less; the smallest file had \(smallest)")
    }
}
