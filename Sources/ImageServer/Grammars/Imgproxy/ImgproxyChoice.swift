import Variants

/// The recipe of an imgproxy URL, which depends on the original's header.
struct ImgproxyChoice: Sendable {
    var options: ImgproxyOptions
    let settings: ImgproxySettings

    /// The names of the overlays that the recipe may use.
    var overlayNames: Set<String> { watermarkOpacity > 0 ? Set(settings.watermark.map { [$0] } ?? []) : [] }

    /// Whether `Accept` may determine the format of the result.
    var negotiates: Bool {
        !settings.enforceFormats.isEmpty || options.format == nil && !settings.autoFormats.isEmpty
    }

    private var watermarkOpacity: Double { options.watermark.opacity * settings.watermarkOpacity }

    /// Returns the recipe for an original, or nil if the result is the original itself.
    ///
    /// - Parameter accepted: the formats that the client accepts.
    /// - Throws: an `ImgproxyProblem` with status 422 if the original exceeds a limit of the URL or if the result cannot
    ///   be written, or 404 if the options cannot be combined.
    func settle(_ header: ImageHeader, accepted: Set<ImageFormat>) throws(ImgproxyProblem) -> Recipe? {
        try checkLimits(header)
        let isAsked = options.format != nil && options.format != header.format
        if options.skippedFormats.contains(header.format), !isAsked { return nil }
        let format = try format(header, accepted)
        var steps = try ImgproxySteps(options, header, limit: limit(\.resultDimension, settings.maxResultDimension))
        if watermarkOpacity > 0 { try steps.addWatermark(settings.watermark, opacity: watermarkOpacity) }
        let frames = frames(header)
        let load = [
            options.autoRotate ? nil : "orient:off",
            options.stripColorProfile || format == .gif ? nil : "profile:keep",
            frames > 1 && Self.animated.contains(format)
                ? "frames:\(frames == header.pages ? "all" : String(frames))" : nil,
        ]
        let text = load.compactMap { $0 } + steps.texts + [output(format)]
        do throws(RecipeError) { return try Recipe(text.joined(separator: ",")) } catch {
            throw .invalidImage("the result cannot be made: \(error)")
        }
    }

    // MARK: Limits

    /// Returns a limit of the URL. It can only lower the setting, or raise it up to the ceiling. 0 means no limit.
    private func limit(_ path: KeyPath<ImgproxyLimits, Double>, _ setting: Int) -> Int {
        let written = Int(options.limits[keyPath: path])
        guard written > 0, setting > 0 else { return max(written, setting) }
        return min(written, max(setting, Int(settings.securityCeiling[keyPath: path])))
    }

    /// Returns the number of frames that are decoded if the result is animated.
    private func frames(_ header: ImageHeader) -> Int {
        guard Self.animated.contains(header.format) else { return 1 }
        return min(header.pages, limit(\.animationFrames, settings.animationFrames))
    }

    private func checkLimits(_ header: ImageHeader) throws(ImgproxyProblem) {
        let frame = Double(header.encodedWidth) * Double(header.encodedHeight) / 1_000_000
        let (frames, limits) = (Double(frames(header)), options.limits)
        if frames > 1, limits.frameMegapixels > 0 {
            guard frame <= limits.frameMegapixels else {
                throw .invalidImage("`max_animation_frame_resolution`: a frame is larger")
            }
        } else if limits.sourceMegapixels > 0, frame * frames > limits.sourceMegapixels {
            throw .invalidImage("`max_src_resolution`: the original is larger")
        }
    }

    // MARK: Output

    private static let animated: Set<ImageFormat> = [.gif, .webp]

    private func format(_ header: ImageHeader, _ accepted: Set<ImageFormat>) throws(ImgproxyProblem) -> ImageFormat {
        let isAnimated = frames(header) > 1
        let possible = ImgproxySettings.negotiable.filter {
            accepted.contains($0) && (!isAnimated || Self.animated.contains($0))
        }
        if let format = possible.first(where: settings.enforceFormats.contains) { return format }
        if let format = options.format {
            guard ImgproxySettings.writable.contains(format) else {
                throw .invalidImage("`\(format)` cannot be written")
            }
            return format
        }
        if let format = possible.first(where: settings.autoFormats.contains) { return format }
        let preferred = settings.preferredFormats
        if preferred.contains(header.format) { return header.format }
        let uncovers = options.padding.max() > 0 || options.extends.isOn || options.extendsRatio.isOn
        let hasAlpha = options.background == nil && (header.hasAlpha || uncovers)
        let fitting = preferred.first {
            (!isAnimated || Self.animated.contains($0)) && (!hasAlpha || $0.holdsAlpha)
        }
        return fitting ?? preferred.first ?? .jpeg
    }

    /// Returns the output with its quality, size and metadata.
    private func output(_ format: ImageFormat) -> String {
        var parts = [format.rawValue]
        if [.jpeg, .webp, .avif, .jxl].contains(format) {
            let byFormat = options.formatQuality[format] ?? settings.formatQuality[format] ?? settings.quality
            parts.append(String(options.quality > 0 ? Int(options.quality) : byFormat))
            if options.maxBytes > 0 { parts.append("max=\(Int(options.maxBytes))") }
        }
        var kept: [String] = []
        if !options.stripMetadata {
            kept =
                ([.gif, .tiff].contains(format) ? [] : ["exif"]) + ([.jpeg, .tiff].contains(format) ? ["iptc"] : [])
            kept += ["position", "xmp"]
        } else if !options.keepCopyright {
            kept = ["none"]
        }
        if !kept.isEmpty { parts.append("keep=" + kept.joined(separator: "+")) }
        return parts.joined(separator: ":")
    }
}
