import Glibc
import Pipeline
import PipelineFetching
import PipelineSupport
import Variants

/// The pipeline operations that a batch needs.
protocol BatchRendering: Sendable {
    /// Renders one item. A failure is an outcome, so this method does not throw.
    ///
    /// - Parameter recipe: The recipe in canonical form.
    func render(source: BatchSource, recipe: String) async -> BatchOutcome

    /// Returns the members that describe the source in a manifest, or nil if the source cannot be read.
    func facts(of source: BatchSource) async -> SourceFacts?
}

extension BatchRendering {
    func facts(of source: BatchSource) async -> SourceFacts? { nil }
}

/// A rendered variant to be written to a file.
struct BatchVariant: Sendable {
    var bytes: [UInt8]
    /// The extension without its dot.
    var fileExtension: String
    var mediaType: String
    /// The line that the report contains after the variant has been written.
    var item: ItemJSON
}

enum BatchOutcome: Sendable {
    case variant(BatchVariant)
    case failure(BatchFailure)
}

struct BatchOptions: Sendable {
    /// The recipes as written on the command line. A manifest's recipes replace them.
    var recipes: [String]
    var outputFolder: String
    /// The bucket for outputs, or nil if they are written to a folder on this machine.
    var bucket: BucketOutput?
    /// The open folder that must contain all outputs, or nil if the user chooses the output folder.
    var bounds: OpenFolder?
    /// The template of output names, or nil to use the default of `OutputNamer`.
    var nameTemplate: String?
    var reportPath: String?
    /// Whether the batch continues the report of an earlier run.
    var goesOnWithReport = false
    var galleryPath: String?
    var manifest: ManifestOptions?
    var record: RecordOptions?
    /// Returns whether file names in a folder are case-insensitive.
    var foldsCase: @Sendable (String) -> Bool = AtomicOutput.foldsCase
    /// The number of sources rendered concurrently, each with up to `BatchProducer.recipesAtOnce` recipes.
    var concurrency = 4
    /// The descriptor of the terminal that shows the progress line, or nil to show none.
    var progressDescriptor: Int32?
    /// Called for each failed item, in input order. If nil, the summary lists the first failures.
    var onFailure: (@Sendable (String) -> Void)?
    /// The expected number of items, for estimating the remaining time.
    var total: Int?
    /// Validates a recipe and returns its canonical text.
    var canonicalRecipe: @Sendable (String) -> Result<String, BatchFailure>
    var isInterrupted: @Sendable () -> Bool = { false }
}

/// Runs a batch.
///
/// The runner reads sources as capacity allows, and renders the recipes of each source concurrently, so that they share
/// one decode. It names, writes and reports items in input order. A failed item does not stop the batch.
///
/// `BatchSchedule` decides the order. Input and output each have their own thread. Objects in a bucket are written
/// concurrently, because writing an object takes a long time.
struct BatchRunner<Renderer: BatchRendering>: Sendable {
    let renderer: Renderer
    let options: BatchOptions

    private enum Step: Sendable {
        case pulled([BatchItem])
        case rendered(BatchSchedule.Render, BatchOutcome)
        case written(Int, BatchOutput)
    }

    /// Runs until the input ends or an interruption is requested, then waits for the renders in progress.
    ///
    /// - Throws: if no output can be written, or if no worker can be started before the first item is rendered.
    func run(_ input: BatchInput) async throws(CommandFailure) -> BatchSummary {
        // Created before `BatchFinisher`, which creates the output folder.
        let sources = SourceGuard(input, outputFolder: options.outputFolder, options.bucket)
        let finisher = try BatchFinisher(options, sources: sources)
        let producer = BatchProducer(input, options, sources: sources)
        let (reading, writing) = (OwnedThreads(count: 1), OwnedThreads(count: 1))
        let blockingFailure = await withTaskGroup(of: Step.self) { group in
            var schedule = BatchSchedule(concurrency: options.concurrency)
            while true {
                while let action = schedule.next() {
                    switch action {
                    case .pull where options.isInterrupted(): schedule.end()
                    case .pull: group.addTask { .pulled(await reading.run { producer.next() }) }
                    case .finish(let output): await writing.run { finisher.finish(output) }
                    case .name(let number, let item, let outcome):
                        let output = await writing.run { finisher.output(item, outcome) }
                        guard let bucket = options.bucket, output.variant != nil else {
                            schedule.written(number, output)
                            continue
                        }
                        group.addTask {
                            .written(number, await bucket.write(output, on: writing, sources))
                        }
                    }
                }
                guard let step = await group.next() else { return schedule.blockingFailure }
                switch step {
                case .pulled where options.isInterrupted(): schedule.end()
                case .pulled(let items):
                    for render in schedule.pulled(items, renderer.renders(of: items)) {
                        group.addTask { await rendered(render) }
                    }
                case .rendered(let render, let outcome): schedule.rendered(render, outcome)
                case .written(let number, let output): schedule.written(number, output)
                }
            }
        }
        let input = await reading.run { (producer.duplicates, producer.ownOutputs, producer.hasUnreadInput) }
        let wasInterrupted = options.isInterrupted()
        let summary = await writing.run { finisher.end(input, isInterrupted: wasInterrupted) }
        if let blockingFailure, !wasInterrupted {
            throw CommandFailure(ProgramExit(blockingFailure.code), blockingFailure.message)
        }
        return summary
    }

