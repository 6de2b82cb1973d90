extension Recipe {
    /// Decides the output for a picture: the format, and every option with its default written out.
    ///
    /// `original`: JPEG, PNG, WebP, GIF and AVIF stay what they are, other formats become JPEG. Whoever asked for no
    /// format in so many words gets PNG where the result has alpha that the format cannot hold (JPEG; GIF with partial
    /// alpha), or where `lossless` was asked and the format is JPEG. An explicit `jpeg` flattens instead. Options that the
    /// format does not have (`progressive`, metadata it has no place for) are dropped. A negotiated format that cannot hold
    /// the frames asked for gives way to the next, and so does JPEG XL of more pixels than `largestNegotiatedJXL`.
    ///
    /// - Parameters:
    ///   - header: the original's.
    ///   - negotiated: for `auto`, and for a recipe without an output, the formats the client takes, best first; after
    ///     them comes the original's family. `original` and explicit formats do not look at it.
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

    /// Pixels of the largest JPEG XL that negotiation chooses: libjxl takes 23 bytes for each of their samples, and a picture
    /// that its worker has no memory for is to reach the client in another format.
    private static let largestNegotiatedJXL = 8_000_000

    /// Pixels of the result, as far as the header and the steps tell.
    private func area(of header: ImageHeader) -> Int {
        var size = PixelSize(width: header.width, height: header.height)
        if orients, header.orientation >= 5 { size = size.swapped }
        for case let step as any ResizingOperation in steps {
            // `checkSizes` reports a step that cannot be applied.
            size = (try? step.resultSize(of: size)) ?? size
        }
        return size.width.multipliedReportingOverflow(by: size.height).partialValue
    }

    /// What alpha the result has, as far as the header and the steps tell.
    private enum Alpha { case none, binary, partial }

    /// Follows alpha through the steps. Resizing leaves it what it is: the soft edges that resizing makes of a GIF's
    /// hard ones are rounded again when a GIF is written, so that an animation stays one.
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
