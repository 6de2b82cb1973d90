import PipelineSupport
import ArgumentParser
import Glibc
import Pipeline
import PipelineFleet
import Variants

struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch",
        abstract: "Render variants of many sources into a folder or a bucket.",
        discussion: """
            Inputs are files, folders (read recursively; so are s3://BUCKET/PREFIX/), globs, URLs, lists of sources (.txt),
            JSON Lines (.jsonl) and CSV manifests; - reads a list from standard input. A second run uses the caches and does not rewrite unchanged files.

            Examples:
              pipectl batch photos/ -r thumbnail:320x240 -o out
              pipectl batch urls.txt -r thumbnail:200:fill,circle,webp -r scaled:0.5 -o out
              pipectl batch photos/ -r thumbnail:200 -o out --gallery out/index.html
              pipectl batch photos/ --srcset 320,640,1280 -o out --manifest images.json
              pipectl batch s3://photos/2026/ -r thumbnail:200 -o s3://small/2026
              find . -name '*.png' | pipectl batch - -r png -o out --name '{index}.{ext}'
              pipectl batch a.csv -o s3://small/2026 --queue redis://redis.example
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
    @Option(
        help: ArgumentHelp(
            "Names of the outputs, with {stem} {ext} {dir} {recipe} {width} {height} {key} {index}.",
            valueName: "template"))
    var name: String?
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("Skip matching names in folders, such as *.psd; repeatable.", valueName: "glob"))
    var exclude: [String] = []
    @Flag(help: "Include names in folders that begin with a dot.")
    var hidden = false
    @Flag(help: "Remove outputs of earlier batches whose sources no longer exist.")
    var prune = false
    @Flag(help: "Follow symbolic links in folders.")
    var followLinks = false
    @Option(help: ArgumentHelp("Write one line of JSON per item.", valueName: "file"), completion: .file())
    var report: String?
    @Option(
        help: ArgumentHelp("Widths of each picture in pixels, instead of recipes: 320,640,1280.", valueName: "widths"))
    var srcset: String?
    @Option(help: ArgumentHelp("Formats of --srcset (default avif,webp,jpeg).", valueName: "formats"))
    var formats: String?
    @Option(
        help: ArgumentHelp("Write sizes, srcset values, placeholders and colors as JSON.", valueName: "file"),
        completion: .file())
    var manifest: String?
    @Option(help: ArgumentHelp("Prefix of the URLs in the manifest, for example /img/.", valueName: "text"))
    var urlPrefix: String?
    @Option(help: ArgumentHelp("Write a contact sheet (HTML).", valueName: "file"), completion: .file())
    var gallery: String?
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Number of concurrent renders (default: one per processor).", valueName: "number"))
    var jobs: Int?
    @Flag(help: "Make smaller AVIF and JPEG XL files of the same score, in several times the CPU time.")
    var best = false
    @Flag(
        name: [.customShort("n"), .long],
        help: "Print the source, recipe and output of each item without fetching, rendering or writing.")
    var dryRun = false
    @Option(
        defaultAsFlag: "",
        help: ArgumentHelp(
            "Let `pipectl worker` processes do the work, through a stream on this Redis server or the one in the setting queue.",
            valueName: "redis-url"))
    var queue: String?
    @Flag(help: "Submit to a queue (the default with --queue).")
    var submit = false
    @Option(
        help: ArgumentHelp("Resume a batch of the queue; this requires the same inputs and options.", valueName: "id"))
    var attach: String?
    @Option(
        help: ArgumentHelp(
            "Maximum number of attempts per item (default 3; 1 is treated as 2).", valueName: "number"))
    var tries: Int?
    @Option(help: .hidden)
    var lease: Double?
    @Flag(help: "Print the summary as one JSON object on standard output.")
    var json = false
    @Option(
        help: ArgumentHelp(
            "Cache policy: protocol, cacheElseLoad, cacheOnly, reload or revalidate.", valueName: "policy"))
    var policy: CachePolicy?
    @OptionGroup var verbose: VerboseOption
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let settings = common.collectedSettings(
            flags: jobs.map { [("--jobs", "render.workers", "\($0)")] } ?? [])
        var configuration = try settings.configuration()
        guard !sources.isEmpty else {
            throw CommandFailure(
                .usage,
                "no sources were given; name files, folders, URLs or a manifest, or write `-` to read a list from standard input"
            )
        }
        var input = BatchInput(
            arguments: sources, excludedFolders: [output, configuration.pipeline.cacheFolder].compactMap { $0 },
            isInterrupted: { Interruption.isRequested })
        input.rule?.takesHidden = hidden
        input.rule?.exclusions = exclude
        input.followsLinks = followLinks
        let recipes = try recipe + responsiveRecipes()
        guard !recipes.isEmpty || input.mayCarryRecipes else {
            throw CommandFailure(
                .usage, "no recipe was given; use -r RECIPE, --srcset WIDTHS, or a manifest with recipes")
        }
        let folder = try outputBucket()
        if folder != nil || sources.contains(where: { BucketReader.folder($0) != nil }), !settings.isSet("retries") {
            // An object store may ask clients to slow down. Retry in this case.
            configuration.pipeline.fetch.maxRetries = 8
        }
        // A batch waits for all of its renders and serves no other clients, so long renders need no limit.
        configuration.pipeline.rendering.longRenders = .max
        let presets = try configuration.recipePresets()
        // An invalid recipe on the command line is a usage error. An invalid recipe in a manifest affects only the
        // items that use it.
        let canonical = try recipes.map { try Recipe(usage: $0, presets: presets).description }
        let options = try self.options(recipes, presets, configuration, writesFiles: folder == nil)
        let done: BatchSummary? = try await common.withPipeline(configuration, lookups: 4) { pipeline in
            var (input, options) = (input, options)
            input.buckets = pipeline.buckets
            if let folder, let store = pipeline.buckets {
                options.bucket = BucketOutput(store: store, folder: folder, cacheControl: cacheControl)
                do throws(FetchError) {
                    if !dryRun { try await store.check(folder) }
                } catch {
                    throw CommandFailure(.outputFailed, error.message)
                }
            }
            let outputs = OwnOutputs(in: output, options.bucket) { canonical.flatMap { pipeline.variants(madeBy: $0) } }
            if queue == nil { input.isOwnOutput = outputs.contains }
            if dryRun {
                try plan(input, options)
                return nil
            }
            if options.progressDescriptor != nil { options.total = input.itemCount(defaultRecipes: recipes.count) }
            if let queue { return try await submit(input, options, to: queue, configuration) }
            guard !best || pipeline.maxAgeOfFirstPass != nil else {
                throw CommandFailure(
                    .usage, "--best requires render workers (render.isolation=workers) and secondPass.cpu above 0")
            }
            let renderer = PipelineBatch(pipeline: pipeline, policy: policy, isBest: best, outputs: outputs)
            return try await BatchRunner(renderer: renderer, options: options).run(input)
        }
        if let done { try conclude(done, input) }
    }

    private func options(
        _ recipes: [String], _ presets: RecipePresets, _ configuration: RunConfiguration, writesFiles: Bool
    ) throws(CommandFailure) -> BatchOptions {
        let name =
            name ?? (srcset == nil ? nil : queue == nil ? "{stem}-{width}.{ext}" : "{stem}-{width}-{index}.{ext}")
        var options = BatchOptions(
            recipes: recipes, outputFolder: output, nameTemplate: name, reportPath: report, galleryPath: gallery
        ) { text in
            do throws(CommandFailure) {
                return .success(try Recipe(usage: text, presets: presets).description)
            } catch {
                return .failure(BatchFailure(code: .invalidRecipe, message: error.message))
            }
        }
        // Fetching waits for the network, and rendering waits for the CPU. With a few additional sources, some are
        // fetched while others are rendered.
        options.concurrency = (configuration.workers.maxConcurrentRenders ?? RunConfiguration.processors) + 3
        options.isInterrupted = { Interruption.isRequested }
        options.goesOnWithReport = attach != nil
        // If there is a queue, its workers write the outputs.
        if queue == nil, let cacheFolder = configuration.pipeline.cacheFolder {
            let inputs = sources.map { $0.firstRange(of: "://") == nil ? absolutePath($0) : $0 } + selection
            options.record = RecordOptions(
                folder: cacheFolder + "/batches",
                inputs: sources.contains("-") ? nil : sha256Hex(inputs.joined(separator: "\0")), prunes: prune)
        }
        guard !prune || options.record != nil && writesFiles else {
            throw CommandFailure(
                .usage,
                "--prune requires an output folder on this machine, and a cache folder, which records the outputs of batches"
            )
        }
        options.manifest = manifest.map { ManifestOptions(path: $0, urlPrefix: urlPrefix ?? "") }
        if verbose.isOn, !common.quiet { options.onFailure = { Console.error("failed: " + $0) } }
        if !common.quiet, isatty(STDERR_FILENO) == 1 { options.progressDescriptor = STDERR_FILENO }
        return options
    }

    /// Prints the summary.
    private func conclude(_ summary: BatchSummary, _ input: BatchInput) throws {
        if json { print(summary.json) }
        if summary.items == 0, !summary.isInterrupted {
            Console.error(
                summary.leftOut.isEmpty == false
                    ? "nothing to do: every name found in the sources was skipped"
                    : summary.ownOutputs > 0
                        ? "nothing to do: the sources contain only outputs of these recipes" : input.whyNothing)
        }
        if !common.quiet { Console.error(String(summary.text.dropLast())) }
        if summary.exit != .done { throw ExitCode(summary.exit.rawValue) }
    }

    /// Prints what the batch would do.
    private func plan(_ input: BatchInput, _ options: BatchOptions) throws {
        var plan = BatchPlan(options)
        try plan.run(input) { line throws(FileError) in try Console.write(Array((line + "\n").utf8)) }
        if !common.quiet { Console.error(plan.items == 0 ? input.whyNothing : plan.summary) }
        if Interruption.isRequested { throw ExitCode(ProgramExit.interrupted.rawValue) }
        if plan.failures > 0 { throw ExitCode(ProgramExit.itemsFailed.rawValue) }
    }

    /// Returns the recipes for `--srcset` and `--formats`. All widths of the first format come first, followed by those
    /// of the next format.
    private func responsiveRecipes() throws(CommandFailure) -> [String] {
        guard let srcset else { return [] }
        let texts = srcset.split(separator: ",", omittingEmptySubsequences: false).map { String($0).trimmed }
        let widths = texts.compactMap { Int($0) }
        guard widths.count == texts.count, widths.count <= 32, widths.allSatisfy({ (1...8192).contains($0) }) else {
            throw CommandFailure(
                .usage, "--srcset: expected at most 32 widths between 1 and 8192, such as 320,640,1280, not `\(srcset)`"
            )
        }
        let outputs = (formats ?? "avif,webp,jpeg").split(separator: ",", omittingEmptySubsequences: false).map {
            String($0).trimmed
        }
        // A source has one `srcset` per format.
        let kinds = outputs.map { (try? Recipe($0)).flatMap { $0.steps.isEmpty ? $0.output?.kind : nil } }
        if let bad = kinds.firstIndex(where: { kind in kind == nil || kinds.count { $0 == kind } > 1 }) {
            throw CommandFailure(
                .usage,
                "--formats: `\(outputs[bad])` is not valid here; "
                    + "expected a list of outputs such as avif,webp:70, in which each format occurs at most once"
            )
        }
        return outputs.flatMap { output in Set(widths).sorted().map { "thumbnail:\($0)x,\(output)" } }
    }

    /// The options that select names in the inputs. Empty by default.
    private var selection: [String] {
        let rule = exclude + (hidden ? ["--hidden"] : []) + (followLinks ? ["--follow-links"] : [])
        return rule.isEmpty ? [] : [""] + rule
    }

    /// Submits the batch to a queue, so that workers render it.
    private func submit(
        _ input: BatchInput, _ options: BatchOptions, to queue: String, _ configuration: RunConfiguration
    ) async throws(CommandFailure) -> BatchSummary {
        let connection = try QueueConnection.configuration(queue, configuration, isQuiet: common.quiet)
        let id = try attach.map { text throws(CommandFailure) in try QueueConnection.batch(text, of: "--attach") }
        let submitter = BatchSubmitter(connection, batch: id ?? BatchID())
        defer { submitter.close() }
        let queued = QueueOptions(
            output: options.bucket == nil ? absolutePath(output) : output, cacheControl: cacheControl,
            nameTemplate: options.nameTemplate, policy: policy,
            inputs: sha256Hex((sources + [""] + options.recipes + selection).joined(separator: "\0")))
        var attached: BatchState?
        do throws(BatchError) {
            if id == nil {
                var terms = BatchTerms()
                if let tries { terms.tries = tries }
                if let lease { terms.leaseSeconds = lease }
                try await submitter.create(options: queued.bytes, terms: terms)
            } else {
                attached = try await submitter.attach()
            }
        } catch { throw QueueConnection.failure(error) }
        if let attached, attached.options != queued.bytes {
            throw CommandFailure(
                .usage,
                "batch \(submitter.id) was submitted with different sources or options; repeat the command that started it"
            )
        }
        if !common.quiet {
            Console.error(
                "batch \(submitter.id): to resume after an interruption, repeat this command with --attach \(submitter.id)"
            )
        }
        if configuration.queueKey == nil, !common.quiet {
            Console.error(
                "pipectl: the entries are not signed, so only `pipectl worker --unsigned` renders them; set PIPECTL_QUEUE_KEY",
                .warning)
        }
        return try await QueueSubmission(
            submitter: submitter, options: options, key: configuration.queueKey, queued: queued.bytes,
            attached: attached, isInterrupted: { Interruption.isRequested }
        ).run(input)
    }

    func validate() throws {
        guard srcset == nil || recipe.isEmpty else {
            throw ValidationError("--srcset and -r cannot be combined, because --srcset creates the recipes")
        }
        guard srcset != nil || formats == nil else { throw ValidationError("--formats requires --srcset") }
        guard manifest != nil || urlPrefix == nil else { throw ValidationError("--url-prefix requires --manifest") }
        guard manifest != "-" else {
            throw ValidationError("--manifest cannot write to standard output; give the name of a file")
        }
        // In `srcset`, spaces and commas separate URLs (HTML, "Srcset attributes").
        let isURL = urlPrefix?.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"'<>,".utf8.contains($0) } ?? true
        guard isURL else {
            throw ValidationError(
                "--url-prefix contains characters that are not allowed in a URL; percent-encode spaces, commas, quotes and non-ASCII letters"
            )
        }
        guard !exclude.contains("") else { throw ValidationError("--exclude requires a pattern such as *.psd") }
        if dryRun, queue != nil || report != nil || gallery != nil || manifest != nil || prune || json {
            throw ValidationError(
                "--dry-run only prints a plan; it cannot be combined with --queue, --report, --gallery, --manifest, --prune or --json"
            )
        }
        if queue == nil {
            guard attach == nil, tries == nil, lease == nil, !submit else {
                throw ValidationError("--submit, --attach and --tries require --queue")
            }
            return
        }
        guard !best, gallery == nil, manifest == nil, !prune else {
            throw ValidationError(
                "--best, --gallery, --manifest and --prune cannot be combined with --queue, because the workers write the outputs"
            )
        }
        guard !sources.contains("-") || attach == nil else {
            throw ValidationError("--attach cannot resume a batch that was read from standard input")
        }
        guard tries.map({ (1...1_000).contains($0) }) != false else {
            throw ValidationError("--tries must be between 1 and 1000")
        }
        if let refusal = QueueOptions.refusal(ofTemplate: name) { throw ValidationError(refusal) }
    }

    /// Returns the bucket folder to write to, or nil if the output folder is on this machine.
    private func outputBucket() throws(CommandFailure) -> SourceURL? {
        let folder: SourceURL?
        do throws(SourceError) {
            folder = try SourceURL(stored: output, isFolder: true)
        } catch {
            throw CommandFailure(.usage, error.message)
        }
        guard let cacheControl else { return folder }
        guard folder != nil else { throw CommandFailure(.usage, "--cache-control requires -o s3://BUCKET/PREFIX") }
        guard BucketOutput.isCacheControl(cacheControl) else {
            throw CommandFailure(
                .usage, "--cache-control is not a valid field value; expected for example `public, max-age=86400`")
        }
        return folder
    }
}

struct PipelineBatch: BatchRendering {
    let pipeline: ImagePipeline
    let policy: CachePolicy?
    /// Whether to make second passes.
    var isBest = false
    /// The outputs of the batch, or nil in a queue worker, which reads no inputs.
    let outputs: OwnOutputs?

    func render(source: BatchSource, recipe text: String) async -> BatchOutcome {
        do {
            // Presets are already expanded in the canonical form.
            var request = ImageRequest(ImageSource(source.source), recipe: try Recipe(text))
            request.policy = policy
            request.makesSecondPass = isBest
            let response = try await pipeline.answer(request)
            var item = ItemJSON(source: source.source, recipe: text, outcome: .failed)
            item.fill(response)
            // An original that the recipe does not change is still a source.
            if response.digest != response.record.digest { outputs?.add((response.bytes.count, response.digest)) }
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

    func facts(of source: BatchSource) async -> SourceFacts? {
        var request = ImageRequest(ImageSource(source.source))
        // The original is in the cache because a variant has just been rendered from it.
        request.policy = .cacheElseLoad
        // Without the facts, the manifest contains only the files.
        guard let information = try? await pipeline.information(for: request) else { return nil }
        var facts = SourceFacts(width: information.header.width, height: information.header.height)
        facts.color = information.colors?.palette.first ?? information.colors?.average
        facts.thumbHash = information.colors?.thumbHash
        request.recipe = try? Recipe("thumbnail:16x16,webp:30")
        if request.recipe != nil, let picture = try? await pipeline.answer(request) {
            facts.placeholder = "data:\(picture.mediaType);base64," + Base64.text(picture.bytes)
        }
        return facts
    }
}
