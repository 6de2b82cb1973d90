import Foundation
import HTTPCaching
import PipelineSupport
import Synchronization

@testable import PipelineCaching

/// A second tier, as a program might write one: bodies are files of a folder, everything else is in a dictionary.
final class PlainTier: CacheTier {
    fileprivate struct State {
        var records: [String: [OriginalRecord]] = [:]
        var variants: [String: VariantEntry] = [:]
        /// The digests that each source has had.
        var digests: [String: Set<String>] = [:]
    }

    let name: TierName
    private let folder: String
    private let state = Mutex(State())

    init(folder: String, name: TierName = TierName("plain")) {
        self.folder = folder
        self.name = name
        mkdir(folder, 0o700)
    }

    private func path(_ digest: String) -> String { "\(folder)/plain-\(digest)" }

    private func read(_ digest: String) -> [UInt8]? {
        FileManager.default.contents(atPath: path(digest)).map { [UInt8]($0) }
    }

    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        switch key {
        case .records(let source):
            return state.withLock { $0.records[source] }.map { .records($0) }
        case .original(let digest):
            return read(digest).map { .original(part == .body ? .bytes($0) : nil) }
        case .variant(let key, let original):
            guard let entry = state.withLock({ $0.variants[key] }), entry.originalDigest == original,
                let body = read(entry.digest)
            else { return nil }
            return .variant(entry, body: part == .body ? body : nil)
        }
    }

    func store(_ changes: [EntryChange]) async throws(StoreError) {
        for change in changes {
            switch change.kind {
            case .original(let record, let body):
                put(record, isThere: false)
                if let bytes = body?.read() { try write(bytes, record.digest) }
            case .freshenedRecord(let record):
                put(record, isThere: true)
            case .removedRecord(let record):
                state.withLock { state in
                    state.records[record.source]?.removeAll { $0.hasSameSelection(as: record) }
                    if state.records[record.source]?.isEmpty == true { state.records[record.source] = nil }
                }
            case .variant(let entry, let body, let source):
                state.withLock { state in
                    state.variants[entry.key] = entry
                    if let source { state.digests[source, default: []].insert(entry.originalDigest) }
                }
                try write(body, entry.digest)
            }
        }
    }

    private func put(_ record: OriginalRecord, isThere: Bool) {
        state.withLock { state in
            var all = state.records[record.source] ?? []
            let at = all.firstIndex { $0.hasSameSelection(as: record) }
            guard !isThere || at != nil else { return }
            if let at { all.remove(at: at) }
            all.append(record)
            state.records[record.source] = all.sorted { $0.response.responseTime > $1.response.responseTime }
            state.digests[record.source, default: []].insert(record.digest)
        }
    }

    private func write(_ bytes: [UInt8], _ digest: String) throws(StoreError) {
        if !FileManager.default.createFile(atPath: path(digest), contents: Data(bytes)) {
            throw StoreError(.io, "cannot write", path: path(digest))
        }
    }

    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult {
        let (result, bodies) = state.withLock { state -> (PurgeResult, Set<String>) in
            var result = PurgeResult()
            let sources = state.digests.keys.filter(selection.contains)
            result.digests = sources.reduce(into: selection.digests) { $0.formUnion(state.digests[$1] ?? []) }
            for source in sources {
                result.records += state.records.removeValue(forKey: source)?.count ?? 0
                state.digests[source] = nil
            }
            let before = state.variants.count
            let removed = state.variants.values.filter { result.digests.contains($0.originalDigest) }
            for entry in removed { state.variants[entry.key] = nil }
            result.variants = before - state.variants.count
            let kept = Set(state.records.values.joined().map(\.digest) + state.variants.values.map(\.digest))
            return (result, result.digests.union(removed.map(\.digest)).subtracting(kept))
        }
        for digest in bodies { unlink(path(digest)) }
        return result
    }

    func statistics() async throws(StoreError) -> TierStatistics {
        state.withLock { state in
            var statistics = TierStatistics()
            statistics.records.entries = state.records.values.reduce(0) { $0 + $1.count }
            statistics.variants.entries = state.variants.count
            return statistics
        }
    }
}
