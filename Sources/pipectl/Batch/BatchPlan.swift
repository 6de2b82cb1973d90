import Glibc
import Pipeline
import PipelineSupport
import Variants

/// The plan of a batch: one line per item with its source, its recipe and the path of its output. Planning does not
/// fetch, render or write files.
struct BatchPlan {
    let options: BatchOptions
    private(set) var items = 0
    private(set) var sources = 0
    /// The number of items that cannot be rendered, regardless of the source's content.
    private(set) var failures = 0
    private(set) var leftOut = 0
    /// The number of items that were renamed because an earlier item has the same name.
    private(set) var renamed = 0

    init(_ options: BatchOptions) { self.options = options }

    /// - Parameter print: A closure that is called with each line, in input order.
    mutating func run(_ input: BatchInput, print: (String) throws(FileError) -> Void) throws {
        let guardian = SourceGuard(input, outputFolder: options.outputFolder, options.bucket)
        let producer = BatchProducer(input, options, sources: guardian)
        var namer: OutputNamer
        do throws(NameError) {
            namer = try OutputNamer(template: options.nameTemplate)
        } catch {
            throw CommandFailure(.usage, error.message)
        }
        var index = 0
        while !options.isInterrupted() {
            let group = producer.next()
            if group.isEmpty { break }
            for item in group {
                if item.failure?.code == .leftOut {
                    leftOut += 1
                    continue
                }
                items += 1
                if item.index != index { sources += 1 }
                index = item.index
                try print(cells(item, &namer).map(TextTable.plain).joined(separator: "\t"))
            }
        }
    }

    private mutating func cells(_ item: BatchItem, _ namer: inout OutputNamer) -> [String] {
        let head = [SourceURL.redacting(item.source.source), item.canonical]
        do {
            if let failure = item.failure { throw NameError(message: failure.message) }
            if case .file(let path) = ImageSource(item.source.source), access(path, F_OK) != 0 {
                throw NameError(message: String(cString: strerror(errno)))
            }
            let name = try namer.name(for: OutputNaming(item, fileExtension: Self.fileExtension(item.canonical)))
            if name.wanted != nil { renamed += 1 }
            return head + [options.bucket?.object(name.path) ?? "\(options.outputFolder)/\(name.path)"]
        } catch {
            failures += 1
            return head + ["error: \(error)"]
        }
    }

    /// Returns the output's extension, or the placeholder `{ext}` if the extension depends on the original.
    private static func fileExtension(_ recipe: String) -> String {
        guard let output = try? Recipe(recipe).output, case .format(let format) = output.kind else { return "{ext}" }
        return format.fileExtension
    }

    /// A human-readable summary of the plan.
    var summary: String {
        "\(Readable.count(items, "item", "items")) of \(Readable.count(sources, "source", "sources"))"
            + (failures > 0 ? ", \(failures) of them would fail" : "") + "; nothing was fetched or written"
            + (leftOut > 0 ? "; \(Readable.count(leftOut, "name", "names")) skipped" : "")
            + (renamed > 0
                ? "; \(Readable.count(renamed, "output", "outputs")) renamed because of duplicate names" : "")
    }
}
