import PipelineSupport
public import ArgumentParser
import Glibc
public import Pipeline
import Variants

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Get one variant through the caches or, without a recipe, the original's bytes.",
        discussion: """
            Examples:
              pipectl get https://example.org/photo.jpg -r thumbnail:300 -o photo-300.jpg
              pipectl get photo.png -r thumbnail:200:fill,circle -o avatar.webp --json
              pipectl get https://example.org/photo.jpg > photo.jpg
            """)

    @OptionGroup var argument: SourceArgument
    @Option(
        name: .shortAndLong, help: ArgumentHelp("The recipe to apply; see `pipectl recipes`.", valueName: "recipe"),
        completion: .recipe)
    var recipe: String?
    @Option(
        name: .shortAndLong, help: ArgumentHelp("Output file; - is standard output.", valueName: "file"),
        completion: .file())
    var output: String?
    @Flag(help: "Print the result as one JSON object; without -o, the picture is not written.")
    var json = false
    @Option(
        help: ArgumentHelp(
            "Cache policy: protocol, cacheElseLoad, cacheOnly, reload or revalidate.", valueName: "policy"))
    var policy: CachePolicy?
    @OptionGroup var verbose: VerboseOption
    @OptionGroup var common: CommonOptions

    private var source: String { argument.text }

    func validate() throws {
        if json, output == "-" {
            throw ValidationError("--json and -o - would both write to standard output; use -o FILE")
        }
    }

    func run() async throws {
        if output == nil, !json, isatty(STDOUT_FILENO) == 1 {
            throw CommandFailure(
                .usage,
                "standard output is a terminal, and pictures are not written to it; use -o FILE or redirect the output")
        }
        let configuration = try common.configuration()
        let named = try NamedSource(source, common.collectedSettings())
        var request = try named.request(recipe, presets: configuration.recipePresets())
        request.recipe = request.recipe?.ending(for: output)
        request.policy = policy
        try await common.withPipeline(configuration) { try await deliver(request, $0) }
    }

    private func deliver(_ request: ImageRequest, _ pipeline: ImagePipeline) async throws {
        var item = ItemJSON(source: source, recipe: request.recipe?.description ?? "", outcome: .failed)
        do throws(PipelineError) {
            let response = try await answer(request, pipeline)
            item.fill(response)
            if verbose.isOn { Console.error(item.sentence) }
            try write(response, &item)
        } catch {
            let hinted = error.hinting(at: source)
            if json {
                item.error = BatchFailure(code: hinted.code, message: hinted.message)
                print(item.line)
            }
            if Interruption.isRequested { throw CommandFailure(.interrupted, "interrupted") }
            throw hinted
        }
        if json { print(item.line) }
    }

    /// Loads the picture, and shows a progress line if stderr is a terminal.
    private func answer(
        _ request: ImageRequest, _ pipeline: ImagePipeline
    ) async throws(PipelineError) -> ImageResponse {
        guard !common.quiet, isatty(STDERR_FILENO) == 1 else { return try await pipeline.answer(request) }
        let load = pipeline.load(request, showsStale: false)
        let shown = Task { await WaitLine.show(load, on: STDERR_FILENO) }
        let result = await Result(of: { () async throws(PipelineError) in
            try await Interruption.cancelling { () async throws(PipelineError) in try await load.response }
        })
        // Wait until the line is cleared before printing anything else.
        shown.cancel()
        await shown.value
        return try result.get()
    }

    /// File extensions of formats that cannot be written.
    private static let foreignExtensions = [
        "bmp", "dib", "ico", "jp2", "pbm", "pdf", "pgm", "ppm", "psd", "svgz", "tga",
    ]

    /// Returns a note if the file's extension does not match the format of its content. Otherwise, returns nil.
    static func extensionNote(_ output: String, _ format: ImageFormat) -> String? {
        let promised = ImageFormat(extensionOf: output)
        guard promised != format else { return nil }
        let holds = "pipectl: note: \(output) contains \(format.rawValue); "
        if let promised, OutputSpecification.Kind(rawValue: promised.rawValue) != nil {
            return holds + "to match the file name, end the recipe with `\(promised.rawValue)`"
        }
        guard let ending = output.fileExtension, promised != nil || foreignExtensions.contains(ending) else {
            return nil
        }
        return holds + "\(ending) files cannot be written; see `pipectl recipes` for the outputs"
    }

    private func write(_ response: ImageResponse, _ item: inout ItemJSON) throws(PipelineError) {
        do throws(FileError) {
            if let output, output != "-" {
                item.output = output
                item.written = try AtomicOutput.write(response.bytes, to: output) { path in
                    guard case .file(let source) = ImageSource(source), let identity = FileIdentity(path: source),
                        identity == FileIdentity(path: path)
                    else { return nil }
                    return "it is the source; write to a different file"
                }
                if !common.quiet, let note = Self.extensionNote(output, response.format) { Console.error(note) }
            } else if !json {
                try Console.write(response.bytes)
            }
        } catch {
            throw PipelineError(.outputFailed, error.description)
        }
    }
}

extension Recipe {
    /// Returns the recipe with the output format that the file's extension names, such as `webp` for `a.webp`, if the
    /// recipe has no output.
    func ending(for file: String?) -> Recipe {
        guard output == nil, let format = file.flatMap(ImageFormat.init(extensionOf:)),
            let kind = OutputSpecification.Kind(rawValue: format.rawValue)
        else { return self }
        var recipe = self
        recipe.output = OutputSpecification(kind)
        // The output adds a step. If that exceeds the step limit, keep the recipe unchanged.
        return (try? Recipe(recipe.description)) ?? self
    }
}

extension ImageFormat {
    /// Returns the format for the extension of a file name, or nil if the extension is unknown.
    fileprivate init?(extensionOf file: String) {
        guard let format = file.fileExtension.flatMap(Self.init(fileExtension:)) else { return nil }
        self = format
    }
}

extension String {
    /// The extension of a file name in lowercase, or nil if the name contains no dot.
    fileprivate var fileExtension: String? {
        guard let dot = lastIndex(of: "."), !self[dot...].contains("/") else { return nil }
        return self[index(after: dot)...].lowercased()
    }
}

extension CachePolicy: ExpressibleByArgument {}

extension ImagePipeline {
    /// Loads a picture. SIGINT or SIGTERM cancels the request.
    func answer(_ request: ImageRequest) async throws(PipelineError) -> ImageResponse {
        try await Interruption.cancelling { () async throws(PipelineError) in try await self.respond(to: request) }
    }
}

extension ItemJSON {
    mutating func fill(_ response: ImageResponse) {
        // `.original` means the original itself. `originalOutcome` shows where its bytes came from.
        outcome = ItemOutcome(rawValue: response.outcome.rawValue) ?? .rendered
        originalOutcome = response.originalOutcome ?? .unneeded
        key = response.key
        collapsed = response.isCollapsed
        damaged = response.isDamaged ? true : nil
        bytes = response.bytes.count
        // For an original, report the encoded size, before the orientation is applied.
        let encoded = response.key == nil && response.outcome != .rendered ? response.record.header : nil
        width = encoded?.encodedWidth ?? response.width
        height = encoded?.encodedHeight ?? response.height
        format = response.format.rawValue
        digest = response.digest
        milliseconds = response.timings
    }
}
