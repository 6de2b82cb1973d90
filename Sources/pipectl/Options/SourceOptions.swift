public import ArgumentParser
public import Pipeline

/// Selects the sources a command applies to by their stored names: a normalised URL, or `file:` and an absolute path.
struct SourceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only sources whose whole name matches: `*` any text, `?` one character, `[abc]` one of these.",
            valueName: "pattern"))
    var source: String?
    @Option(help: ArgumentHelp("Only sources whose name begins with this URL or path.", valueName: "prefix"))
    var prefix: String?
    @Option(help: ArgumentHelp("Only sources on exactly this host, whatever scheme and port.", valueName: "host"))
    var host: String?

    var isEmpty: Bool { source == nil && prefix == nil && host == nil }

    func validate() throws {
        guard prefix == nil || host == nil else {
            throw ValidationError("give either --prefix or --host; a prefix already contains its host")
        }
    }

    func filter() throws(PipelineError) -> SourceFilter {
        var filter = SourceFilter()
        filter.pattern = source
        filter.selection = try Self.selection(prefix: prefix, host: host)
        return filter
    }

    /// The selection for a prefix or host; nil if neither is given.
    static func selection(prefix: String?, host: String?) throws(PipelineError) -> SourceSelection? {
        if let prefix { return try SourceSelection(prefix: prefix) }
        return try host.map { text throws(PipelineError) in try SourceSelection(host: text) }
    }
}

extension EntryTier: ExpressibleByArgument {}
extension ListRequest.Order: ExpressibleByArgument {}
