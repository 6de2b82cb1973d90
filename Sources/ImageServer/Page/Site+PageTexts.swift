import Pipeline
import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

extension Site {
    /// Returns the recipe steps and the sample pictures as JSON.
    ///
    /// - Parameter showsFolders: Whether the client may see the names of folders.
    func catalogText(showsFolders: Bool) async -> String {
        let entries = Catalog.entries(with: await pipeline.libraries())
        let names = await pipeline.pictureNames()
        var json = JSONText()
        json.add("version", PageFile.version)
        json.add("unsigned", settings.signature.allowUnsigned || settings.signature.servesThisMachine)
        json.add(
            "samples",
            raw: JSONText.list(PageSample.all) { sample, json in
                json.add("name", sample.name)
                json.add("title", sample.title)
                json.add("path", sample.path)
            })
        if showsFolders {
            json.add("systems", texts: writingGrammars.map(\.name))
            let names = rules.baseURLs.folders.map { JSONText.quoted($0.name) }
            json.add("folders", raw: "[" + names.joined(separator: ",") + "]")
        }
        json.add(
            "presets",
            raw: JSONText.list(rules.presets.names) { name, json in
                json.add("name", name)
                json.add("recipe", rules.presets[name])
            })
        json.add(
            "entries",
            raw: JSONText.list(entries) { entry, json in
                json.add("name", entry.token)
                json.add("role", entry.role.rawValue)
                json.add("grammar", entry.grammar)
                json.add("summary", entry.summary)
                json.add("ranges", entry.ranges)
                json.add("example", entry.example)
                json.add("words") { json in
                    // In the grammar, NAME represents the name of a mask or an overlay.
                    let values = entry.words.merging(names[entry.token].map { ["NAME": $0] } ?? [:]) { $1 }
                    for (key, words) in values.sorted(by: { $0.key < $1.key }) {
                        json.add(key, texts: words)
                    }
                }
            })
        return json.closed
    }

    /// Returns the size of each tier and the most recently stored variants, as JSON.
    func cacheText() async -> String {
        let memory = pipeline.memoryStatistics
        let disk = await pipeline.diskStatistics()
        var tiers = [
            ("memory", "variants", memory.variants), ("memory", "originals", memory.originals),
            ("memory", "records", memory.records),
        ]
        if let disk {
            tiers += [
                ("disk", "variants", disk.variants), ("disk", "originals", disk.originals),
                ("disk", "records", disk.records),
            ]
        }
        let counted = tiers.count
        for (name, records, originals, variants) in pipeline.fartherLookups {
            let parts = [("variants", variants), ("originals", originals), ("records", records)]
            for (kind, lookups) in parts {
                var counters = StoreCounters()
                (counters.hits, counters.misses) = (lookups.hits, lookups.misses)
                tiers.append((name.description, kind, counters))
            }
        }
        let recent = await pipeline.recentVariants(Self.recentCount)
        var json = JSONText()
        json.add(
            "tiers",
            raw: JSONText.list(Array(tiers.enumerated())) { numbered, json in
                let tier = numbered.element
                json.add("tier", tier.0)
                json.add("kind", tier.1)
                json.add("hits", tier.2.hits)
                json.add("misses", tier.2.misses)
                // Tiers shared with other machines are not measured here.
                if numbered.offset >= counted { return }
                json.add("bytes", tier.2.bytes)
                json.add("budget", tier.2.budget)
                json.add("entries", tier.2.entries)
                json.add("evictions", tier.2.evictions)
            })
        json.add(
            "recent",
            raw: JSONText.list(recent) { variant, json in
                let entry = variant.entry
                json.add("key", entry.key)
                json.add("original", entry.originalDigest)
                json.add("recipe", entry.recipe)
                json.add(
                    "source",
                    variant.source.map(SourceURL.hidingSecrets)
                        ?? PageSample.all.first { $0.digest == entry.originalDigest }?.source)
                json.add("type", entry.mediaType)
                json.add("width", entry.width)
                json.add("height", entry.height)
                json.add("bytes", entry.length)
                json.add("firstBytes", entry.firstLength)
                json.add("created", entry.created)
            })
        return json.closed
    }

