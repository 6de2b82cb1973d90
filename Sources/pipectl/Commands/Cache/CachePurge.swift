import ArgumentParser
import Glibc
import Pipeline
import PipelineSupport

struct CachePurge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Remove a source's records and bodies, and all variants rendered from it.",
        discussion: """
            Variants are removed even if another source has the same bytes; they are rendered again on demand. A prefix is normalised as \
            a URL and then compared as text (`https://a.example/img` covers `/img.jpg` and `/imgs/1`), a host is that host \
            alone, with any scheme and port. A tag is one that the origin has sent in Cache-Tag or Surrogate-Key; all records
            are searched for it. If nothing is stored of SOURCE, the exit code is 4. --soft removes nothing: each record is used once more
            and validated behind the answer, or validated first if its directives demand that.

            Examples:
              pipectl cache purge https://example.org/photo.jpg
              pipectl cache purge --prefix https://example.org/albums/7/
              pipectl cache purge --host example.org
              pipectl cache purge --tag product-17 --soft
            """)

    @Argument(help: ArgumentHelp("A source as `get` takes it, or a name as printed by `list`.", valueName: "source"))
    var source: String?
    @Option(help: ArgumentHelp("Every source whose name begins with this URL or path.", valueName: "prefix"))
    var prefix: String?
    @Option(help: ArgumentHelp("Every http(s) source on exactly this host.", valueName: "host"))
    var host: String?
    @Option(help: ArgumentHelp("Every source whose response has this tag.", valueName: "tag"))
    var tag: String?
    @Flag(help: "Make records stale instead of removing anything.")
    var soft = false
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard [source, prefix, host, tag].count(where: { $0 != nil }) == 1, tag != "" else {
            throw ValidationError(
                "give exactly one of a source, --prefix, --host and --tag; `cache clear` removes everything")
        }
    }

    func run() async throws {
        let selection = try SourceOptions.selection(prefix: prefix, host: host)
        let settings = common.collectedSettings()
        let configuration = try settings.configuration()
        try common.existingCache(settings)
        let text = source ?? ""
        let name =
            try source == nil || ImageSource.isStoredName(text) ? text : NamedSource(text, settings).storedName()
        let result = try await common.withPipeline(configuration) { pipeline in
            let mode: PurgeMode = soft ? .soft : .hard
            if let selection { return try await pipeline.purge(selection, mode: mode) }
            if let tag { return try await pipeline.purge(tags: [tag], mode: mode) }
            // Records of a server's folder have a name that is a path here.
            return try await pipeline.purge(names: [name, text], prefixes: [], mode: mode)
        }
        let isUnknown = source != nil && result.sources == 0
        if json {
            var object = JSONText()
            object.add("source", source.map(SourceURL.redacting))
            object.add("prefix", prefix.map(SourceURL.redacting))
            object.add("host", host)
            object.add("tag", tag)
            if soft { object.add("mode", PurgeMode.soft.rawValue) }
            object.add("sources", result.sources)
            result.add(to: &object)
            if isUnknown { object.add("unknown", texts: [SourceURL.redacting(name)]) }
            print(object.closed)
        } else if !isUnknown {
            let sources = Readable.count(result.sources, "source", "sources") + ": "
            let what = soft ? Readable.count(result.records, "record", "records") : result.text
            print((soft ? "made stale " : "removed ") + (source == nil ? sources : "") + what)
        }
        let isOfFleet = configuration.fleet == nil && access(settings.cacheFolder + "/cache.purge-place", F_OK) == 0
        if isOfFleet, !common.quiet {
            Console.error(
                "pipectl: warning: a server of a fleet uses this folder, and the other machines are not told: give this "
                    + "command its settings (--config, or --set fleet.redis=…)", .warning)
        }
        for tier in result.unconfirmed {
            let isFleet = tier == .fleet
            Console.error(
                "pipectl: warning: "
                    + (isFleet
                        ? "the other machines are not told, since the server in fleet.redis cannot be reached: purge again"
                        : "the tier \(tier) did not confirm the purge and may still hold what it covers: purge again"),
                .warning)
        }
        if isUnknown {
            throw CommandFailure(
                .fetchFailed,
                "nothing is stored under `\(SourceURL.redacting(name))` in this folder; `pipectl cache list` shows what is"
            )
        }
    }
}

extension PurgeResult {
    /// `3 records, 2 bodies and 7 variants, 1.2 MB`.
    var text: String {
        [
            Readable.count(records, "record", "records"),
            Readable.count(originals, "body", "bodies") + " and " + Readable.count(variants, "variant", "variants"),
            Readable.bytes(bytes),
        ].joined(separator: ", ")
    }

    func add(to object: inout JSONText) {
        object.add("records", records)
        object.add("originals", originals)
        object.add("variants", variants)
        object.add("bytes", bytes)
        if !unconfirmed.isEmpty { object.add("unconfirmed", texts: unconfirmed.map(\.description)) }
    }
}
