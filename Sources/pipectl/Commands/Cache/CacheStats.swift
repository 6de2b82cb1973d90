import ArgumentParser
import Pipeline
import PipelineSupport

struct CacheStats: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Show the entries, bytes, budget, hits and savings of each disk tier.",
        discussion: """
            The counters cover all processes since the folder was created. Each process writes its counters in batches and on \
            exit, so the counters of a running server can lag behind.

            stale: stored responses that were no longer fresh, so the origin was contacted. refused: entries that exceeded the \
            budget or did not fit on the disk. saved: the bytes served by hits, and the time that was originally needed to fetch \
            them (originals) or to render them (variants, CPU time).
            """)

    @Flag(help: "Print one JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let (statistics, space, folder) = try common.withStore { store in
            (try store.statistics(), store.freeSpace(), store.folder)
        }
        let tiers = [
            ("originals", statistics.originals), ("variants", statistics.variants), ("records", statistics.records),
        ]
        if json {
            var object = JSONText()
            for (name, counters) in tiers {
                object.add(name) { inner in
                    for (key, value) in Self.numbers(counters) { inner.add(key, value) }
                    inner.add("millisecondsSaved", raw: JSONText.thousandths(counters.millisecondsSaved))
                }
            }
            object.add("folder", folder)
            object.add("freeBytes", space?.free)
            object.add("freeSpace", space?.floor)
            return print(object.closed)
        }
        var table = TextTable([
            ("tier", .left), ("entries", .right), ("bytes", .right), ("budget", .right), ("hits", .right),
            ("misses", .right), ("stale", .right), ("stored", .right), ("evicted", .right), ("refused", .right),
            ("corrupt", .right), ("saved", .right), ("time saved", .right),
        ])
        for (name, counters) in tiers {
            table.add([
                name, "\(counters.entries)", Readable.bytes(counters.bytes), Readable.bytes(counters.budget),
                "\(counters.hits)", "\(counters.misses)", "\(counters.stale)", "\(counters.insertions)",
                "\(counters.evictions)", "\(counters.refused)", "\(counters.corrupt)",
                Readable.bytes(counters.bytesSaved), Readable.duration(seconds: counters.millisecondsSaved / 1000),
            ])
        }
        print(table.text, terminator: "")
    }

    private static func numbers(_ counters: StoreCounters) -> [(String, Int)] {
        [
            ("entries", counters.entries), ("bytes", counters.bytes), ("budget", counters.budget),
            ("hits", counters.hits), ("misses", counters.misses), ("stale", counters.stale),
            ("insertions", counters.insertions), ("evictions", counters.evictions), ("refused", counters.refused),
            ("corrupt", counters.corrupt), ("bytesSaved", counters.bytesSaved),
        ]
    }
}
