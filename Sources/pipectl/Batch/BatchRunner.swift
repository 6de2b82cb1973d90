import Glibc
import Pipeline
import PipelineFetching
import PipelineSupport
import Variants

/// What a batch needs from the pipeline.
protocol BatchRendering: Sendable {
    /// Renders one item. Never throws: a failure is an outcome like any other.
    ///
    /// - Parameter recipe: the recipe's canonical text.
    func render(source: BatchSource, recipe: String) async -> BatchOutcome

    /// Returns the source's members in a manifest; nil if the source cannot be read.
    func facts(of source: BatchSource) async -> SourceFacts?
}

extension BatchRendering {
    func facts(of source: BatchSource) async -> SourceFacts? { nil }
}

/// A rendered variant that is about to be written to a file.
struct BatchVariant: Sendable {
    var bytes: [UInt8]
    /// The extension without its dot.
    var fileExtension: String
    var mediaType: String
    /// What the report says of the variant once it is written.
    var item: ItemJSON
}

enum BatchOutcome: Sendable {
    case variant(BatchVariant)
    case failure(BatchFailure)
}

struct BatchOptions: Sendable {
    /// The recipes as written on the command line; those of a manifest replace them.
    var recipes: [String]
    var outputFolder: String
    /// Where that is, if it is no folder of this machine.
    var bucket: BucketOutput?
    /// The open folder that outputs may not leave; nil if the user names the output folder.
    var bounds: OpenFolder?
    /// The template of output names; nil for the default of `OutputNamer`.
    var nameTemplate: String?
    var reportPath: String?
    /// Whether the report of an earlier run is gone on with.
    var goesOnWithReport = false
    var galleryPath: String?
    var manifest: ManifestOptions?
    var record: RecordOptions?
    /// Whether file names in a folder are the same file if they differ in case alone.
    var foldsCase: @Sendable (String) -> Bool = AtomicOutput.foldsCase
    /// Sources rendered at once, each with up to `BatchProducer.recipesAtOnce` of its recipes.
    var concurrency = 4
    /// Descriptor of the terminal to show the progress line on; nil for no progress line.
    var progressDescriptor: Int32?
    /// Called for each failed item, in input order; if nil, the summary lists the first failures.
    var onFailure: (@Sendable (String) -> Void)?
    /// The number of items expected, for estimating the time left.
    var total: Int?
    /// Validates a recipe and returns its canonical text.
    var canonicalRecipe: @Sendable (String) -> Result<String, BatchFailure>
    var isInterrupted: @Sendable () -> Bool = { false }
}

/// Runs a batch: it pulls sources as room allows, renders the recipes of each source concurrently so that they share
/// its decode, and names, writes and reports items in input order. One bad item never stops the rest.
///
/// At most `concurrency` sources render at once. No source is pulled while four times as many items are pulled but not
/// yet written, which bounds memory when an early item is slow. Input and output each have their own thread. Objects of a
/// bucket are written at once, as each takes long.
struct BatchRunner<Renderer: BatchRendering>: Sendable {
    let renderer: Renderer
    let options: BatchOptions

    private enum Step: Sendable {
        case pulled([BatchItem])
        /// The first number is the item's; the second is that of the first item in the group pulled with it.
        case rendered(Int, Int, BatchItem, BatchOutcome)
        case written(Int, BatchOutput)
    }

