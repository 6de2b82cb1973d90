/// Lists every step and output of the recipe language, and every format that can be decoded.
package enum Catalog {
    /// The operations, one per line, in the order in which the documentation lists them.
    package static let operations: [any VariantOperation.Type] = [
        Thumbnail.self,
        Scaled.self,
        RoundedMask.self,
        Circle.self,
        NamedMask.self,
        Crop.self,
        Trim.self,
        Rotate.self,
        Flip.self,
        Blur.self,
        Sharpen.self,
        Pixelate.self,
        Grayscale.self,
        Tint.self,
        Brightness.self,
        Contrast.self,
        Saturation.self,
        Background.self,
        Extend.self,
        Border.self,
        Overlay.self,
    ]

    /// The decoders of originals, one per line, in the order in which the documentation lists them.
    static let decoders: [any OriginalDecoder.Type] = [
        JPEGDecoder.self,
        PNGDecoder.self,
        WebPDecoder.self,
        GIFDecoder.self,
        AVIFDecoder.self,
        HEIFDecoder.self,
        TIFFDecoder.self,
        JXLDecoder.self,
        BMPDecoder.self,
        ICODecoder.self,
        SVGDecoder.self,
        JP2Decoder.self,
    ]

    /// The output formats, one per line, in the order in which the documentation lists them.
    static let outputs: [any OutputEncoder.Type] = [
        JPEGOutput.self,
        PNGOutput.self,
        WebPOutput.self,
        AVIFOutput.self,
        GIFOutput.self,
        JXLOutput.self,
        TIFFOutput.self,
    ]

    /// The documentation of one step or output.
    package struct Entry: Sendable, Hashable {
        /// The role that the entry has in a recipe.
        package enum Role: String, Sendable {
            case load, ratio, operation, output
        }

        package var role: Role
        package var token: String
        package var grammar: String
        /// The ranges and defaults of the arguments. Empty if there are no arguments.
        package var ranges: String
        /// The words that a keyed argument accepts in place of a letter of the grammar, indexed by key.
        package var words: [String: [String]] = [:]
        package var summary: String
        package var example: String
    }

    /// Load options, operations, `dpr` and outputs, in the order in which the documentation lists them.
    package static let entries: [Entry] =
        LoadOption.allCases.map(\.entry)
        + operations.map { type in
            Entry(
                role: .operation, token: type.token, grammar: type.grammar, ranges: type.ranges, words: type.words,
                summary: type.summary, example: type.example)
        }
        + [PixelRatio.entry] + outputs.map { $0.entry } + OutputSpecification.chosenLater

    /// Returns the entries that these libraries support.
    package static func entries(with libraries: RenderLibraries) -> [Entry] {
        let missing = outputs.map { $0.format }.filter { !libraries.written.contains($0) }.map(\.rawValue)
        return entries.filter { $0.role != .output || !missing.contains($0.token) }
    }

    static let tokens = entries.map(\.token)

    private static let operationsByToken = Dictionary(uniqueKeysWithValues: operations.map { ($0.token, $0) })

    static func operation(named token: String) -> (any VariantOperation.Type)? { operationsByToken[token] }
}

extension Catalog {
    /// A plain-text listing for a terminal, with the grammar of each entry followed by its summary, ranges and an
    /// example.
    package static var listing: String { listing(of: entries) }

    /// Returns the plain-text listing of the given entries.
    package static func listing(of entries: [Entry]) -> String {
        entries.map { entry in
            let ranges = entry.ranges.isEmpty ? "" : "\n    " + plain(entry.ranges)
            return "\(entry.grammar)\n    \(plain(entry.summary))\(ranges)\n    e.g. \(entry.example)\n"
        }.joined()
    }

    private static func plain(_ text: String) -> String { text.filter { $0 != "`" } }
}

extension OutputEncoder {
    static var entry: Catalog.Entry {
        let lossless =
            switch losslessness {
            case .never: "[:Q]"
            case .onRequest: canTranscode ? "[:Q|lossless|transcode]" : "[:Q|lossless]"
            case .always, .unlessFewColors: "[:lossless]"
            case .neverWithoutQuality: ""
            }
        return OutputSpecification.entry(
            format.rawValue, lossless + (canBeProgressive ? "[:progressive]" : ""),
            quality: losslessness.hasQuality ? String(defaultQuality) : nil, hasChroma: hasChroma,
            hasEffort: efforts != nil, holds: holds, summary: summary, example: example)
    }
}

extension OutputSpecification {
    /// The documentation of the outputs whose format depends on the original or the client.
    static let chosenLater = [
        entry(
            "auto", "[:Q|lossless][:progressive]", quality: "the format's",
            holds: .all,
            summary: "The best format that the client accepts, otherwise the same as `original`.", example: "auto"),
        entry(
            "original", "[:Q|lossless][:progressive]", quality: "the format's",
            holds: .all,
            summary: "The original's format if it can be written; otherwise JPEG, or PNG if the result has alpha.",
            example: "original:keep=icc"),
    ]

    fileprivate static func entry(
        _ token: String, _ options: String, quality: String?, hasChroma: Bool = true, hasEffort: Bool = true,
        holds: KeptMetadata, summary: String, example: String
    ) -> Catalog.Entry {
        let list = KeptMetadata.names.filter { holds.contains($0.value) }.map(\.name).joined(separator: "+")
        let ranges =
            (quality.map { "Q 1…100 (\($0)); S 10…95; " } ?? "") + "SIZE such as `20kB`, `20KiB`; "
            + (hasChroma ? "chroma `auto`; " : "") + (hasEffort ? "E 0…9; " : "")
            + "LIST `none`, `all` or any of `\(list)`"
        let words = ChromaResolution.allCases.map(\.rawValue).joined(separator: "|")
        let keys = (hasChroma ? "[:chroma=\(words)]" : "") + (hasEffort ? "[:effort=E]" : "")
        return Catalog.Entry(
            role: .output, token: token,
            grammar: token + options + "[:max=SIZE]" + (quality == nil ? "" : "[:score=S]") + keys + "[:keep=LIST]",
            ranges: ranges,
            words: ["keep": ["none"] + KeptMetadata.names.filter { holds.contains($0.value) }.map(\.name)],
            summary: summary,
            example: example)
    }
}
