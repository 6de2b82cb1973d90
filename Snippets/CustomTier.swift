// A custom cache tier behind memory and the cache folder.

import CacheTierConformance
import Pipeline

// snippet.tier
/// Keeps entries in dictionaries. A real tier would be a client of a service that several machines share.
actor SharedTier: CacheTier {
    nonisolated let name = TierName("shared")
    private var records: [String: [OriginalRecord]] = [:]
    private var originals: [String: [UInt8]] = [:]
    private var variants: [String: (entry: VariantEntry, body: [UInt8])] = [:]
    /// The digests of each source's originals, by which a purge finds their variants.
    private var digests: [String: Set<String>] = [:]
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
                put(record)
                switch body {
                case .bytes(let bytes): originals[record.digest] = bytes
                case .file(let file): originals[record.digest] = file.bytes()
                case nil: break
                }
            case .freshenedRecord(let record):
                if records[record.source]?.contains(where: record.hasSameSelection) == true { put(record) }
            case .removedRecord(let record):
                let kept = others(than: record)
                records[record.source] = kept.isEmpty ? nil : kept
            case .variant(let entry, let body, let source):
                variants[entry.key] = (entry, body)
                if let source { digests[source, default: []].insert(entry.originalDigest) }
            }
        }
    }

    private func put(_ record: OriginalRecord) {
        records[record.source] = ([record] + others(than: record)).sorted {
            $0.response.responseTime > $1.response.responseTime
        }
        digests[record.source, default: []].insert(record.digest)
    }

    private func others(than record: OriginalRecord) -> [OriginalRecord] {
        records[record.source, default: []].filter { !$0.hasSameSelection(as: record) }
    }
    // snippet.end

    // snippet.purge
    func purge(_ selection: EntrySelection) -> PurgeResult {
        var result = PurgeResult()
        let sources = digests.keys.filter(selection.contains)
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
        return result
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
placement.maxConcurrentCalls = 32

var configuration = PipelineConfiguration()
configuration.tiers = [placement]
let pipeline = try ImagePipeline(configuration)
_ = try await pipeline.image(for: "samples/originals/dusk-2mp.jpg", recipe: "thumbnail:300,webp")
await pipeline.shutdown()
// snippet.end

// snippet.restart
let next = try ImagePipeline(configuration)
let response = try await next.image(for: "samples/originals/dusk-2mp.jpg", recipe: "thumbnail:300,webp")
print(response.outcome == .init(tier.name) ? "the tier had it" : response.outcome.rawValue)
await next.shutdown()
// snippet.end
