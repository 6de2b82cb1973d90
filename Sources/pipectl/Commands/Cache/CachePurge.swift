import ArgumentParser
import Pipeline
import PipelineSupport

struct CachePurge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Remove a source's records and bodies, and all variants rendered from it.",
        discussion: """
            Variants are removed even if another source has the same bytes; they are rendered again on demand. A prefix is normalized as \
            a URL and then compared as text (`https://a.example/img` covers `/img.jpg` and `/imgs/1`). A host means exactly \
            that host, with any scheme and port. A tag is a value that the origin sent in Cache-Tag or Surrogate-Key; all records
            are searched for it. If nothing is stored for SOURCE, the exit code is 4. --soft removes nothing: each record is used once more
            and validated in the background, or validated first if its directives require that.

            Examples:
              pipectl cache purge https://example.org/photo.jpg
              pipectl cache purge --prefix https://example.org/albums/7/
              pipectl cache purge --host example.org
              pipectl cache purge --tag product-17 --soft
            """)

    @Argument(help: ArgumentHelp("A source as for `get`, or a name as printed by `list`.", valueName: "source"))
    var source: String?
    @Option(
        help: ArgumentHelp("Purge every source whose name begins with this URL or path.", valueName: "prefix"))
    var prefix: String?
    @Option(help: ArgumentHelp("Purge every http(s) source on exactly this host.", valueName: "host"))
    var host: String?
    @Option(help: ArgumentHelp("Purge every source with this tag in its response.", valueName: "tag"))
    var tag: String?
    @Flag(help: "Make records stale instead of removing anything.")
    var soft = false
    @Flag(help: "Print one JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard [source, prefix, host, tag].count(where: { $0 != nil }) == 1, tag != "" else {
            throw ValidationError(
                "give exactly one of SOURCE, --prefix, --host and --tag; to remove everything, use `pipectl cache clear`"
            )
        }
    }

    func run() async throws {
        let settings = common.collectedSettings()
        let configuration = try settings.configuration()
        try common.existingCache(settings)
        let text = source ?? ""
        let name =
            try source == nil || ImageSource.isStoredName(text) ? text : NamedSource(text, settings).storedName()
        let selection: PurgeSelection =
            if let prefix { try .prefix(prefix) } else if let host { try .host(host) } else if let tag {
                .tags([tag])
            } else {
                // This program interprets the stored name of a file in a server's folder as a path, so select both
                // names.
                PurgeSelection(names: [name, text])
            }
        var isOfFleet = false
        let result = try await common.withPipeline(configuration) { pipeline in
            if configuration.fleet == nil { isOfFleet = await pipeline.isOfFleet() }
            let mode: PurgeMode = soft ? .soft : .hard
            return try await pipeline.purge(selection, mode: mode)
        }
        let isUnknown = source != nil && result.sources == 0
        if json {
            var object = JSONText([
                "source": source.map(SourceURL.redacting), "prefix": prefix.map(SourceURL.redacting), "host": host,
                "tag": tag, "mode": soft ? PurgeMode.soft.rawValue : nil, "sources": result.sources,
            ])
            object.add(result.members)
            if isUnknown { object.add("unknown", texts: [SourceURL.redacting(name)]) }
            print(object.json)
        } else if !isUnknown {
            let sources = Readable.count(result.sources, "source", "sources") + ": "
            let what = soft ? Readable.count(result.records, "record", "records") : result.text
            print((soft ? "made stale " : "removed ") + (source == nil ? sources : "") + what)
        }
        if isOfFleet, !common.quiet {
            Console.error(
                "pipectl: warning: a server in a fleet uses this folder, but this purge is not published to the other machines: run the "
                    + "command with the server's settings (--config, or --set fleet.redis=…)", .warning)
        }
        for tier in result.unconfirmed {
            let isFleet = tier == .fleet
            Console.error(
                "pipectl: warning: "
                    + (isFleet
                        ? "the Redis server (fleet.redis) is unreachable; the next process that uses this folder publishes the purge"
                        : "the tier \(tier) did not confirm the purge; the next process that uses this folder repeats it"),
                .warning)
        }
        if isUnknown {
            throw CommandFailure(
                .fetchFailed,
                "nothing is stored under `\(SourceURL.redacting(name))` in this folder; use `pipectl cache list` to list all entries"
            )
        }
    }
}

extension PurgeResult {
    /// The summary of a purge, for example `3 records, 2 bodies and 7 variants, 1.2 MB`.
    var text: String {
        [
            Readable.count(records, "record", "records"),
            Readable.count(originals, "body", "bodies") + " and " + Readable.count(variants, "variant", "variants"),
            Readable.bytes(bytes),
        ].joined(separator: ", ")
    }

    var members: JSONText.Members {
        [
            "records": records, "originals": originals, "variants": variants, "bytes": bytes,
            "unconfirmed": unconfirmed.isEmpty ? nil : unconfirmed.map(\.description),
        ]
    }
}
