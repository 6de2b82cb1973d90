extension Recipe {
    /// Returns the output for a picture, with the format decided and every default filled in.
    ///
    /// For `original`, JPEG, PNG, WebP, GIF and AVIF keep their format (`keepsOriginals`), and other formats become
    /// JPEG. If the recipe does not name a format, PNG replaces a format that cannot store the alpha of the result
    /// (JPEG, or GIF with partial alpha). PNG also replaces JPEG if `lossless` was requested. An explicit `jpeg`
    /// flattens alpha instead. Options that the format does not support, such as `progressive` or kinds of metadata,
    /// are dropped.
    ///
    /// A negotiated format is skipped if it cannot store the requested frames, or is not intended for this many pixels
    /// (`largestNegotiated`). Formats that cannot be encoded are never chosen. For PNG and GIF originals, which are
    /// mostly drawings, WebP comes first, or AVIF at efforts of at least 2, because these formats need the fewest bytes
    /// for such pictures (docs/benchmarks.md).
    ///
    /// - Parameters:
    ///   - header: the original's header.
    ///   - negotiated: the formats that the client accepts, best first, for `auto` and for recipes without an output.
    ///     The last choice is the original's format, as for `original`. Ignored for `original` and explicit formats.
    ///   - libraries: the libraries, which determine the formats that can be encoded.
    ///   - effort: the effort of the encoder if the recipe does not specify one.
    ///   - defaults: the default options of each format.
    ///   - svg: whether an SVG stays a vector if the recipe does not name a format.
    ///   - hasSecondPass: whether a second pass may choose a different negotiated format.
    package func resolvedOutput(
        for header: ImageHeader, negotiated: [ImageFormat] = [], with libraries: RenderLibraries = .unknown,
        effort: RenderEffort = .quick, defaults: OutputDefaults = .none, svg: SVGHandling = .pass,
        hasSecondPass: Bool = false
    ) -> ResolvedOutput {
        let asked = output ?? OutputSpecification(.auto)
        if header.format == .svg, svg == .pass, asked.kind.format == nil { return .vector(asked.maxBytes) }
        let format = asked.kind.format ?? chosenFormat(for: header, negotiated, libraries.written, asked, effort)
        let written = defaults.completed(asked, as: format)
        let encoder = format.encoder
        let isLossless =
            switch encoder?.losslessness {
            case .always, .neverWithoutQuality: true
            case .unlessFewColors: written.isLossless || !header.hasFewColors
            case .onRequest: written.isLossless
            case .never, nil: false
            }
        let defaultQuality = OutputSpecification.defaultQuality(
            of: format, hasBudget: written.maxBytes != nil || written.score != nil)
        let keep = (written.keep ?? .copyright).union(keepsProfile ? .icc : [])
        var output = ResolvedOutput(
            format: format,
            quality: isLossless ? 100 : written.quality ?? defaultQuality,
            isLossless: isLossless,
            mayBeLossless: encoder?.choosesLossless == true && !isLossless && asked.quality == nil,
            maxBytes: written.maxBytes,
            isProgressive: written.isProgressive && encoder?.canBeProgressive == true,
            chroma: encoder?.hasChroma == true && !isLossless ? written.chroma : .auto,
            effort: encoder?.efforts == nil ? nil : written.effort,
            keep: keep.intersection(encoder?.holds ?? []))
        if encoder?.losslessness.hasQuality == true, !isLossless { output.score = written.score }
        if let efforts = encoder?.efforts, written.effort == nil, effort == .thorough {
            output.effort = efforts.thorough
        }
        output.transcodes = transcodes(written, as: format, header)
        output.transcodesIfSmaller = output.transcodes && !written.transcodes
        if hasSecondPass, asked.kind == .auto, decodedFrames(of: header, into: format) == 1, !output.isLossless,
            output.maxBytes == nil, output.score == nil, !output.transcodes, !output.isEffortGiven,
            negotiated.contains(format),
            negotiated.contains(.avif), format != .avif,
            libraries.written.contains(.avif), area(of: header) <= AVIFOutput.largestNegotiated
        {
            output.alternatives = [.avif]
        }
        return output
    }

    /// Whether the recipe leaves the choice of the format to the negotiation with the client.
    package var leavesFormatOpen: Bool { output == nil || output?.kind == .auto }

    /// Whether the variant may keep the coefficients of the original. `auto` may keep them unless an option asks for a
    /// different quality or size.
    private func transcodes(
        _ written: OutputSpecification, as format: ImageFormat, _ header: ImageHeader
    ) -> Bool {
        guard format.encoder?.canTranscode == true, transcodingProblem(for: header) == nil else { return false }
        let isFree =
            written.quality == nil && !written.isLossless && written.maxBytes == nil && written.chroma == .auto
            && written.effort == nil && written.score == nil
        return written.transcodes || written.kind == .auto && isFree
    }

    private func chosenFormat(
        for header: ImageHeader, _ negotiated: [ImageFormat], _ writable: Set<ImageFormat>,
        _ written: OutputSpecification, _ effort: RenderEffort
    ) -> ImageFormat {
        let isAnimated = decodedFrames(of: header, into: header.format) > 1
        let possible = negotiated.filter { format in
            guard let encoder = format.encoder, writable.contains(format) else { return false }
            return (format.holdsFrames || !isAnimated) && area(of: header) <= encoder.largestNegotiated
        }
        let isDrawn = [.png, .gif].contains(header.format)
        let forDrawn = (written.effort ?? (effort == .quick ? 0 : 2)) < 2 ? ImageFormat.webp : .avif
        let best = isDrawn && possible.contains(forDrawn) ? forDrawn : possible.first
        let wanted = written.kind == .original ? nil : best
        let keepsFormat = header.format.encoder?.keepsOriginals == true && writable.contains(header.format)
        let format = wanted ?? (keepsFormat ? header.format : .jpeg)
        let isUnfit =
            alpha(of: header) > format.alpha || written.isLossless && format.encoder?.losslessness == .never
        return isUnfit ? .png : format
    }

    /// Returns the number of pixels of the result, as far as the header and the steps determine it.
    private func area(of header: ImageHeader) -> Int {
        var size = PixelSize(width: header.encodedWidth, height: header.encodedHeight)
        if orients, header.orientation >= 5 { size = size.swapped }
        for case let step as any ResizingOperation in steps {
            // Ignore the error here: `checkSizes` reports a step that cannot be applied.
            size = (try? step.resultSize(of: size)) ?? size
        }
        return size.width.multipliedReportingOverflow(by: size.height).partialValue
    }

    /// Returns the alpha of the result, as far as the header and the steps determine it. Resizing softens the hard
    /// edges of a GIF but is not counted as a change, because encoding a GIF rounds alpha again. An animated GIF
    /// therefore stays a GIF.
    private func alpha(of header: ImageHeader) -> ImageFormat.Alpha {
        var alpha = header.hasAlpha ? header.format.alpha : .none
        var background: Color?
        for step in steps {
            switch step.alphaEffect {
            case .keeps: break
            case .adds: alpha = .partial
            case .removes: alpha = .none
            case .flattens(let isOpaque):
                background = (step as? Background)?.color
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
    /// All options, for keys and logs: `jpeg:quality=80:lossless=no:max=none:progressive=no:…`.
    package var description: String {
        let always = [
            format.rawValue,
            "quality=\(quality)",
            "lossless=\(isLossless ? "yes" : mayBeLossless ? "auto" : "no")",
            "max=\(maxBytes.map(String.init) ?? "none")",
            "progressive=\(isProgressive ? "yes" : "no")",
            "chroma=\(chroma.rawValue)",
            "effort=\(isEffortGiven ? String(effort) : "none")",
            "keep=\(keep.isEmpty ? "none" : keep.text)",
        ]
        // These were added later and are written only if they are set, so that earlier keys stay the same.
        let set =
            (score.map { ["score=\($0)"] } ?? [])
            + (transcodes ? ["transcode=\(transcodesIfSmaller ? "auto" : "yes")"] : [])
            + alternatives.map { "or=\($0.rawValue)" }
        return (always + set).joined(separator: ":")
    }
}