    private func rendered(_ render: BatchSchedule.Render) async -> Step {
        let outcome = await render.render()
        var render = render
        if render.number == render.first, options.manifest != nil {
            render.item.facts = await renderer.facts(of: render.item.source)
        }
        return .rendered(render, outcome)
    }
}

extension BatchFailure {
    /// Whether the failure affects all items rather than only this item.
    var meansNoWorker: Bool { code == .workersUnavailable || code == .libraryUnavailable }
}

struct BatchItem: Sendable {
    var source: BatchSource
    /// The position of the source in the input, starting at 1.
    var index: Int
    var written: String
    var canonical: String
    var hasSeveralRecipes: Bool
    /// The failure of an item that has no source to render.
    var failure: BatchFailure?
    /// The facts about the source. Set in the first item of a source if a manifest is written.
    var facts: SourceFacts?
}

/// Converts entries into items. All recipes of a source are returned together, and each pair of source and recipe is
/// returned only once.
///
/// `@unchecked Sendable`: used only on the runner's reading thread.
final class BatchProducer: @unchecked Sendable {
    private var entries: BatchInput.Iterator
    private let options: BatchOptions
    private var pending: [BatchItem] = []
    private var index = 0
    /// Hashes of sources and recipes, which take 8 bytes per item.
    private var seen: Set<Int> = []
    private var canonical: [ByteString: Result<String, BatchFailure>] = [:]
    private(set) var duplicates = 0
    private(set) var ownOutputs = 0
    /// Whether an input could not be read completely.
    private(set) var hasUnreadInput = false
    /// The approximate number of a source's recipes that are rendered concurrently. A source with more recipes is split
    /// into portions of about this size.
    static let recipesAtOnce = 16

    private let sources: SourceGuard

    init(_ input: BatchInput, _ options: BatchOptions, sources: SourceGuard) {
        entries = input.makeIterator()
        self.options = options
        self.sources = sources
    }

    /// Returns the items of the next source, or the next portion of them. The array is empty at the end of the input.
    func next() -> [BatchItem] {
        while pending.isEmpty {
            guard let entry = entries.next() else { return [] }
            if entry == .ownOutput {
                ownOutputs += 1
                continue
            }
            if case .leftOut(let source, let reason) = entry {
                hasUnreadInput = hasUnreadInput || reason == .deadLink
                let failure = BatchFailure(code: .leftOut, message: reason.rawValue)
                return [failed(BatchSource(source: source), "", failure)]
            }
            index += 1
            switch entry {
            case .ownOutput, .leftOut: break
            case .failure(let source, let failure):
                hasUnreadInput = true
                return [failed(BatchSource(source: source), "", failure)]
            case .source(let source):
                sources.note(source)
                let recipes = source.recipes ?? options.recipes
                if recipes.isEmpty {
                    let failure = BatchFailure(
                        code: .noRecipe, message: "this entry has no recipe; add one to the manifest or use -r RECIPE")
                    return [failed(source, "", failure)]
                }
                expand(source, recipes)
            }
        }
        var count = min(pending.count, Self.recipesAtOnce)
        // Sizes of the same format stay together because they may share a render.
        if count < pending.count, let ladder = FittedBox(pending[count].canonical)?.rest {
            while count < min(pending.count, 2 * Self.recipesAtOnce),
                FittedBox(pending[count].canonical)?.rest == ladder
            {
                count += 1
            }
        }
        let items = Array(pending.prefix(count))
        pending.removeFirst(items.count)
        return items
    }

    private func expand(_ source: BatchSource, _ recipes: [String]) {
        // Compare stored names, because the cache treats two spellings of one source as the same source.
        let identity = ByteString(ImageSource(source.source).storedName ?? source.source)
        for recipe in recipes {
            switch canonicalText(recipe) {
            case .failure(let failure): pending.append(failed(source, recipe, failure))
            case .success(let text):
                var hasher = Hasher()
                hasher.combine(identity)
                hasher.combine(ByteString(text))
                guard seen.insert(hasher.finalize()).inserted else {
                    duplicates += 1
                    continue
                }
                pending.append(
                    BatchItem(
                        source: source, index: index, written: recipe, canonical: text,
                        hasSeveralRecipes: recipes.count > 1))
            }
        }
    }

    private func failed(_ source: BatchSource, _ recipe: String, _ failure: BatchFailure) -> BatchItem {
        BatchItem(
            source: source, index: index, written: recipe, canonical: recipe, hasSeveralRecipes: false, failure: failure
        )
    }

    /// Returns a recipe in canonical form. Results are cached because manifests repeat a few recipes. The size of the
    /// cache is limited, so that a manifest with a different recipe on each line cannot fill memory.
    private func canonicalText(_ recipe: String) -> Result<String, BatchFailure> {
        let name = ByteString(recipe)
        if let known = canonical[name] { return known }
        if canonical.count >= 1000 { canonical.removeAll(keepingCapacity: true) }
        let text = options.canonicalRecipe(recipe)
        canonical[name] = text
        return text
    }
}
