import Glibc
import Pipeline
import PipelineSupport

/// A contact sheet of a batch: an HTML file without scripts or external resources. Browsers load a picture when it
/// scrolls into view.
///
/// Pictures are linked by a path relative to the HTML file. Browsers cannot read pictures in a bucket, so small ones
/// are embedded. Cards are written as the items finish. Cards for broken sources come last. At most 2,000 broken
/// sources are shown.
final class Gallery: BatchSink {
    let problem = "the gallery was not written"
    /// The HTML file. It is created at the beginning, so that an invalid path is reported before any picture is
    /// rendered.
    private let file: AtomicFile
    private let folder: String
    private let groupsBySource: Bool
    private var openSource: ByteString?
    /// A source with at least one failed item.
    private struct Broken {
        var source: String
        var recipe: String
        var message: String
        var items = 1
    }
    private var broken: [Broken] = []
    private var brokenSource: ByteString?
    private var brokenSources = 0
    private static let embedLimit = 64_000
    private static let brokenLimit = 2_000

    /// - Parameter groupsBySource: Whether each source has a heading, for batches with several recipes.
    init(path: String, title: String, groupsBySource: Bool) throws(FileError) {
        file = try AtomicFile(path: path, makeFolders: true)
        folder = absolutePath(path).splitAtLastSlash?.folder ?? ""
        self.groupsBySource = groupsBySource
        let title = Self.escaped(title)
        try write(
            """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
            <title>\(title)</title><style>
            \(GalleryStyle.css)
            </style></head><body>
            <header><h1>\(title)</h1><p>All variants of one run. A checkerboard pattern marks transparent areas.</p></header>

            """)
    }

    private func write(_ text: String) throws(FileError) { try file.write(Array(text.utf8)) }

    /// Adds a card for the item, unless it was skipped. A failed item becomes part of its source's card.
    func add(_ output: BatchOutput) throws(FileError) {
        let item = output.line
        if item.outcome == .skipped || item.outcome == .leftOut { return }
        if let error = item.error {
            if let last = broken.indices.last, ByteString(broken[last].source) == ByteString(item.shownSource) {
                broken[last].items += 1
            } else if broken.count < Self.brokenLimit {
                broken.append(Broken(source: item.shownSource, recipe: item.recipe, message: error.message))
            }
            if ByteString(item.source) != brokenSource { brokenSources += 1 }
            brokenSource = ByteString(item.source)
            return
        }
        let source = Self.escaped(item.shownSource)
        let name = Self.escaped(item.output.map(Self.lastComponent) ?? Self.lastComponent(item.shownSource))
        let link = Self.escaped(item.output.map { Self.link(from: folder, to: $0) } ?? "")
        var image = link
        if let variant = output.variant, link.firstRange(of: "://") != nil, variant.bytes.count <= Self.embedLimit {
            image = "data:\(variant.mediaType);base64," + Base64.text(variant.bytes)
        }
        let (width, height) = (item.width ?? 0, item.height ?? 0)
        let section = opening(item.shownSource)
        try write(
            """
            \(section)<figure><a href="\(link)"><img loading="lazy" src="\(image)" width="\(width)" \
            height="\(height)" alt="\(name)"></a><figcaption><div class="name" title="\(source)">\(name)</div>\
            <code>\(Self.escaped(item.recipe))</code><div class="facts"><span>\(width) × \(height)</span>\
            <span>\(Readable.bytes(item.bytes ?? 0))</span><span>\(Self.escaped(item.format ?? ""))</span>\
            <span class="\(item.outcome.rawValue)">\(Self.words(item.outcome))</span></div></figcaption></figure>

            """)
    }

