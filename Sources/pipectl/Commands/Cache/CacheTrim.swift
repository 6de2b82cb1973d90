import ArgumentParser
import Pipeline
import PipelineSupport

struct CacheTrim: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trim", abstract: "Remove old, unused or excess bodies and variants.",
        discussion: """
            --older-than and --unused-for remove entries that match either; --source, --prefix and --host restrict them to some \
            sources, or, used alone, remove all entries of those sources. Then each tier is reduced to --max-entries and --max-bytes, regardless of \
            source, in the order of the eviction policy. Records are kept, so that a 304 can still validate \
            variants; `pipectl cache purge` removes records as well.

            Examples:
              pipectl cache trim --unused-for 30d
              pipectl cache trim --older-than 12h --host example.org --tier variants
              pipectl cache trim --max-bytes 500MB
            """)

    @Option(
        help: ArgumentHelp("Remove entries stored longer ago than this: 90s, 15m, 12h, 30d.", valueName: "duration"))
    var olderThan: String?
    @Option(help: ArgumentHelp("Remove entries last used longer ago than this.", valueName: "duration"))
    var unusedFor: String?
    @OptionGroup var sources: SourceOptions
    @Option(help: ArgumentHelp("Maximum number of entries in each tier.", valueName: "count"))
    var maxEntries: Int?
    @Option(help: ArgumentHelp("Maximum size of each tier: 4096, 500MB, 2GiB.", valueName: "size"))
    var maxBytes: String?
    @Option(help: "Trim only this tier.")
    var tier: EntryTier?
    @Flag(help: "Print one JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard olderThan != nil || unusedFor != nil || !sources.isEmpty || maxEntries != nil || maxBytes != nil else {
            throw ValidationError(
                "no limit was given; use for example --older-than 30d or --max-bytes 1GB. To remove everything, use `pipectl cache clear`"
            )
        }
        for text in [olderThan, unusedFor].compactMap({ $0 }) where Self.seconds(text) == nil {
            throw ValidationError("`\(text)` is not a duration; write a number followed by s, m, h or d, such as 12h")
        }
        if let maxEntries, maxEntries < 0 {
            throw ValidationError("--max-entries must be 0 or greater, not \(maxEntries)")
        }
        if let maxBytes, Self.bytes(maxBytes) == nil {
            throw ValidationError("`\(maxBytes)` is not a size in bytes; write a number such as 4096, 500MB or 2GiB")
        }
    }

    func run() throws {
        var request = TrimRequest()
        request.olderThan = olderThan.flatMap(Self.seconds).map { .seconds(min($0, 1e15)) }
        request.unusedFor = unusedFor.flatMap(Self.seconds).map { .seconds(min($0, 1e15)) }
        request.sources = try sources.filter()
        request.maxEntries = maxEntries
        request.maxBytes = maxBytes.flatMap(Self.bytes)
        if let tier { request.tiers = [tier] }
        let result = try common.withStore { try $0.trim(request) }
        if json {
            print(
                JSONText(["originals": result.originals, "variants": result.variants, "bytes": result.bytes]).json)
        } else {
            let originals = Readable.count(result.originals, "original", "originals")
            let variants = Readable.count(result.variants, "variant", "variants")
            print("removed \(originals) and \(variants), \(Readable.bytes(result.bytes))")
        }
    }

    static func seconds(_ text: String) -> Double? {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Double(text.dropLast()), number >= 0,
            number.isFinite
        else { return nil }
        return number * unit
    }

    private static func bytes(_ text: String) -> Int? {
        guard case .bytes(let bytes)? = SettingSize(text) else { return nil }
        return bytes
    }
}
