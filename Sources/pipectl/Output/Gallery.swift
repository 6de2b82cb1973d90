import Glibc
import Pipeline
import PipelineSupport
import Variants

/// A contact sheet of a batch: HTML files without scripts or external resources, of at most 500 cards and 2 MB each.
///
/// `sheet.html` is followed by `sheet-2.html`, `sheet-3.html`, …. Small variants are embedded (up to 64 kB each and
/// 800 kB a page); the others are linked by a path relative to the file. A page is written once it is full, the first one
/// last: it has the counts and links to all pages. Broken sources come after the others, with a card for each of the first
/// 2,000.
struct Gallery: ~Copyable {
    /// The first page; made at once, so that a path that cannot be written is an error before anything is rendered.
    private let file: AtomicFile
    private let folder: String
    private let title: String
    private let groupsBySource: Bool
    private let refusal: (String) -> String?
    /// The cards of the first page, once it is full.
    private var firstCards = ""
    /// The cards of the current page.
    private var buffer = ""
    private var page = 1
    private var cards = 0
    private var openSource: ByteString?
    private var isGridOpen = false
    private var embedded = 0
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
    private static let embedTotal = 800_000
    private static let cardLimit = 500
    /// Bytes of the cards of a page, which stays well below 2 MB.
    private static let pageLimit = 1_400_000
    private static let brokenLimit = 2_000

    /// - Parameters:
    ///   - groupsBySource: whether to give each source a heading, for batches with several recipes.
    ///   - refusal: why a page must not replace the file at a path; nil if it may.
    init(
        path: String, title: String, groupsBySource: Bool, refusal: @escaping (String) -> String?
    ) throws(FileError) {
        file = try AtomicFile(path: path, makeFolders: true)
        folder = absolutePath(path).splitAtLastSlash?.folder ?? ""
        self.title = Self.escaped(title)
        self.groupsBySource = groupsBySource
        self.refusal = refusal
    }

