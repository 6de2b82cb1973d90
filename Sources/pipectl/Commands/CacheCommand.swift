import ArgumentParser
import Glibc
import Pipeline
import Variants

struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Look at the disk tiers, and remove from them.",
        discussion: """
            Examples:
              pipectl cache stats
              pipectl cache inspect https://example.org/photo.jpg
              pipectl cache purge https://example.org/photo.jpg
              pipectl cache trim --unused-for 30d
              pipectl cache verify --repair
            """,
        subcommands: [
            CacheStats.self, CacheList.self, CacheInspect.self, CacheTrim.self, CachePurge.self, CacheClear.self,
            CacheVerify.self,
        ])
}

/// What all the `cache` commands share: the folder's store, without a pipeline around it.
extension CommonOptions {
    func withStore<Value>(_ work: (DiskStore) throws(StoreError) -> Value) throws(CommandFailure) -> Value {
        let settings = try settings()
        let folder = settings.cacheFolder
        let budgets = settings.diskBudgets(folder: folder)
        var configuration = DiskStoreConfiguration()
        configuration.originals = budgets.originals
        configuration.variants = budgets.variants
        do throws(StoreError) {
            let store = try DiskStore(folder: folder, configuration: configuration)
            defer { store.close() }
            return try work(store)
        } catch {
            throw CommandFailure(.cacheUnavailable, error.description)
        }
    }
}

struct CacheStats: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Entries, bytes, budget, hits and evictions of each tier.")

    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let statistics = try common.withStore { store throws(StoreError) in try store.statistics() }
        let tiers = [
            ("originals", statistics.originals), ("variants", statistics.variants), ("records", statistics.records),
        ]
        if json {
            var object = JSONText()
            for (name, counters) in tiers {
                object.add(name) { inner in
                    for (key, value) in Self.numbers(counters) { inner.add(key, value) }
                }
            }
            return print(object.closed)
        }
        var table = TextTable([
            ("tier", .left), ("entries", .right), ("bytes", .right), ("budget", .right), ("hits", .right),
            ("misses", .right), ("stored", .right), ("evicted", .right), ("refused", .right), ("corrupt", .right),
        ])
        for (name, counters) in tiers {
            table.add([
                name, "\(counters.entries)", Readable.bytes(counters.bytes), Readable.bytes(counters.budget),
                "\(counters.hits)", "\(counters.misses)", "\(counters.insertions)", "\(counters.evictions)",
                "\(counters.refused)", "\(counters.corrupt)",
            ])
        }
        print(table.text, terminator: "")
    }

    private static func numbers(_ counters: StoreCounters) -> [(String, Int)] {
        [
            ("entries", counters.entries), ("bytes", counters.bytes), ("budget", counters.budget),
            ("hits", counters.hits), ("misses", counters.misses), ("insertions", counters.insertions),
            ("evictions", counters.evictions), ("refused", counters.refused), ("corrupt", counters.corrupt),
        ]
    }
}

struct CacheList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Originals and variants, in the order they were stored.")

    @Flag(help: "JSON Lines, one object an entry.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        try common.withStore { store throws(StoreError) in
            // A page at a time, so that a million entries list in little memory.
            var position = 0
            while case let page = try store.originals(after: position, limit: 500), let last = page.last {
                for item in page { print(EntryText.line(item, json: json)) }
                position = last.position
            }
            position = 0
            while case let page = try store.variants(after: position, limit: 500), let last = page.last {
                for item in page { print(EntryText.line(item, json: json)) }
                position = last.position
            }
        }
    }
}

struct CacheInspect: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "What is stored under a source, or a key or digest (its beginning will do).")

    @Argument(help: ArgumentHelp("A source, or at least four digits of a key or digest.", valueName: "key"))
    var key: String
    @Flag(help: "JSON Lines, one object an entry.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let found = try common.withStore { store throws(StoreError) in
            let found = try store.inspect(key)
            guard found.isEmpty, let source = ImageSource(key).storedName else { return found }
            return try store.inspect(source)
        }
        guard !found.isEmpty else {
            throw CommandFailure(.fetchFailed, "nothing is stored under `\(key)`; `pipectl cache list` shows what is")
        }
        for item in found.originals {
            print(EntryText.line(item, json: json))
            if !json {
                for field in item.record.response.fields {
                    print("    " + TextTable.plain("\(field.name): \(field.value)"))
                }
            }
        }
        for item in found.variants { print(EntryText.line(item, json: json)) }
    }
}

struct CacheTrim: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trim", abstract: "Remove what is old or long unused.")

    @Option(help: ArgumentHelp("Stored longer ago than this: 90s, 15m, 12h, 30d.", valueName: "duration"))
    var olderThan: String?
    @Option(help: ArgumentHelp("Last used longer ago than this.", valueName: "duration"))
    var unusedFor: String?
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard olderThan != nil || unusedFor != nil else {
            throw ValidationError("give --older-than, --unused-for or both; `cache clear` removes everything")
        }
        for text in [olderThan, unusedFor].compactMap({ $0 }) where Self.seconds(text) == nil {
            throw ValidationError("`\(text)` is no duration; write a number and s, m, h or d, such as 12h")
        }
    }

    func run() throws {
        let now = Double(time(nil))
        let older = olderThan.flatMap(Self.seconds).map { now - $0 }
        let unused = unusedFor.flatMap(Self.seconds).map { now - $0 }
        let result = try common.withStore { store throws(StoreError) in
            var request = TrimRequest()
            request.olderThan = older
            request.unusedSince = unused
            return try store.trim(request)
        }
        if json {
            var object = JSONText()
            object.add("originals", result.originals)
            object.add("variants", result.variants)
            object.add("bytes", result.bytes)
            print(object.closed)
        } else {
            print(
                "removed \(result.originals) originals and \(result.variants) variants, \(Readable.bytes(result.bytes))"
            )
        }
    }

    static func seconds(_ text: String) -> Double? {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Double(text.dropLast()), number >= 0,
            number.isFinite
        else { return nil }
        return number * unit
    }
}

