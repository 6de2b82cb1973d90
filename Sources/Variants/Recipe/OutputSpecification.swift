/// The output step as written in a recipe.
package struct OutputSpecification: Sendable, Hashable {
    /// The kind of output. The raw value is the name of the step.
    package enum Kind: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// A specific output format.
        case format(ImageFormat)
        /// The best format that the client accepts.
        case auto
        /// The original's format.
        case original

        package static let allCases = Catalog.outputs.map { Kind.format($0.format) } + [.auto, .original]

        package init?(rawValue: String) {
            guard let kind = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
            self = kind
        }

        package var rawValue: String {
            switch self {
            case .format(let format): format.rawValue
            case .auto: "auto"
            case .original: "original"
            }
        }
    }
    /// The name of the output.
    package var kind: Kind
    /// The quality, 1…100. If nil, the format's default is used. If `maxBytes` is set, this is the highest quality to
    /// try.
    package var quality: Int?
    /// Whether `lossless` was requested explicitly. This is never set for TIFF, which is always lossless.
    package var isLossless = false
    /// Whether `transcode` was requested explicitly: to store the coefficients of a JPEG original.
    package var transcodes = false
    /// The maximum size of the encoded file in bytes, or nil if there is no limit.
    package var maxBytes: Int?
    /// The SSIMULACRA2 score that the file must reach, 10…95, or nil if the quality determines the file.
    package var score: Int?
    /// Whether to write a progressive JPEG or an interlaced PNG.
    package var isProgressive = false
    /// The resolution of chroma. If `auto`, the encoder decides based on the pixels.
    package var chroma = ChromaResolution.auto
    /// How much CPU time the encoder spends to save bytes, 0…9. If nil, the renderer's default (`RenderEffort`) is
    /// used.
    package var effort: Int?
    /// The metadata to keep, or nil for the default, which is `copyright`. All other metadata is removed.
    package var keep: KeptMetadata?

    /// Creates an output with default options.
    package init(_ kind: Kind) { self.kind = kind }
}

extension OutputSpecification.Kind {
    /// The format, or nil if the original or the client determines the format.
    var format: ImageFormat? {
        if case .format(let format) = self { format } else { nil }
    }

    /// The encoder, or nil if the format is decided later. In that case every option is accepted.
    private var encoder: (any OutputEncoder.Type)? { format?.encoder }

    /// Whether the format has a quality setting. PNG and GIF have none.
    var hasQuality: Bool { encoder?.losslessness.hasQuality ?? true }
    var canBeLossless: Bool { ![.never, .neverWithoutQuality].contains(encoder?.losslessness) }
    var canBeProgressive: Bool { encoder?.canBeProgressive ?? true }
    var hasChroma: Bool { encoder?.hasChroma ?? true }
    var hasEffort: Bool { encoder.map { $0.efforts != nil } ?? true }
    /// Whether writing the default quality explicitly has an effect. Without an explicit quality, drawings may be
    /// encoded losslessly.
    var choosesLossless: Bool { encoder?.choosesLossless ?? true }
    var holds: KeptMetadata { encoder?.holds ?? .all }
}

extension OutputSpecification {
    /// Parses the arguments after the output's name.
    init(_ kind: Kind, _ arguments: inout StepArguments) throws(RecipeError) {
        self.init(kind)
        let flags = ["lossless", "transcode", "progressive"]
        if let text = arguments.nextIfPositional(unlike: flags) {
            guard kind.hasQuality else {
                let reason = kind.canBeLossless ? "is lossless and has" : "has"
                throw arguments.error(
                    "`\(kind.rawValue)` \(reason) no quality; remove `\(RecipeError.shown(text))`")
            }
            quality = try arguments.whole(text, "the quality", 1...100)
        }
        let options = try arguments.options(flags: flags, keys: ["max", "score", "chroma", "effort", "keep"])
        if options.flags.contains("lossless") {
            guard kind.canBeLossless else {
                throw arguments.error("`\(kind.rawValue)` cannot be lossless; expected `png` or `webp:lossless`")
            }
            guard quality == nil else { throw arguments.error("a quality and `lossless` cannot be combined") }
            isLossless = kind.format?.encoder?.losslessness != .always
        }
        if options.flags.contains("progressive") {
            guard kind.canBeProgressive else {
                throw arguments.error(Self.misplaced("progressive", \.canBeProgressive))
            }
            isProgressive = true
        }
        if let text = options.values["max"] { maxBytes = try ByteCount.parse(text, arguments) }
        if let text = options.values["score"] {
            guard kind.hasQuality else { throw arguments.error(Self.misplaced("score=", \.hasQuality)) }
            guard quality == nil, !isLossless else {
                throw arguments.error(
                    "\(quality == nil ? "`lossless`" : "a quality") and `score=` cannot be combined; remove one of them"
                )
            }
            score = try arguments.whole(text, "the score", 10...95)
        }
        if let text = options.values["chroma"] {
            guard kind.hasChroma else { throw arguments.error(Self.misplaced("chroma=", \.hasChroma)) }
            chroma = try arguments.word(text, "`chroma`")
            guard chroma != .half || !isLossless else {
                throw arguments.error("`lossless` and `chroma=half` cannot be combined")
            }
        }
        if let text = options.values["effort"] {
            guard kind.hasEffort else { throw arguments.error(Self.misplaced("effort=", \.hasEffort)) }
            effort = try arguments.whole(text, "the effort", 0...9)
        }
        if options.flags.contains("transcode") {
            guard kind.format?.encoder?.canTranscode == true else {
                throw arguments.error("`transcode` is possible only with `jxl`; `auto` transcodes without this option")
            }
            guard quality == nil, !isLossless, maxBytes == nil, score == nil, effort == nil else {
                throw arguments.error(
                    "`transcode` keeps the data of a JPEG; remove the quality, `lossless`, `max=`, `score=` and `effort=`"
                )
            }
            transcodes = true
        }
        if let text = options.values["keep"] {
            let names = text.split(separator: "+", omittingEmptySubsequences: false)
            var kept: KeptMetadata = names.contains("none") ? [] : .copyright
            for name in names where name != "none" {
                let known = KeptMetadata.names + [("all", kind.holds)]
                guard let found = known.first(where: { $0.name == name }) else {
                    throw arguments.error(
                        "`keep=` must be `none`, `all`, or a list of `exif`, `icc`, `iptc`, `position`, `xmp` and `copyright` joined by `+`, not `\(RecipeError.shown(name))`",
                        suggestion: Spelling.nearest(to: name, in: known.map(\.name) + ["none"]))
                }
                guard kind.holds.isSuperset(of: found.value) else {
                    throw arguments.error(
                        "`\(kind.rawValue)` files cannot contain \(name); expected `keep=\(kind.holds.text)`")
                }
                kept.formUnion(found.value)
            }
            guard !kept.contains(.position) || !kept.isDisjoint(with: [.exif, .iptc, .xmp]) else {
                throw arguments.error("a position is part of EXIF, IPTC or XMP; expected `keep=position+xmp`")
            }
            // The default is not written.
            keep = kept == .copyright ? nil : kept
        }
    }