    /// Adds a card for the item, unless it was skipped. A failed item becomes part of its source's card.
    ///
    /// - Parameter bytes: the variant's bytes, for embedding; nil for failures.
    mutating func add(_ item: ItemJSON, bytes: [UInt8]?) throws(FileError) {
        if item.outcome == .skipped || item.outcome == .leftOut { return }
        if let error = item.error {
            if let last = broken.indices.last, ByteString(broken[last].source) == ByteString(item.shownSource) {
                broken[last].items += 1
            } else if broken.count < Self.brokenLimit {
                broken.append(Broken(source: item.shownSource, recipe: item.recipe, message: error.message))
            }
            if ByteString(item.source) != brokenSource { brokenSources += 1 }
            brokenSource = ByteString(item.source)
        } else {
            try makeRoom()
            open(section: item.shownSource)
            let source = Self.escaped(item.shownSource)
            let name = Self.escaped(item.output.map(Self.lastComponent) ?? Self.lastComponent(item.shownSource))
            let recipe = Self.escaped(item.recipe)
            let link = Self.escaped(item.output.map { Self.link(from: folder, to: $0) } ?? "")
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
    }

    private mutating func makeRoom() throws(FileError) {
        if cards == Self.cardLimit || buffer.utf8.count >= Self.pageLimit { try turnPage() }
        cards += 1
    }

    /// Adds the cards of the broken sources and returns the number of the page that they begin on.
    private mutating func addBroken() throws(FileError) -> Int {
        var first: Int?
        closeSection()
        for item in broken {
            try makeRoom()
            if !isGridOpen {
                let id = first == nil ? " id=\"broken\"" : ""
                buffer += "<section\(id)><h2>Broken sources</h2><div class=\"grid\">\n"
                isGridOpen = true
            }
            first = first ?? page
            let recipes = item.items > 1 ? "\(item.items) recipes" : item.recipe.isEmpty ? "–" : item.recipe
            buffer += """
                <figure class="failed"><div class="mark" aria-hidden="true">✕</div><figcaption>\
                <div class="name" title="\(Self.escaped(item.source))">\(Self.escaped(Self.lastComponent(item.source)))\
                </div><code>\(Self.escaped(recipes))</code><p>\(Self.escaped(item.message))</p></figcaption></figure>

                """
        }
        return first ?? page
    }

    /// Writes the last page and the first one, and renames them to their final paths.
    consuming func finish(_ summary: BatchSummary) throws(FileError) {
        let brokenPage = try addBroken()
        let pages = page
        try turnPage(isLast: true)
        var counts = [
            ("", String(summary.items), "items"), ("", String(summary.hits), "from the cache"),
            ("", String(summary.outcomes[.rendered, default: 0]), "rendered"),
            ("", Readable.bytes(summary.bytes), "in total"), ("", Readable.duration(seconds: summary.seconds), "taken"),
        ]
        if summary.skipped > 0 { counts.insert(("", String(summary.skipped), "skipped, no images"), at: 3) }
        if summary.failed > 0 {
            let link = (brokenPage == 1 ? "" : Self.link(from: folder, to: path(ofPage: brokenPage))) + "#broken"
            let sources = Readable.count(brokenSources, "source", "sources")
            counts.insert(
                (" class=\"bad\"", String(summary.failed), "<a href=\"\(link)\">failed</a>, of \(sources)"), at: 3)
        }
        var text = "<ul class=\"counts\">"
        for (style, number, label) in counts { text += "<li\(style)><b>\(number)</b>\(label)</li>" }
        text += "</ul>\n"
        if summary.isInterrupted {
            text += "<p>The run was interrupted; this page shows the items finished before that.</p>\n"
        }
        if pages > 1 { text += navigation((1...pages).map { ($0, String($0)) }) }
        text += firstCards
        if brokenSources > broken.count {
            text += "<p>and \(brokenSources - broken.count) more broken sources; the report lists them all</p>\n"
        }
        if pages > 1 { text += navigation([(2, "next")]) }
        try file.write(Array(document(title, text).utf8))
        try file.commit()
    }

    /// Ends the current page and begins the next one.
    private mutating func turnPage(isLast: Bool = false) throws(FileError) {
        closeSection()
        if page == 1 {
            firstCards = buffer
        } else {
            let path = path(ofPage: page)
            if let reason = refusal(path) { throw FileError("write", path, reason) }
            let links = navigation(
                [(1, "first"), (page - 1, "previous")] + (isLast ? [] : [(page + 1, "next")]))
            let other = try AtomicFile(path: path)
            try other.write(Array(document("\(title), page \(page)", links + buffer + links).utf8))
            try other.commit()
        }
        buffer = ""
        embedded = 0
        cards = 0
        page += 1
    }

    private func path(ofPage page: Int) -> String {
        if page == 1 { return file.path }
        let suffix = [".html", ".htm"].first(where: file.path.hasSuffix) ?? ""
        return "\(file.path.dropLast(suffix.count))-\(page)\(suffix)"
    }

    private func navigation(_ pages: [(number: Int, text: String)]) -> String {
        let links = pages.map { number, text in
            let path = Self.link(from: folder, to: path(ofPage: number))
            return "<a href=\"\(path)\"\(number == page ? " aria-current=\"page\"" : "")>\(text)</a>"
        }
        return "<nav aria-label=\"Pages\">\(links.joined(separator: " "))</nav>\n"
    }

    private func document(_ title: String, _ body: String) -> String {
        """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
        <title>\(title)</title><style>
        \(GalleryStyle.css)
        </style></head><body>
        <header><h1>\(title)</h1><p>Every variant of one run; the checkerboard behind a picture shows transparency.</p></header>
        \(body)</body></html>

        """
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
        [.memory, .disk, .remote].contains(outcome) ? "from \(outcome.rawValue)" : outcome.rawValue
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

    /// A relative reference between two paths, the folder's absolute, percent-encoded. A URL stays as it is.
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