struct CachePurge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Remove a source's records and bodies, and all variants made of it.")

    @Argument(help: ArgumentHelp("An http(s) URL or a file.", valueName: "source"))
    var source: String
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let pipeline = try common.pipeline(try common.settings())
        let outcome: Result<PurgeResult, CommandFailure>
        do throws(PipelineError) {
            outcome = .success(try await pipeline.purge(ImageSource(source)))
        } catch {
            outcome = .failure(CommandFailure(error))
        }
        await pipeline.shutdown()
        let result = try outcome.get()
        if json {
            var object = JSONText()
            object.add("source", source)
            object.add("records", result.records)
            object.add("originals", result.originals)
            object.add("variants", result.variants)
            object.add("bytes", result.bytes)
            print(object.closed)
        } else {
            print(
                "removed \(result.records) records, \(result.originals) bodies and \(result.variants) variants,"
                    + " \(Readable.bytes(result.bytes))")
        }
    }
}

struct CacheClear: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "clear", abstract: "Remove everything.")

    @OptionGroup var common: CommonOptions

    func run() throws {
        _ = try common.withStore { store throws(StoreError) in try store.clear() }
    }
}

struct CacheVerify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read every body and compare the index with the files; exit code 1 on faults.")

    @Flag(help: "Remove what is damaged, and correct the sums.")
    var repair = false
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let report = try common.withStore { store throws(StoreError) in try store.verify(repair: repair) }
        let faults = [
            ("damagedBodies", "damaged bodies", report.damagedBodies),
            ("missingFiles", "missing files", report.missingFiles),
            ("orphanFiles", "files of no entry", report.orphanFiles),
            ("foreignFiles", "foreign files", report.foreignFiles),
            ("abandonedFiles", "abandoned temporary files", report.abandonedFiles),
            ("brokenEntries", "broken entries", report.brokenEntries),
            ("wrongReferences", "wrong reference counts", report.wrongReferences),
            ("wrongSums", "wrong sums", report.wrongSums),
        ]
        if json {
            var object = JSONText()
            object.add("clean", report.isClean)
            object.add("repaired", report.isRepaired)
            object.add("bodiesChecked", report.bodiesChecked)
            for (key, _, count) in faults { object.add(key, count) }
            object.add("indexDamaged", report.isIndexDamaged)
            print(object.closed)
        } else {
            print("checked \(report.bodiesChecked) bodies")
            for (_, name, count) in faults where count > 0 { print("  \(count) \(name)") }
            if report.isIndexDamaged { print("  the index is damaged") }
            print(report.isClean ? "nothing wrong" : report.isRepaired ? "repaired" : "run with --repair to mend this")
        }
        if !report.isClean, !report.isRepaired { throw ExitCode(ProgramExit.itemsFailed.rawValue) }
    }
}

/// Entries as lines for people or as JSON.
private enum EntryText {
    static func line(_ item: ListedOriginal, json: Bool) -> String {
        let record = item.record
        let size = record.header.map { "\($0.width) × \($0.height) \($0.format.rawValue)" } ?? "no image"
        guard json else {
            let body = item.hasBody ? "" : ", no body"
            return "original \(record.digest.prefix(12))  \(record.source)  \(size),"
                + " \(Readable.bytes(record.length))\(body), used \(item.uses) times"
        }
        var object = JSONText()
        object.add("kind", "original")
        object.add("source", record.source)
        object.add("digest", record.digest)
        object.add("bytes", record.length)
        object.add("hasBody", item.hasBody)
        object.add("format", record.header?.format.rawValue)
        object.add("width", record.header?.width)
        object.add("height", record.header?.height)
        object.add("status", record.response.status)
        object.add("uses", item.uses)
        object.add("lastUsed", item.lastUsed)
        object.add("fields") { inner in
            for field in record.response.fields { inner.add(field.name, field.value) }
        }
        return object.closed
    }

    static func line(_ item: ListedVariant, json: Bool) -> String {
        let entry = item.entry
        guard json else {
            return "variant  \(entry.key.prefix(12))  \(entry.recipe)  \(entry.width) × \(entry.height)"
                + " \(entry.format.rawValue), \(Readable.bytes(entry.length)), of \(entry.originalDigest.prefix(12)),"
                + " used \(item.uses) times"
        }
        var object = JSONText()
        object.add("kind", "variant")
        object.add("key", entry.key)
        object.add("recipe", entry.recipe)
        object.add("original", entry.originalDigest)
        object.add("digest", entry.digest)
        object.add("format", entry.format.rawValue)
        object.add("width", entry.width)
        object.add("height", entry.height)
        object.add("bytes", entry.length)
        object.add("costMilliseconds", entry.cost)
        object.add("uses", item.uses)
        object.add("lastUsed", item.lastUsed)
        return object.closed
    }
}
