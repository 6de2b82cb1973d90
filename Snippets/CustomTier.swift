// A cache tier of your own, behind memory and the cache folder.

import CacheTierConformance
import Pipeline

// snippet.tier
/// Keeps entries in dictionaries; stands for a client of a service that several machines share.
actor SharedTier: CacheTier {
    nonisolated let name = TierName("shared")
    private var records: [String: [OriginalRecord]] = [:]
    private var originals: [String: [UInt8]] = [:]
    private var variants: [String: (entry: VariantEntry, body: [UInt8])] = [:]
    /// The digests that each source has had, by which a purge finds its variants.
    private var digests: [String: Set<String>] = [:]
    private var mark = PurgeMark(1)
    private var purged: [String: PurgeMark] = [:]
    /// Changes with an older mark are void, whatever they belong to.
    private var floor = PurgeMark(0)
    // snippet.end

    // snippet.find
    func find(_ key: EntryKey, _ part: EntryPart) -> FoundEntry? {
        switch key {
        case .records(let source):
            return records[source].map { .records($0) }
        case .original(let digest):
            return originals[digest].map { .original(part == .body ? .bytes($0) : nil) }
        case .variant(let key, let original):
            guard let found = variants[key], found.entry.originalDigest == original else { return nil }
            return .variant(found.entry, body: part == .body ? found.body : nil)
        }
    }
    // snippet.end

    // snippet.store
    func store(_ changes: [EntryChange]) {
        for change in changes {
            switch change.kind {
            case .original(let record, let body):
                guard isCurrent(change.mark, [record.source, record.digest]) else { continue }
                put(record)
                switch body {
                case .bytes(let bytes): originals[record.digest] = bytes
                case .file(let file): originals[record.digest] = file.bytes()
                case nil: break
                }
            case .freshened(let record):
                let isThere = records[record.source]?.contains { $0.response.selecting == record.response.selecting }
                if isThere == true, isCurrent(change.mark, [record.source, record.digest]) { put(record) }
            case .removedRecord(let source, let selecting):
                let kept = records[source, default: []].filter { $0.response.selecting != selecting }
                records[source] = kept.isEmpty ? nil : kept
            case .variant(let entry, let body, let source):
                guard isCurrent(change.mark, [entry.originalDigest, source ?? ""]) else { continue }
                variants[entry.key] = (entry, body)
                if let source { digests[source, default: []].insert(entry.originalDigest) }
            }
        }
    }

    private func put(_ record: OriginalRecord) {
        let others = records[record.source, default: []].filter { $0.response.selecting != record.response.selecting }
        records[record.source] = ([record] + others).sorted { $0.response.responseTime > $1.response.responseTime }
        digests[record.source, default: []].insert(record.digest)
    }

    private func isCurrent(_ mark: PurgeMark, _ names: [String]) -> Bool {
        mark >= floor && names.allSatisfy { mark >= purged[$0] ?? floor }
    }
    // snippet.end

    // snippet.purge
    func purge(_ selection: PurgeSelection) -> PurgeResult {
        mark = PurgeMark(mark.rawValue + 1)
        var result = PurgeResult()
        result.mark = mark
        let sources = digests.keys.filter {
            selection.sources.contains($0) || selection.matching?.contains($0) == true
        }
        result.digests = sources.reduce(into: selection.digests) { $0.formUnion(digests[$1] ?? []) }
        for source in sources {
            result.records += records.removeValue(forKey: source)?.count ?? 0
            digests[source] = nil
        }
        let kept = Set(records.values.joined().map(\.digest))
        for digest in result.digests.subtracting(kept) where originals.removeValue(forKey: digest) != nil {
            result.originals += 1
        }
        for (key, found) in variants where result.digests.contains(found.entry.originalDigest) {
            variants[key] = nil
            result.variants += 1
        }
        for name in selection.sources.union(sources).union(result.digests) { purged[name] = mark }
        // The names that a prefix covers are not known in advance: it voids all work begun before.
        if selection.matching != nil { floor = mark }
        return result
    }

    func purges(since mark: PurgeMark?) -> PurgeLog {
        guard let mark else { return PurgeLog(mark: self.mark, names: []) }
        if mark < floor { return PurgeLog(mark: self.mark, names: nil) }
        return PurgeLog(mark: self.mark, names: Set(purged.filter { $0.value > mark }.keys))
    }
    // snippet.end

    func statistics() -> TierStatistics {
        var statistics = TierStatistics()
        statistics.originals.entries = originals.count
        statistics.variants.entries = variants.count
        statistics.records.entries = records.count
        return statistics
    }
}

// snippet.check
for check in CacheTierConformance.checks {
    for violation in await CacheTierConformance.violations(of: check, by: SharedTier()) { print(violation) }
}
// snippet.end

// snippet.place
let tier = SharedTier()
var placement = TierPlacement(tier)
placement.deadline = .milliseconds(100)
placement.calls = 32

var configuration = PipelineConfiguration()
configuration.tiers = [placement]
let pipeline = try ImagePipeline(configuration)
_ = try await pipeline.image(for: "samples/originals/dusk-2mp.jpg", recipe: "thumbnail:300,webp")
await pipeline.shutdown()
// snippet.end

// snippet.restart
let next = try ImagePipeline(configuration)
let response = try await next.image(for: "samples/originals/dusk-2mp.jpg", recipe: "thumbnail:300,webp")
print(response.outcome == Outcome(tier.name) ? "the tier had it" : response.outcome.rawValue)
await next.shutdown()
// snippet.end
