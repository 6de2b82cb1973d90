import ArgumentParser
import Glibc
import Pipeline

struct CacheList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List originals and variants in the order you choose.",
        discussion: """
            Orders: stored (originals, then variants, as they were stored), size (largest first), age (oldest first), \
            last-use (least recently used first), hits (most used first), cost (slowest to fetch or render first).

            Examples:
              pipectl cache list --sort size --limit 20
              pipectl cache list --host example.org --tier variants
              pipectl cache list --source '*/avatars/*' --recipe 'thumbnail:64*' --json
            """)

    @Option(help: "Sort order.")
    var sort = ListRequest.Order.stored
    @Flag(help: "Reverse the order.")
    var reverse = false
    @Option(help: "List only this tier.")
    var tier: EntryTier?
    @OptionGroup var sources: SourceOptions
    @Option(
        help: ArgumentHelp(
            "List only variants whose canonical recipe matches this pattern; same syntax as --source.",
            valueName: "pattern")
    )
    var recipe: String?
    @Option(help: ArgumentHelp("List at most this many entries.", valueName: "count"))
    var limit: Int?
    @Flag(help: "Print JSON Lines, one object per entry.")
    var json = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit must be 0 or greater, not \(limit)") }
        if tier == .originals, recipe != nil {
            throw ValidationError("--recipe cannot be combined with --tier originals, because originals have no recipe")
        }
    }

    func run() throws {
        var request = ListRequest()
        request.order = sort
        request.isReversed = reverse
        if let tier { request.tiers = [tier] }
        request.sources = try sources.filter()
        request.recipe = recipe
        request.limit = limit
        let now = Double(time(nil))
        var failure: FileError?
        try common.withStore { store in
            try store.list(request) { page in
                let text = page.map { EntryText.line($0, json: json, now: now) + "\n" }.joined()
                do throws(FileError) { try Console.write(Array(text.utf8)) } catch {
                    // The reader of the output has exited, so stop listing.
                    failure = error
                }
                return failure == nil
            }
        }
        if let failure { throw failure }
    }
}