    private static func misplaced(_ option: String, _ isTaken: (Kind) -> Bool) -> String {
        let names = Kind.allCases.filter(isTaken).map { "`\($0.rawValue)`" }
        return "`\(option)` is possible only with \(names.joined(separator: ", "))"
    }

    /// Returns the canonical step. `profile:keep` already keeps the profile, so `icc` is omitted in that case.
    func canonicalText(keepsProfile: Bool) -> String {
        var parts = [kind.rawValue]
        if let quality, quality != defaultQuality || kind.choosesLossless { parts.append(String(quality)) }
        if isLossless { parts.append("lossless") }
        if transcodes { parts.append("transcode") }
        if isProgressive { parts.append("progressive") }
        if let maxBytes { parts.append("max=" + ByteCount.text(maxBytes)) }
        if let score { parts.append("score=\(score)") }
        if chroma != .auto { parts.append("chroma=" + chroma.rawValue) }
        if let effort { parts.append("effort=\(effort)") }
        if let keep {
            let written = keep.subtracting(keepsProfile ? [.copyright, .icc] : .copyright)
            let names = (keep.contains(.copyright) ? [] : ["none"]) + (written.isEmpty ? [] : [written.text])
            if !names.isEmpty { parts.append("keep=" + names.joined(separator: "+")) }
        }
        return parts.joined(separator: ":")
    }

    /// The default quality, or nil if it depends on a format that is decided later.
    private var defaultQuality: Int? {
        guard let format = kind.format else { return maxBytes == nil ? nil : 100 }
        return Self.defaultQuality(of: format, hasBudget: maxBytes != nil)
    }

    /// Returns the format's default quality, or 100 if there is a byte limit, because the limit then determines the
    /// quality.
    static func defaultQuality(of format: ImageFormat, hasBudget: Bool) -> Int {
        hasBudget ? 100 : format.encoder?.defaultQuality ?? 80
    }
}

extension KeptMetadata {
    /// The names, in the order of the canonical text.
    static let names: [(name: String, value: KeptMetadata)] = [
        ("copyright", .copyright), ("exif", .exif), ("icc", .icc), ("iptc", .iptc), ("position", .position),
        ("xmp", .xmp),
    ]

    static let all: KeptMetadata = [.copyright, .exif, .icc, .iptc, .position, .xmp]

    /// The canonical text, such as `exif+icc`.
    var text: String { Self.names.filter { contains($0.value) }.map(\.name).joined(separator: "+") }
}

/// Parses and formats sizes such as `20kB` (× 1000), `20KiB` (× 1024), `1.5MB` or a plain number of bytes.
enum ByteCount {
    private static let units = [("MB", 1_000_000), ("kB", 1000), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)]

    static func parse(_ text: Substring, _ arguments: StepArguments) throws(RecipeError) -> Int {
        let (unit, size) = units.first { !$0.0.isEmpty && text.hasSuffix($0.0) } ?? ("", 1)
        guard let value = PlainNumber.parse(text.dropLast(unit.count)) else {
            throw arguments.error("`max=` must be a size such as `20kB` or `20KiB`, not `\(RecipeError.shown(text))`")
        }
        let bytes = value * Double(size)
        guard bytes >= 1, bytes <= 1_000_000_000, bytes == bytes.rounded() else {
            throw arguments.error(
                "`max=` must be a whole number of bytes, 1…1000MB, not `\(RecipeError.shown(text))`")
        }
        return Int(bytes)
    }

    /// Returns the size with the first unit that divides `bytes`: MB, kB, MiB, KiB, or no unit.
    static func text(_ bytes: Int) -> String {
        let (unit, size) = units.first { bytes % $0.1 == 0 } ?? ("", 1)
        return "\(bytes / size)\(unit)"
    }
}