    /// Writes the broken sources and the counts, which the style sheet moves to the top, and renames the file to its
    /// final path.
    func finish(_ summary: inout BatchSummary) throws(FileError) {
        try write(closing)
        if !broken.isEmpty { try write("<section id=\"broken\"><h2>Broken sources</h2><div class=\"grid\">\n") }
        for item in broken {
            let recipes = item.items > 1 ? "\(item.items) recipes" : item.recipe.isEmpty ? "–" : item.recipe
            try write(
                """
                <figure class="failed"><div class="mark" aria-hidden="true">✕</div><figcaption>\
                <div class="name" title="\(Self.escaped(item.source))">\(Self.escaped(Self.lastComponent(item.source)))\
                </div><code>\(Self.escaped(recipes))</code><p>\(Self.escaped(item.message))</p></figcaption></figure>

                """)
        }
        if !broken.isEmpty { try write("</div></section>\n") }
        var counts = [
            ("", String(summary.items), "items"), ("", String(summary.hits), "from the cache"),
            ("", String(summary.outcomes[.rendered, default: 0]), "rendered"),
            ("", Readable.bytes(summary.bytes), "in total"), ("", Readable.duration(seconds: summary.seconds), "taken"),
        ]
        if summary.skipped > 0 { counts.insert(("", String(summary.skipped), "skipped, not images"), at: 3) }
        if summary.failed > 0 {
            let sources = Readable.count(brokenSources, "source", "sources")
            counts.insert(
                (" class=\"bad\"", String(summary.failed), "<a href=\"#broken\">failed</a>, of \(sources)"), at: 3)
        }
        if brokenSources > broken.count {
            try write("<p>and \(brokenSources - broken.count) more broken sources. The report lists all of them.</p>\n")
        }
        if summary.isInterrupted {
            try write(
                "<p class=\"first\">The run was interrupted. This page shows the items that were finished.</p>\n")
        }
        let list = counts.map { style, number, label in "<li\(style)><b>\(number)</b>\(label)</li>" }
        try write("<ul class=\"counts first\">\(list.joined())</ul>\n</body></html>\n")
        try file.commit()
    }

    /// Returns the HTML that opens the section of a source, or an empty string if the section is already open.
    private func opening(_ source: String) -> String {
        guard groupsBySource || openSource == nil else { return "" }
        if openSource == ByteString(source) { return "" }
        defer { openSource = ByteString(source) }
        let heading = groupsBySource ? "<h2>\(Self.escaped(source))</h2>" : ""
        return "\(closing)<section>\(heading)<div class=\"grid\">\n"
    }

    private var closing: String { openSource == nil ? "" : "</div></section>\n" }

    private static func words(_ outcome: ItemOutcome) -> String {
        [.memory, .disk, .remote].contains(outcome) ? "from \(outcome.rawValue)" : outcome.rawValue
    }

    // MARK: Text and paths

    /// Returns text escaped for use in elements and double-quoted attributes. Replaces control characters that HTML
    /// forbids.
    static func escaped(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result.append(contentsOf: "&amp;".unicodeScalars)
            case "<": result.append(contentsOf: "&lt;".unicodeScalars)
            case ">": result.append(contentsOf: "&gt;".unicodeScalars)
            case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
            case "'": result.append(contentsOf: "&#39;".unicodeScalars)
            case "\u{0}"..<"\u{20}", "\u{7f}"..<"\u{a0}": result.append("\u{fffd}")
            default: result.append(scalar)
            }
        }
        return String(result)
    }

    private static func lastComponent(_ path: String) -> String {
        String(path.pathParts.last ?? "")
    }

    /// Returns a percent-encoded relative reference from a folder to a path. `folder` must be absolute. A URL is
    /// returned unchanged.
    static func link(from folder: String, to path: String) -> String {
        if path.firstRange(of: "://") != nil { return path }
        let path = absolutePath(path)
        let from = folder.pathParts.map { ByteString(String($0)) }
        let to = path.pathParts.map { ByteString(String($0)) }
        var shared = 0
        while shared < from.count, shared < to.count - 1, from[shared] == to[shared] { shared += 1 }
        let parts =
            Array(repeating: "..", count: from.count - shared) + to[shared...].map { percentEncoded($0.text) }
        return parts.joined(separator: "/")
    }

    private static func percentEncoded(_ text: String) -> String {
        let bytes = text.utf8.flatMap { SourceURL.isUnreserved($0) ? [$0] : SourceURL.percentEncoded($0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
