import PipelineSupport
import ArgumentParser
import Glibc
import Pipeline
import Variants

struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch",
        abstract: "Render variants of many sources into a folder.",
        discussion: """
            Inputs are files, folders (read recursively), globs, URLs, lists of sources (.txt), JSON Lines (.jsonl) and CSV
            manifests; - reads a list from stdin. A second run uses the caches and leaves unchanged files untouched.

            Examples:
              pipectl batch photos/ -r thumbnail:320x240 -o out
              pipectl batch urls.txt -r thumbnail:200:fill,circle,webp -r scaled:0.5 -o out
              pipectl batch photos/ -r thumbnail:200 -o out --gallery out/index.html
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
    @Option(name: .shortAndLong, help: ArgumentHelp("Folder to write to.", valueName: "dir"), completion: .directory)
    var output: String
    @Option(help: ArgumentHelp("{stem} {ext} {dir} {recipe} {width} {height} {key} {index}", valueName: "template"))
    var name: String?
    @Option(help: ArgumentHelp("Write one line of JSON per item.", valueName: "file"), completion: .file())
    var report: String?
    @Option(help: ArgumentHelp("Write a contact sheet.", valueName: "file"), completion: .file())
    var gallery: String?
    @Flag(help: "Print the summary as one JSON object on stdout.")
    var json = false
    @Option(help: ArgumentHelp("protocol, cacheElseLoad, cacheOnly, reload or revalidate.", valueName: "policy"))
    var policy: CachePolicy = .protocol
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
            let outputs = OwnOutputs(in: output) { canonical.flatMap { pipeline.variants(madeBy: $0) } }
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
}

private struct PipelineBatch: BatchRendering {
    let pipeline: ImagePipeline
    let policy: CachePolicy
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
            return .variant(BatchVariant(bytes: response.bytes, fileExtension: fileExtension, item: item))
        } catch let error as PipelineError {
            return .failure(BatchFailure(code: error.code, message: error.message))
        } catch {
            return .failure(BatchFailure(code: .invalidRecipe, message: "\(error)"))
        }
    }
}