    /// Runs until the input ends or an interruption is requested, then waits for the renders in progress.
    ///
    /// - Throws: if the output cannot be written at all, or no worker can be started before anything was rendered.
    func run(_ input: BatchInput) async throws(CommandFailure) -> BatchSummary {
        // Created first: `BatchFinisher` creates the output folder.
        let sources = SourceGuard(input, outputFolder: options.outputFolder, options.bucket)
        let finisher = try BatchFinisher(options, sources: sources)
        let producer = BatchProducer(input, options, sources: sources)
        let reading = OwnedThreads(count: 1)
        let writing = OwnedThreads(count: 1)
        let concurrency = max(1, options.concurrency)
        let window = concurrency * 4
        let (renderer, options) = (renderer, options)
        let isInterrupted = options.isInterrupted
        let unable = await withTaskGroup(of: Step.self) { group in
            /// Why nothing can be rendered, which is then true of every item.
            var unable: BatchFailure?
            var hasRendered = false
            /// How many items of each group pulled together are still rendering, keyed by the number of the group's
            /// first item.
            var running: [Int: Int] = [:]
            var isPulling = false
            var hasEnded = false
            var pulled = 0
            var finished = 0
            var named = 0
            var waiting: [Int: (BatchItem, BatchOutcome)] = [:]
            var written: [Int: BatchOutput] = [:]
            while true {
                if !hasEnded, !isPulling, running.count < concurrency, pulled - finished < window {
                    if isInterrupted() {
                        hasEnded = true
                    } else {
                        isPulling = true
                        group.addTask { .pulled(await reading.run { producer.next() }) }
                    }
                }
                guard let step = await group.next() else { break }
                switch step {
                case .pulled(let items):
                    isPulling = false
                    guard !items.isEmpty, !isInterrupted() else {
                        hasEnded = true
                        continue
                    }
                    let first = pulled
                    pulled += items.count
                    let renders = renderer.renders(of: items)
                    for (number, (item, render)) in zip(first..., zip(items, renders)) {
                        if let failure = item.failure {
                            waiting[number] = (item, .failure(failure))
                            continue
                        }
                        running[first, default: 0] += 1
                        group.addTask {
                            let outcome = await render()
                            guard number == first, options.manifest != nil else {
                                return .rendered(number, first, item, outcome)
                            }
                            var item = item
                            item.facts = await renderer.facts(of: item.source)
                            return .rendered(number, first, item, outcome)
                        }
                    }
                case .rendered(let number, let first, let item, let outcome):
                    switch outcome {
                    case .variant(let variant): hasRendered = hasRendered || variant.item.outcome == .rendered
                    case .failure(let failure) where !hasRendered && failure.meansNoWorker:
                        unable = unable ?? failure
                        hasEnded = true
                    case .failure: break
                    }
                    waiting[number] = (item, outcome)
                    running[first, default: 1] -= 1
                    if running[first] == 0 { running[first] = nil }
                case .written(let number, let output): written[number] = output
                }
                while let (item, outcome) = waiting.removeValue(forKey: named) {
                    let number = named
                    named += 1
                    let output = await writing.run { finisher.output(item, outcome) }
                    guard let bucket = options.bucket, output.variant != nil else {
                        written[number] = output
                        continue
                    }
                    group.addTask {
                        let result = await bucket.write(output) { path in
                            await writing.run { sources.refusal(replacing: path) }
                        }
                        return .written(number, result)
                    }
                }
                while let output = written.removeValue(forKey: finished) {
                    finished += 1
                    await writing.run { finisher.finish(output) }
                }
            }
            return hasRendered ? nil : unable
        }
        let input = await reading.run { (producer.duplicates, producer.ownOutputs, producer.hasUnreadInput) }
        let wasInterrupted = isInterrupted()
        let summary = await writing.run { finisher.end(input, isInterrupted: wasInterrupted) }
        if let unable, !wasInterrupted { throw CommandFailure(ProgramExit(unable.code), unable.message) }
        return summary
    }
}

extension BatchFailure {
    /// Whether it is the program's and not the item's.
    var meansNoWorker: Bool { code == .workersUnavailable || code == .libraryUnavailable }
}

struct BatchItem: Sendable {
    var source: BatchSource
    /// Position of the source in the input, from 1.
    var index: Int
    var written: String
    var canonical: String
    var hasSeveralRecipes: Bool
    /// Set when there is nothing to render.
    var failure: BatchFailure?
    /// Set of a source's first item if a manifest is written.
    var facts: SourceFacts?
}

/// Turns entries into items: all recipes of a source together, and each pair of source and recipe once.
///
/// `@unchecked Sendable`: only jobs of the runner's reading thread touch it.
final class BatchProducer: @unchecked Sendable {
    private var entries: BatchInput.Iterator
    private let options: BatchOptions
    private var pending: [BatchItem] = []
    private var index = 0
    /// Hashes of source and recipe; 8 bytes per item.
    private var seen: Set<Int> = []
    private var canonical: [ByteString: Result<String, BatchFailure>] = [:]
    private(set) var duplicates = 0
    private(set) var ownOutputs = 0
    /// Whether an input could not be read, or not to its end.
    private(set) var hasUnreadInput = false
    /// A source with more recipes is split into portions of about so many, so that few render at once however many a manifest names.
    static let recipesAtOnce = 16

    private let sources: SourceGuard

    init(_ input: BatchInput, _ options: BatchOptions, sources: SourceGuard) {
        entries = input.makeIterator()
        self.options = options
        self.sources = sources
    }

    /// The next source's items, or the next portion of them; empty at the end of the input.
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
                        code: .noRecipe, message: "this entry has no recipe, and none was given with -r")
                    return [failed(source, "", failure)]
                }
                expand(source, recipes)
            }
        }
        var count = min(pending.count, Self.recipesAtOnce)
        // Sizes of one format stay together, to share a render if they can.
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
        // Compare stored names: two spellings of one source are the same source to the cache.
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

    /// Canonicalises a recipe, with a cache because manifests repeat a few recipes. The cache is bounded, so that a
    /// manifest with a different recipe on each line cannot fill memory.
    private func canonicalText(_ recipe: String) -> Result<String, BatchFailure> {
        let name = ByteString(recipe)
        if let known = canonical[name] { return known }
        if canonical.count >= 1000 { canonical.removeAll(keepingCapacity: true) }
        let text = options.canonicalRecipe(recipe)
        canonical[name] = text
        return text
    }
}
