/// Every step and output of recipe text.
public enum Catalogue {
    /// The operations, one line per member, in the order of the documentation.
    public static let operations: [any VariantOperation.Type] = [
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

    /// What is documented of a step or an output.
    public struct Entry: Sendable, Hashable {
        /// The name in recipe text.
        public var token: String
        /// How it is written.
        public var grammar: String
        /// Ranges and defaults of its arguments; empty without arguments.
        public var ranges: String
        /// What it does, in one sentence.
        public var summary: String
        /// Recipe text that uses it.
        public var example: String
        /// Whether rendering is built.
        public var isAvailable = true
    }

    /// Load options, operations, `dpr` and outputs, in the order of the documentation.
    public static let entries: [Entry] =
        LoadOption.allCases.map(\.entry)
        + operations.map { type in
            Entry(
                token: type.token, grammar: type.grammar, ranges: type.ranges, summary: type.summary,
                example: type.example)
        }
        + [PixelRatio.entry] + OutputSpecification.Kind.allCases.map(\.entry)

    /// All names a step may have.
    static let tokens = entries.map(\.token)

    private static let operationsByToken = Dictionary(uniqueKeysWithValues: operations.map { ($0.token, $0) })

    /// The operation of that name, if there is one.
    static func operation(named token: String) -> (any VariantOperation.Type)? { operationsByToken[token] }
}

extension Catalogue {
    /// Plain text for a terminal: each step with what it does, and its ranges on the line below.
    public static var listing: String {
        entries.map { entry in
            let mark = entry.isAvailable ? "" : " (not available yet)"
            let ranges = entry.ranges.isEmpty ? "" : "\n    " + plain(entry.ranges)
            return "\(entry.grammar)\n    \(plain(entry.summary))\(mark)\(ranges)\n    e.g. \(entry.example)\n"
        }.joined()
    }

    /// A Markdown table of all entries, as it stands in `docs/recipes.md`.
    public static var referenceText: String {
        let rows = entries.map { entry in
            let mark = entry.isAvailable ? "" : " *Not available yet.*"
            let cells = [code(entry.grammar), entry.summary + mark, entry.ranges, code(entry.example)]
            return "| " + cells.joined(separator: " | ") + " |"
        }
        return (["| step | what it does | arguments | example |", "|---|---|---|---|"] + rows).joined(separator: "\n")
            + "\n"
    }

    private static func plain(_ text: String) -> String { text.filter { $0 != "`" } }

    /// Code in a table cell, where a bar would end the cell.
    private static func code(_ text: String) -> String {
        "`" + text.split(separator: "|", omittingEmptySubsequences: false).joined(separator: "\\|") + "`"
    }
}

extension OutputSpecification.Kind {
    /// The documentation of this output.
    var entry: Catalogue.Entry {
        let (options, ranges, summary, example) =
            switch self {
            case .jpeg:
                (
                    "[:Q][:progressive]", "Q 1…100 (80)",
                    "JPEG; alpha is flattened onto the last `background`, else white.", "jpeg:85:progressive"
                )
            case .png: ("[:lossless][:progressive]", "", "PNG, always lossless.", "png")
            case .webp: ("[:Q|lossless]", "Q 1…100 (80)", "WebP.", "webp:max=20kB")
            case .avif: ("[:Q|lossless]", "Q 1…100 (50)", "AVIF.", "avif:60")
            case .gif: ("[:lossless]", "", "GIF; alpha becomes all or nothing.", "gif")
            case .jxl: ("[:Q|lossless]", "Q 1…100 (80)", "JPEG XL.", "jxl:lossless")
            case .auto:
                (
                    "[:Q|lossless][:progressive]", "Q 1…100 (the format's)",
                    "The best format the client takes, else as `original`.", "auto"
                )
            case .original:
                (
                    "[:Q|lossless][:progressive]", "Q 1…100 (the format's)",
                    "The original's format where it can be written, else JPEG, or PNG with alpha.", "original:keep=icc"
                )
            }
        let common = "`max=` a size (`20kB`, `20KiB`), `keep=` `exif`, `icc`, `xmp` joined by `+`"
        let available: Set<Self> = [.jpeg, .png, .webp, .avif, .gif, .auto, .original]
        return Catalogue.Entry(
            token: rawValue, grammar: rawValue + options + "[:max=SIZE][:keep=LIST]",
            ranges: ranges.isEmpty ? common : ranges + "; " + common, summary: summary, example: example,
            isAvailable: available.contains(self))
    }
}
