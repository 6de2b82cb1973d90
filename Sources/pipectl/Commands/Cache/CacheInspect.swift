import ArgumentParser
import Glibc
import Pipeline

struct CacheInspect: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Show the stored entries of a source, a key or a digest (a prefix of a key or digest is enough).",
        discussion: """
            For a source, shows its records with the header fields that the origin sent, and all its variants. For a key or a \
            digest, shows the matching variants and the records of their originals. If nothing is found, the exit code is 4.
            """)

    @Argument(
        help: ArgumentHelp("A source as for `get`, or at least four digits of a key or digest.", valueName: "key"))
    var key: String
    @Flag(help: "Print JSON Lines, one object per entry.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let settings = common.collectedSettings()
        let found = try common.withStore { store in
            let found = try store.inspect(key)
            guard found.isEmpty, let source = try? NamedSource(key, settings).storedName() else { return found }
            let hosts = try settings.configuration(only: ["hosts"]).pipeline.fetch.hosts
            return try store.inspect(SourceNames(hosts).name(source))
        }
        guard !found.isEmpty else {
            throw CommandFailure(
                .fetchFailed,
                "nothing is stored under `\(SourceURL.redacting(key))`; use `pipectl cache list` to list all entries")
        }
        let now = Double(time(nil))
        for entry in found.originals.map(ListedEntry.original) + found.variants.map(ListedEntry.variant) {
            print(EntryText.line(entry, json: json, now: now))
            if !json { for detail in EntryText.details(entry, now: now) { print("    " + TextTable.plain(detail)) } }
        }
    }
}
