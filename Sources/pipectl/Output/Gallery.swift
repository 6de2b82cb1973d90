import Glibc
import Pipeline
import PipelineSupport
import Variants

/// A contact sheet of a batch: one HTML file without scripts or external resources, written as items finish.
///
/// Small variants are embedded (up to 64 kB each and 32 MB in all); the others are linked by a path relative to the
/// file. Cards are written as items arrive; the counts come last in the file, and the style sheet shows them first.
struct Gallery: ~Copyable {
    private let file: AtomicFile
    private let folder: String
    private let groupsBySource: Bool
    private var buffer = ""
    private var openSource: ByteString?
    private var isGridOpen = false
    private var embedded = 0
    private var failures: [(source: String, recipe: String, message: String)] = []
    private static let embedLimit = 64_000
    private static let embedTotal = 32_000_000
    private static let listedFailures = 500

    /// - Parameter groupsBySource: whether to give each source a heading, for batches with several recipes.
    init(path: String, title: String, groupsBySource: Bool) throws(FileError) {
        file = try AtomicFile(path: path, makeFolders: true)
        let absolute = absolutePath(path)
        folder = absolute.splitAtLastSlash?.folder ?? ""
        self.groupsBySource = groupsBySource
        let name = Self.escaped(title)
        buffer = """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
            <title>\(name)</title><style>
            \(GalleryStyle.css)
            </style></head><body>
            <header><h1>\(name)</h1><p>Every variant of one run; the checkerboard behind a picture shows transparency.</p></header>

            """
    }

    /// Adds a card for the item, unless it was skipped.
    ///
    /// - Parameter bytes: the variant's bytes, for embedding; nil for failures.
    mutating func add(_ item: ItemJSON, bytes: [UInt8]?) throws(FileError) {
        if item.outcome == .skipped { return }
        open(section: item.source)
        let source = Self.escaped(item.source)
        let name = Self.escaped(item.output.map(Self.lastComponent) ?? Self.lastComponent(item.source))
        let recipe = Self.escaped(item.recipe.isEmpty ? "–" : item.recipe)
        if let error = item.error {
            let message = Self.escaped(error.message)
            buffer += """
                <figure class="failed"><div class="mark" aria-hidden="true">✕</div><figcaption>\
                <div class="name" title="\(source)">\(name)</div><code>\(recipe)</code>\
                <p>\(message)</p></figcaption></figure>

                """
            if failures.count < Self.listedFailures { failures.append((source, recipe, message)) }
        } else {
            let link = Self.escaped(item.output.map { Self.link(from: folder, to: absolutePath($0)) } ?? "")
            var image = link
            if let bytes, bytes.count <= Self.embedLimit, embedded + bytes.count <= Self.embedTotal,
                let format = item.format.flatMap({ ImageFormat(rawValue: $0) })
            {
                embedded += bytes.count
                image = "data:\(format.mediaType);base64," + Base64.text(bytes)
            }
            let width = item.width ?? 0
            let height = item.height ?? 0
            buffer += """
                <figure><a href="\(link)"><img loading="lazy" src="\(image)" width="\(width)" height="\(height)" \
                style="width:auto;height:auto" alt="\(name)"></a><figcaption>\
                <div class="name" title="\(source)">\(name)</div><code>\(recipe)</code>\
                <div class="facts"><span>\(width) × \(height)</span><span>\(Readable.bytes(item.bytes ?? 0))</span>\
                <span>\(Self.escaped(item.format ?? ""))</span>\
                <span class="\(item.outcome.rawValue)">\(Self.words(item.outcome))</span></div></figcaption></figure>

                """
        }
        if buffer.utf8.count >= 65_536 { try flush() }
    }

    /// Writes the failures and counts, then renames the file to its final path.
    consuming func finish(_ summary: BatchSummary) throws(FileError) {
        closeSection()
        if !failures.isEmpty {
            buffer += "<section class=\"list\" id=\"failures\"><h2>Failures</h2><ol>\n"
            for failure in failures {
                buffer += "<li>\(failure.source) <code>\(failure.recipe)</code><p>\(failure.message)</p></li>\n"
            }
            buffer += "</ol>"
            let more = summary.failed - failures.count
            if more > 0 { buffer += "<p>and \(more) more; the report lists them all</p>" }
            buffer += "</section>\n"
        }
        var counts = [
            ("", String(summary.items), "items"), ("", String(summary.hits), "from the cache"),
            ("", String(summary.outcomes[.rendered, default: 0]), "rendered"),
            ("", Readable.bytes(summary.bytes), "in total"), ("", Readable.duration(seconds: summary.seconds), "taken"),
        ]
        if summary.failed > 0 {
            counts.insert((" class=\"bad\"", String(summary.failed), "<a href=\"#failures\">failed</a>"), at: 3)
        }
        buffer += "<ul class=\"counts\">"
        for (style, number, label) in counts { buffer += "<li\(style)><b>\(number)</b>\(label)</li>" }
        buffer += "</ul>\n"
        if summary.isInterrupted {
            buffer += "<p>The run was interrupted; this page shows the items finished before that.</p>\n"
        }
        buffer += "</body></html>\n"
        try flush()
        try file.commit()
    }

    private mutating func flush() throws(FileError) {
        try file.write(Array(buffer.utf8))
        buffer = ""
    }

    private mutating func open(section source: String) {
        if groupsBySource {
            if openSource == ByteString(source) { return }
            closeSection()
            buffer += "<section><h2>\(Self.escaped(source))</h2><div class=\"grid\">\n"
            openSource = ByteString(source)
        } else if !isGridOpen {
            buffer += "<section><div class=\"grid\">\n"
        }
        isGridOpen = true
    }

    private mutating func closeSection() {
        if isGridOpen { buffer += "</div></section>\n" }
        isGridOpen = false
        openSource = nil
    }

    private static func words(_ outcome: ItemOutcome) -> String {
        outcome == .memory || outcome == .disk ? "from \(outcome.rawValue)" : outcome.rawValue
    }

    // MARK: Texts and paths

    /// The text escaped for use between tags and inside double quotes; control characters that HTML forbids are
    /// replaced.
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

    /// A relative reference between two absolute paths, percent-encoded.
    static func link(from folder: String, to path: String) -> String {
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
