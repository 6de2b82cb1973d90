extension Recipe {
    /// Decides the output for a picture: the format, and every option with its default written out.
    ///
    /// `original`: JPEG, PNG, WebP, GIF and AVIF keep their format, other formats become JPEG. If the recipe names no
    /// format, PNG replaces a format that cannot hold the result's alpha (JPEG; GIF with partial alpha), and JPEG if
    /// `lossless` was requested. An explicit `jpeg` flattens instead. Options that the format does not have
    /// (`progressive`, metadata it has no place for) are dropped. A negotiated format that cannot hold the requested
    /// frames gives way to the next one, and so does JPEG XL of more pixels than `largestNegotiatedJXL`.
    ///
    /// - Parameters:
    ///   - header: the original's header.
    ///   - negotiated: for `auto`, and for a recipe without an output, the formats the client accepts, best first;
    ///     after them comes the original's format, as for `original`. `original` and explicit formats ignore this.
    public func resolvedOutput(for header: ImageHeader, negotiated: [ImageFormat] = []) -> ResolvedOutput {
        let written = output ?? OutputSpecification(.auto)
        let format = written.kind.format ?? chosenFormat(for: header, negotiated: negotiated, written)
        let encoder = Catalogue.output(of: format)
        let isLossless =
            encoder?.losslessness.hasQuality == false || encoder?.losslessness == .onRequest && written.isLossless
        let defaultQuality = OutputSpecification.defaultQuality(of: format, hasBudget: written.maxBytes != nil)
        let keep = keepsProfile ? written.keep.union(.icc) : written.keep
        return ResolvedOutput(
            format: format,
            quality: isLossless ? 100 : written.quality ?? defaultQuality,
            isLossless: isLossless,
            maxBytes: written.maxBytes,
            isProgressive: written.isProgressive && encoder?.canBeProgressive == true,
            keep: keep.intersection(encoder?.holds ?? []))
    }

    private func chosenFormat(
        for header: ImageHeader, negotiated: [ImageFormat], _ written: OutputSpecification
    ) -> ImageFormat {
        let isAnimated = decodedFrames(of: header, into: header.format) > 1
        let wanted =
            written.kind == .original
            ? nil
            : negotiated.first { format in
                (format.holdsFrames || !isAnimated)
                    && (format != .jxl || area(of: header) <= Self.largestNegotiatedJXL)
            }
        let format: ImageFormat =
            switch wanted ?? header.format {
            case .jpeg, .png, .webp, .gif, .avif: wanted ?? header.format
            case .jxl: wanted == .jxl ? .jxl : .jpeg
            case .heif, .tiff, .svg: .jpeg
            }
        switch (format, alpha(of: header)) {
        case (.jpeg, .binary), (.jpeg, .partial), (.gif, .partial): return .png
        case (.jpeg, .none): return written.isLossless ? .png : .jpeg
        default: return format
        }
    }

    /// The most pixels for which negotiation chooses JPEG XL: libjxl needs 23 bytes for each of their samples, and a
    /// picture too large for the worker's memory should still reach the client, in another format.
    private static let largestNegotiatedJXL = 8_000_000

    /// The result's pixels, as far as the header and the steps determine them.
    private func area(of header: ImageHeader) -> Int {
        var size = PixelSize(width: header.width, height: header.height)
        if orients, header.orientation >= 5 { size = size.swapped }
        for case let step as any ResizingOperation in steps {
            // `checkSizes` reports a step that cannot be applied.
            size = (try? step.resultSize(of: size)) ?? size
        }
        return size.width.multipliedReportingOverflow(by: size.height).partialValue
    }

    /// The result's alpha, as far as the header and the steps determine it.
    private enum Alpha { case none, binary, partial }

    /// Follows alpha through the steps. Resizing does not change it: resizing softens a GIF's hard edges, but writing a
    /// GIF rounds alpha again, so an animation stays a GIF.
    private func alpha(of header: ImageHeader) -> Alpha {
        var alpha: Alpha = header.hasAlpha ? (header.format == .gif ? .binary : .partial) : .none
        var background: Colour?
        for step in steps {
            switch step.alphaEffect {
            case .keeps: break
            case .adds: alpha = .partial
            case .removes: alpha = .none
            case .flattens(let isOpaque):
                background = (step as? Background)?.colour
                if isOpaque { alpha = .none } else if alpha != .none { alpha = .partial }
            case .uncovers(let antialiased):
                switch background?.alpha ?? 0 {
                case 255: break
                case 0: alpha = antialiased || alpha == .partial ? .partial : .binary
                default: alpha = .partial
                }
            }
        }
        return alpha
    }
}

extension ResolvedOutput: CustomStringConvertible {
    /// Every option written out, for keys and logs: `jpeg:quality=80:lossless=no:max=none:progressive=no:keep=none`.
    public var description: String {
        [
            format.rawValue,
            "quality=\(quality)",
            "lossless=\(isLossless ? "yes" : "no")",
            "max=\(maxBytes.map(String.init) ?? "none")",
            "progressive=\(isProgressive ? "yes" : "no")",
            "keep=\(keep.isEmpty ? "none" : keep.text)",
        ].joined(separator: ":")
    }
}
