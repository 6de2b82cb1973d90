import ArgumentParser
import Glibc
import Pipeline
import Variants

struct InfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "What an original is: format, size, digest, freshness, colours.",
        discussion: "Examples:\n  pipectl info photo.jpg\n  pipectl info https://example.org/photo.jpg --json")

    @Argument(help: ArgumentHelp("An http(s) URL or a file.", valueName: "source"))
    var source: String
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func validate() throws { try CommonOptions.checkSource(source) }

    func run() async throws {
        let settings = try common.settings()
        let pipeline = try common.pipeline(settings)
        let failure: CommandFailure?
        do throws(PipelineError) {
            let response = try await pipeline.answer(ImageRequest(ImageSource(source)))
            let colours = await colours(pipeline)
            show(response, colours, settings)
            failure = nil
        } catch {
            failure = CommandFailure(error.hinting(at: source))
        }
        await pipeline.shutdown()
        if let failure { throw failure }
    }

    /// nil where the pixels cannot be decoded; the rest is worth telling all the same.
    private func colours(_ pipeline: ImagePipeline) async -> (average: String?, hash: String)? {
        do {
            var request = ImageRequest(ImageSource(source), recipe: try Recipe("thumbnail:32x32,png"))
            request.policy = .cacheElseLoad
            let picture = try await pipeline.pixels(for: request)
            return (BlurHash.averageColour(of: picture), BlurHash.hash(of: picture))
        } catch {
            Console.error("pipectl: no colours: \(error)")
            return nil
        }
    }

    private func show(_ response: ImageResponse, _ colours: (average: String?, hash: String)?, _ settings: Settings) {
        guard let header = response.record.header else { return }
        let stored = response.record.response
        let isRemote = if case .url = ImageSource(source) { true } else { false }
        var caching = CachingConfiguration()
        caching.isPrivate = settings.bool("private")
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let remaining = Freshness.remaining(of: stored, now: Double(now.tv_sec), configuration: caching)
        let validators = stored.fields.filter { ["etag", "last-modified"].contains($0.name.lowercased()) }
        if json {
            var object = JSONText()
            object.add("source", source)
            object.add("format", header.format.rawValue)
            object.add("mediaType", response.mediaType)
            object.add("bytes", response.bytes.count)
            object.add("width", header.width)
            object.add("height", header.height)
            object.add("pages", header.pages)
            object.add("alpha", header.hasAlpha)
            object.add("orientation", header.orientation)
            object.add("profile", header.profileBytes > 0)
            object.add("digest", response.digest)
            if isRemote { object.add("freshness", raw: JSONText.number(Double(remaining))) }
            object.add("validators") { inner in
                for field in validators { inner.add(field.name.lowercased(), field.value) }
            }
            object.add("averageColour", colours?.average)
            object.add("blurhash", colours?.hash)
            print(object.closed)
            return
        }
        var table = TextTable([("", .left), ("", .left)])
        table.add("format", "\(header.format.rawValue) (\(response.mediaType))")
        table.add("size", "\(header.width) × \(header.height), \(Readable.bytes(response.bytes.count))")
        table.add("pages", "\(header.pages)")
        table.add("alpha", header.hasAlpha ? "yes" : "no")
        table.add("orientation", "\(header.orientation)")
        table.add("profile", header.profileBytes > 0 ? Readable.bytes(header.profileBytes) : "none (sRGB assumed)")
        table.add("digest", response.digest)
        if isRemote {
            let seconds = Int(remaining)
            table.add("freshness", seconds > 0 ? "fresh for \(seconds) s" : "stale, asks the origin each time")
            for field in validators { table.add(field.name.lowercased(), field.value) }
        }
        if let colours {
            table.add("average colour", colours.average.map { "#" + $0 } ?? "none")
            table.add("blurhash", colours.hash)
        }
        print(table.text, terminator: "")
    }
}
