public import ArgumentParser
public import Pipeline

/// Options that select sources by their stored names: a normalized URL, or `file:` and an absolute path.
struct SourceOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Select only sources whose complete name matches; `*` matches any text, `?` one character, `[abc]` one of these characters.",
            valueName: "pattern"))
    var source: String?
    @Option(help: ArgumentHelp("Select only sources whose name begins with this URL or path.", valueName: "prefix"))
    var prefix: String?
    @Option(
        help: ArgumentHelp("Select only sources on exactly this host, with any scheme and port.", valueName: "host"))
    var host: String?

    var isEmpty: Bool { source == nil && prefix == nil && host == nil }

    func validate() throws {
        guard prefix == nil || host == nil else {
            throw ValidationError("--prefix and --host cannot be combined, because a prefix contains the host")
        }
    }

    func filter() throws(PipelineError) -> SourceFilter {
        var filter = SourceFilter()
        filter.pattern = source
        filter.selection = try Self.selection(prefix: prefix, host: host)
        return filter
    }

    /// Returns the selection for a prefix or host, or nil if neither is given.
    static func selection(prefix: String?, host: String?) throws(PipelineError) -> SourceSelection? {
        if let prefix { return try SourceSelection(prefix: prefix) }
        return try host.map { text throws(PipelineError) in try SourceSelection(host: text) }
    }
}

/// The source argument of a command with one source.
struct SourceArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "An http(s) URL, a file, NAME:PATH of baseURLs, or a path of the server (/variant/..., or of a grammar).",
            valueName: "source"), completion: .file())
    var text: String

    /// Rejects `-`, which other programs read as stdin. A source must be a URL or a file, because results are cached
    /// under its identity.
    func validate() throws {
        guard text == "-" else { return }
        throw ValidationError(
            "pictures cannot be read from standard input; give an http(s) URL or a file (for a file named -, write ./-)"
        )
    }
}

extension EntryTier: ExpressibleByArgument {}
extension ListRequest.Order: ExpressibleByArgument {}
