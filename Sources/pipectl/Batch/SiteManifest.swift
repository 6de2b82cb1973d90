import Pipeline
import PipelineSupport
import Variants

struct ManifestOptions: Sendable {
    var path: String
    /// The prefix of output URLs, which precedes the percent-encoded output name.
    var urlPrefix: String
}

/// The members of a source in a manifest that do not depend on its outputs.
struct SourceFacts: Sendable, Hashable {
    /// The width in pixels, after applying the orientation.
    var width: Int
    var height: Int
    /// The most frequent color, as `rrggbb`.
    var color: String?
    /// The ThumbHash in base64.
    var thumbHash: String?
    /// A `data:` URI with a picture of at most 16 × 16 pixels.
    var placeholder: String?
}

/// A JSON file for site generators, which contains each source with its files, `srcset` strings, `sizes`, placeholder
/// and color. `docs/sites.md` describes the members.
///
/// Sources are written one at a time, so only one source is in memory. The file appears after it is complete.
final class SiteManifest: BatchSink {
    static let version = 1
    let problem = "the manifest was not written"

    private let file: AtomicFile
    private let urlPrefix: String
    private var source: String?
    private var facts: SourceFacts?
    private var files: [(name: String, item: ItemJSON)] = []
    private var error: BatchFailure?
    /// The string written before the next source.
    private var separator = "{\"version\":\(SiteManifest.version),\"images\":{\n"

    init(_ options: ManifestOptions) throws(FileError) {
        file = try AtomicFile(path: options.path, makeFolders: true)
        let prefix = options.urlPrefix
        urlPrefix = prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/"
    }

    /// Adds an item. Items of one source must be consecutive.
    func add(_ output: BatchOutput) throws(FileError) {
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

    func finish(_ summary: inout BatchSummary) throws(FileError) {
        if summary.isInterrupted { throw FileError("write", file.path, "the run was interrupted") }
        try writeSource()
        try file.write(Array(((separator == ",\n" ? "" : separator) + "\n}}\n").utf8))
        try file.commit()
    }

    private func writeSource() throws(FileError) {
        guard let source else { return }
        try file.write(Array((separator + JSONText.quoted(source) + ":" + json).utf8))
        separator = ",\n"
        (facts, files, error) = (nil, [], nil)
    }

    private var json: String {
        let files = files.sorted {
            ($0.item.format ?? "", $0.item.width ?? 0, $0.name) < ($1.item.format ?? "", $1.item.width ?? 0, $1.name)
        }
        var sets = JSONText()
        for format in Set(files.compactMap(\.item.format)).sorted() {
            let candidates = files.filter { $0.item.format == format }
            sets.add(format, candidates.map { "\(url($0.name)) \($0.item.width ?? 0)w" }.joined(separator: ", "))
        }
        return JSONText([
            "width": facts?.width, "height": facts?.height, "colour": (facts?.color).map { "#" + $0 },
            "thumbhash": facts?.thumbHash, "placeholder": facts?.placeholder,
            "files": files.map { name, item in
                JSONText([
                    "path": name, "url": url(name),
                    "type": item.format.flatMap { ImageFormat(rawValue: $0) }?.mediaType, "width": item.width,
                    "height": item.height, "bytes": item.bytes,
                ])
            }, "srcset": sets,
            "sizes": files.compactMap(\.item.width).max().map { "(max-width: \($0)px) 100vw, \($0)px" },
            "error": error?.message,
        ]).json
    }

    private func url(_ name: String) -> String {
        urlPrefix + SourceURL.canonical(Array(name.utf8), keeping: UInt8(ascii: "/"))
    }
}
