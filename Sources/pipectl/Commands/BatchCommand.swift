import PipelineSupport
import ArgumentParser
import Glibc
import Pipeline
import Variants

struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch",
        abstract: "Render variants of many sources into a folder or a bucket.",
        discussion: """
            Inputs are files, folders (read recursively; so are s3://BUCKET/PREFIX/), globs, URLs, lists of sources (.txt),
            JSON Lines (.jsonl) and CSV manifests; - reads a list from stdin. A second run uses the caches and leaves unchanged files untouched.

            Examples:
              pipectl batch photos/ -r thumbnail:320x240 -o out
              pipectl batch urls.txt -r thumbnail:200:fill,circle,webp -r scaled:0.5 -o out
              pipectl batch photos/ -r thumbnail:200 -o out --gallery out/index.html
              pipectl batch s3://photos/2026/ -r thumbnail:200 -o s3://small/2026
              find . -name '*.png' | pipectl batch - -r png -o out --name '{index}.{ext}'
            """)

    @Argument(
        help: ArgumentHelp("Files, folders, globs, URLs, lists, manifests, or -.", valueName: "sources"),
        completion: .file())
    var sources: [String] = []
    @Option(
        name: .shortAndLong, parsing: .singleValue,
        help: ArgumentHelp(
            "Recipe to apply to each source; repeatable. A manifest's recipes replace these.", valueName: "recipe"),
        completion: .recipe)
    var recipe: [String] = []
    @Option(
        name: .shortAndLong, help: ArgumentHelp("Folder to write to, or s3://BUCKET/PREFIX.", valueName: "dir"),
        completion: .directory)
    var output: String
    @Option(help: ArgumentHelp("Cache-Control of the objects written to a bucket.", valueName: "value"))
    var cacheControl: String?
    @Option(help: ArgumentHelp("{stem} {ext} {dir} {recipe} {width} {height} {key} {index}", valueName: "template"))
    var name: String?
    @Option(help: ArgumentHelp("Write one line of JSON per item.", valueName: "file"), completion: .file())
    var report: String?
    @Option(help: ArgumentHelp("Write a contact sheet.", valueName: "file"), completion: .file())
    var gallery: String?
    @Flag(help: "Print the summary as one JSON object on stdout.")
    var json = false
    @Option(help: ArgumentHelp("protocol, cacheElseLoad, cacheOnly, reload or revalidate.", valueName: "policy"))
    var policy: CachePolicy?
    @OptionGroup var verbose: VerboseOption
    @OptionGroup var common: CommonOptions

    func run() async throws {
        var configuration = try common.configuration()
        guard !sources.isEmpty else {
            throw CommandFailure(
                .usage, "nothing to do: name files, folders, URLs or a manifest, or - for a list on stdin")
        }
        var input = BatchInput(
            arguments: sources, excludedFolders: [output, configuration.pipeline.cacheFolder].compactMap { $0 },
            isInterrupted: { Interruption.isRequested })
        guard !recipe.isEmpty || input.mayCarryRecipes else {
            throw CommandFailure(.usage, "no recipe: give -r RECIPE, or a manifest with recipes")
        }
        let folder = try outputBucket()
        if folder != nil || sources.contains(where: { BucketReader.folder($0) != nil }),
            !common.collectedSettings().isSet("retries")
        {
            // A store that asks to slow down is to be waited for.
            configuration.pipeline.fetch.retries = 8
        }
        // A batch waits for all of its renders, and no other client is kept waiting.
        configuration.pipeline.longRenders = .max
        let presets = try configuration.recipePresets()
        // An invalid recipe on the command line is a usage error; one in a manifest fails only its own items.
        let canonical = try recipe.map { try Recipe(usage: $0, presets: presets).description }
        var options = BatchOptions(
            recipes: recipe, outputFolder: output, nameTemplate: name, reportPath: report, galleryPath: gallery
        ) { text in
            do throws(CommandFailure) {
                return .success(try Recipe(usage: text, presets: presets).description)
            } catch {
                return .failure(BatchFailure(code: .invalidRecipe, message: error.message))
            }
        }
        // Fetching waits for the network, rendering for the CPU: with a few extra sources, some fetch while others
        // render.
        options.concurrency = (configuration.workers.count ?? RunConfiguration.processors) + 3
        options.isInterrupted = { Interruption.isRequested }
        if verbose.isOn, !common.quiet { options.onFailure = { Console.error("failed: " + $0) } }
        if !common.quiet, isatty(STDERR_FILENO) == 1 {
            options.progressDescriptor = STDERR_FILENO
        }
        let summary = try await common.withPipeline(configuration, lookupThreads: 4) { pipeline in
            input.buckets = pipeline.buckets
            if let folder, let store = pipeline.buckets {
                options.bucket = BucketOutput(store: store, folder: folder, cacheControl: cacheControl)
                do throws(FetchError) {
                    try await store.check(folder)
                } catch {
                    throw CommandFailure(.outputFailed, error.message)
                }
            }
            let outputs = OwnOutputs(in: output, options.bucket) { canonical.flatMap { pipeline.variants(madeBy: $0) } }
            input.isOwnOutput = outputs.contains
            if options.progressDescriptor != nil { options.total = input.itemCount(defaultRecipes: recipe.count) }
            let renderer = PipelineBatch(pipeline: pipeline, policy: policy, outputs: outputs)
            return try await BatchRunner(renderer: renderer, options: options).run(input)
        }
        if json { print(summary.json) }
        if summary.items == 0, !summary.isInterrupted {
            Console.error(
                summary.ownOutputs > 0
                    ? "nothing to do: all that was found are outputs of these recipes" : input.whyNothing)
        }
        if !common.quiet { Console.error(String(summary.text.dropLast())) }
        if summary.exit != .done { throw ExitCode(summary.exit.rawValue) }
    }

    /// The folder of the bucket to write to; nil if it is one of this machine.
    private func outputBucket() throws(CommandFailure) -> SourceURL? {
        let folder: SourceURL?
        do throws(SourceError) {
            folder = try SourceURL(s3: output, isFolder: true)
        } catch {
            throw CommandFailure(.usage, error.message)
        }
        guard let cacheControl else { return folder }
        guard folder != nil else { throw CommandFailure(.usage, "--cache-control needs -o s3://BUCKET/PREFIX") }
        guard !cacheControl.isEmpty, cacheControl.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw CommandFailure(.usage, "--cache-control is not the value of a field")
        }
        return folder
    }
}

private struct PipelineBatch: BatchRendering {
    let pipeline: ImagePipeline
    let policy: CachePolicy?
    let outputs: OwnOutputs

    func render(source: BatchSource, recipe text: String) async -> BatchOutcome {
        do {
            // The canonical text has its presets expanded already.
            var request = ImageRequest(ImageSource(source.source), recipe: try Recipe(text))
            request.policy = policy
            let response = try await pipeline.answer(request)
            var item = ItemJSON(source: source.source, recipe: text, outcome: .failed)
            item.fill(response)
            // An original that its recipe leaves as it is stays a source.
            if response.digest != response.record.digest { outputs.add((response.bytes.count, response.digest)) }
            let fileExtension = response.format.fileExtension
            return .variant(
                BatchVariant(
                    bytes: response.bytes, fileExtension: fileExtension, mediaType: response.mediaType, item: item))
        } catch let error as PipelineError {
            return .failure(BatchFailure(code: error.code, message: error.message))
        } catch {
            return .failure(BatchFailure(code: .invalidRecipe, message: "\(error)"))
        }
    }
}
