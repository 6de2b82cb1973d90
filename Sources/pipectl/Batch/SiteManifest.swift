import Pipeline
import PipelineSupport
import Variants

struct ManifestOptions: Sendable {
    var path: String
    /// The text before the encoded name of an output in a URL.
    var urlPrefix: String
}

/// The members of a source in a manifest that do not depend on its outputs.
struct SourceFacts: Sendable, Hashable {
    /// Size in pixels, upright.
    var width: Int
    var height: Int
    /// The most frequent colour, as `rrggbb`.
    var colour: String?
    /// In base64.
    var thumbHash: String?
    /// A `data:` URI of a picture of at most 16 × 16 pixels.
    var placeholder: String?
}

/// A JSON file for site generators: each source with its files, `srcset` texts, `sizes`, placeholder and colour.
/// `docs/sites.md` describes the members.
///
/// Sources are written one after the other, so that memory holds one of them. The file appears once it is whole.
struct SiteManifest: ~Copyable {
    static let version = 1

    private let file: AtomicFile
    private let urlPrefix: String
    private var source: String?
    private var facts: SourceFacts?
    private var files: [(name: String, item: ItemJSON)] = []
    private var error: BatchFailure?
    /// The text before the next source.
    private var separator = "{\"version\":\(SiteManifest.version),\"images\":{\n"

    var path: String { file.path }

    init(_ options: ManifestOptions) throws(FileError) {
        file = try AtomicFile(path: options.path, makeFolders: true)
        let prefix = options.urlPrefix
        urlPrefix = prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/"
    }

    /// Adds an item. Items of one source come one after the other.
    mutating func add(_ output: BatchOutput) throws(FileError) {
        let line = output.line
        if line.outcome == .skipped || line.outcome == .leftOut { return }
        if line.source != source {
            try writeSource()
            source = line.source
        }
        facts = facts ?? output.facts
        error = error ?? line.error
        guard line.error == nil, let name = output.name, !files.contains(where: { $0.name == name }) else { return }
        files.append((name, line))
    }

    consuming func finish() throws(FileError) {
        try writeSource()
        try file.write(Array(((separator == ",\n" ? "" : separator) + "\n}}\n").utf8))
        try file.commit()
    }

    private mutating func writeSource() throws(FileError) {
        guard let source else { return }
        try file.write(Array((separator + JSONText.quoted(source) + ":" + json).utf8))
        separator = ",\n"
        (facts, files, error) = (nil, [], nil)
    }

    private var json: String {
        let files = files.sorted {
            ($0.item.format ?? "", $0.item.width ?? 0, $0.name) < ($1.item.format ?? "", $1.item.width ?? 0, $1.name)
        }
        var json = JSONText()
        json.add("width", facts?.width)
        json.add("height", facts?.height)
        json.add("colour", (facts?.colour).map { "#" + $0 })
        json.add("thumbhash", facts?.thumbHash)
        json.add("placeholder", facts?.placeholder)
        let texts = files.map { name, item in
            var json = JSONText()
            json.add("path", name)
            json.add("url", url(name))
            json.add("type", item.format.flatMap { ImageFormat(rawValue: $0) }?.mediaType)
            json.add("width", item.width)
            json.add("height", item.height)
            json.add("bytes", item.bytes)
            return json.closed
        }
        json.add("files", raw: "[" + texts.joined(separator: ",") + "]")
        json.add("srcset") { inner in
            for format in Set(files.compactMap(\.item.format)).sorted() {
                let candidates = files.filter { $0.item.format == format }.map {
                    "\(url($0.name)) \($0.item.width ?? 0)w"
                }
                inner.add(format, candidates.joined(separator: ", "))
            }
        }
        if let widest = files.compactMap(\.item.width).max() {
            json.add("sizes", "(max-width: \(widest)px) 100vw, \(widest)px")
        }
        if let error { json.add("error", error.message) }
        return json.closed
    }

    private func url(_ name: String) -> String {
        urlPrefix + SourceURL.canonical(Array(name.utf8), keeping: UInt8(ascii: "/"))
    }
}