    private static let recentCount = 24

    /// The mounted grammars that can write URLs.
    private var writingGrammars: [any URLWritingGrammar] {
        settings.pictureRoutes.compactMap { $0 as? any URLWritingGrammar }
    }

    /// Returns the targets of `?recipe=RECIPE&source=SOURCE` in the mounted grammars. If a grammar cannot express the
    /// recipe, its object contains the reason instead.
    func urlsText(_ request: ServerRequest) -> String {
        let given = Self.query(of: request.target)
        let (recipe, source) = (given["recipe"] ?? "", given["source"] ?? "")
        return JSONText.list(writingGrammars) { grammar, json in
            json.add("system", grammar.name)
            do {
                let target = try grammar.target(
                    Recipe(recipe, presets: rules.presets), source: source, expiry: nil)
                // The server must understand the URL, for example because it lists the width.
                var asked = request
                asked.target = target
                let routed = try read(asked, grammar, checksSecret: false)
                // `identifiers` of IIIF may give the name a different meaning.
                guard try self.source(of: routed).text == self.source(named: source).text || !(grammar is IIIFGrammar)
                else { throw Problem(.invalidSource, "`identifiers` gives this name to another source") }
                json.add("target", target)
            } catch {
                let problem = (error as? Problem).map { $0.detail ?? $0.kind.title }
                json.add("problem", problem ?? "\(error)")
            }
        }
    }

    /// Returns the decoded parameters of a target's query.
    private static func query(of target: String) -> [Substring: String] {
        var given: [Substring: String] = [:]
        for pair in target.drop(while: { $0 != "?" }).dropFirst().split(separator: "&") {
            let name = pair.prefix { $0 != "=" }
            given[name] = percentDecoded(pair.dropFirst(name.count + 1)).map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        return given
    }

    /// Returns a part of the sorted listing of a folder for `?folder=NAME:PATH`, starting after `&after=FILE`. Names
    /// are percent-encoded as in sources.
    func folderText(_ target: String) async throws(Problem) -> String {
        let given = Self.query(of: target)
        let resolved = try rules.baseURLs.resolved(given["folder"] ?? "")
        guard let folder = resolved.folder else {
            throw Problem(.unknownPath, "`baseURLs` does not contain this folder")
        }
        let path = String(resolved.text.dropFirst(folder.name.count + 1))
        let after = percentDecoded(given["after"] ?? "") ?? []
        let found = await Self.folderReader.run {
            Result { () throws(LocalFile.Failure) in
                try folder.entries(of: path, after: after, most: Self.namesOnPage)
            }
        }
        let (entries, isAll): ([OpenFolder.Entry], Bool)
        do throws(LocalFile.Failure) { (entries, isAll) = try found.get() } catch {
            throw Problem(.unknownPath, error.logged ?? error.message)
        }
        let paths = entries.map { OpenFolder.canonical($0.name) }
        var json = JSONText()
        json.add(
            "entries",
            raw: JSONText.list(Array(zip(entries, paths))) { entry, json in
                json.add("name", String(decoding: entry.0.name, as: UTF8.self))
                json.add("source", resolved.text + (path.isEmpty ? "" : "/") + entry.1)
                json.add("isFolder", entry.0.isFolder)
            })
        json.add("after", isAll ? nil : paths.last)
        return json.closed
    }

    private static let namesOnPage = 200
    /// The thread that reads folders. Reading blocks, and a folder with a million files takes a long time to read.
    private static let folderReader = OwnedThreads(count: 1)
}

extension JSONText {
    /// Returns a JSON array with one object per value.
    fileprivate static func list<Value>(_ values: [Value], _ add: (Value, inout JSONText) -> Void) -> String {
        let objects = values.map { value in
            var json = JSONText()
            add(value, &json)
            return json.closed
        }
        return "[" + objects.joined(separator: ",") + "]"
    }
}
