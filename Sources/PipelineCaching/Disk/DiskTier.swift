import HTTPCaching
package import PipelineSupport
import Synchronization

/// A cache folder as a tier. Look-ups and stores run on separate threads because they block on the disk.
///
/// Several processes may use the folder at the same time. `isCurrent` says whether another process has purged anything.
package final class DiskTier: MarkedTier {
    package let name = TierName.disk
    package let store: DiskStore
    /// The threads for look-ups, which requests wait for.
    let readers: OwnedThreads
    /// The thread for writes. SQLite allows one writer.
    private let writer = OwnedThreads(count: 1)
    /// The size in bytes of the longest body that is read into memory.
    private let longestInMemory: Int
    /// The generation up to which this process knows the purges.
    private let known: Atomic<UInt64>
    /// Until this time, the process may rely on the purges that it knows, even if the folder cannot report newer ones.
    private let unknownUntil = Atomic<UInt64>(0)
    private let catching = Mutex<Void>(())

    /// Opens the folder.
    package init(
        folder: String, configuration: DiskStoreConfiguration, readers: OwnedThreads, longestInMemory: Int = 4 << 20
    ) throws(StoreError) {
        store = try DiskStore(folder: folder, configuration: configuration)
        self.readers = readers
        self.longestInMemory = longestInMemory
        // Do not use the hint, because it may be ahead of the last commit. If the generation cannot be read, the first
        // look-up reads it.
        known = Atomic((try? store.generationNow()) ?? 0)
    }

    // MARK: CacheTier

    package func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        try await readers.result { [self] () throws(StoreError) in
            switch (key, part) {
            case (.records(let source), _):
                let records = try store.records(source: source)
                return records.isEmpty ? nil : .records(records)
            case (.original(let digest), .body):
                return try store.originalBody(digest: digest, longest: longestInMemory).map { .original($0) }
            case (.original(let digest), .description):
                return try store.holdsOriginal(digest: digest) ? .original(nil) : nil
            case (.variant(let key, let original), .body):
                return try store.variant(key: key, of: original).map { .variant($0.entry, body: $0.body) }
            case (.variant(let key, let original), .description):
                return try store.variantEntry(key: key, of: original).map { .variant($0, body: nil) }
            }
        }
    }

    package func store(_ changes: [EntryChange]) async throws(StoreError) {
        try await writer.result { [self] () throws(StoreError) in
            if changes.count == 1 { return try apply(changes[0]) }
            try store.inOneTransaction { () throws(StoreError) in for change in changes { try apply(change) } }
        }
    }

    private func apply(_ change: EntryChange) throws(StoreError) {
        let generation = change.mark.rawValue
        switch change.kind {
        case .original(let record, let body):
            _ = try store.storeOriginal(record, content: body, generation: generation)
        case .freshenedRecord(let record):
            try store.freshen(record, generation: generation)
        case .removedRecord(let record):
            try store.removeRecord(source: record.source, selection: record.selection)
        case .variant(let entry, let body, let source):
            try store.storeVariant(entry, body: body, generation: generation, source: source)
        }
    }

    /// Purges on the writer's thread, so that the threads for look-ups stay available.
    package func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult {
        try await writer.result { [self] () throws(StoreError) in
            var result = try store.purge(
                sources: selection.sources, digests: selection.digests, mode: selection.mode)
            if let matching = selection.matching { result.add(try store.purge(matching, mode: selection.mode)) }
            return result
        }
    }

    /// Trims on the writer's thread, like purges.
    package func trim(_ request: TrimRequest) async throws(StoreError) -> PurgeResult {
        try await writer.result { [store] () throws(StoreError) in try store.trim(request) }
    }

    /// Marks all records on the writer's thread, like purges.
    package func markAllForValidation() async throws(StoreError) -> UInt64 {
        try await writer.result { [store] () throws(StoreError) in try store.markAllForValidation() }
    }

    package func texts() async throws(StoreError) -> (byName: [String: String], holdsRecords: Bool) {
        try await writer.result { [store] () throws(StoreError) in try store.texts() }
    }

    /// Stores strings on the writer's thread, like purges, so that earlier purges are in the index first.
    package func store(texts: [String: String?]) async throws(StoreError) {
        try await writer.result { [store] () throws(StoreError) in try store.store(texts: texts) }
    }

    package func clear() async throws(StoreError) -> PurgeResult {
        try await writer.result { [store] () throws(StoreError) in try store.clear() }
    }

    package func resize(originals: Int, variants: Int) async throws(StoreError) {
        try await writer.result { [store] () throws(StoreError) in
            try store.resize(originals: originals, variants: variants)
        }
    }

    package func purges(since mark: PurgeMark?) async throws(StoreError) -> PurgeLog {
        try await readers.result { [self] () throws(StoreError) in
            guard let mark else { return PurgeLog(mark: PurgeMark(try store.generationNow()), names: []) }
            return try store.purges(since: mark.rawValue)
        }
    }

    package func statistics() async throws(StoreError) -> TierStatistics {
        try await readers.result { [store] () throws(StoreError) in try store.statistics() }
    }

    // MARK: Other processes

    package func wasPurgedElsewhere(_ selection: EntrySelection) -> Bool { false }

    /// Does nothing, because `Tiers` does this together with removing entries from memory.
    package func catchUp() async {}

    /// The mark up to which this process knows the purges. Read it before any look-up.
    package var mark: PurgeMark { PurgeMark(known.load(ordering: .acquiring)) }

    /// The number of nanoseconds for which a process relies on the purges that it knows after the folder could not
    /// report others.
    private static let unknownLifetime: UInt64 = 100_000_000

    /// Whether this process knows all purges by other processes. Does not block.
    package var isCurrent: Bool {
        let hint = store.generationHint ?? 0
        if hint == known.load(ordering: .acquiring) { return true }
        return hint == 0 && SystemClock.coarseNanoseconds < unknownUntil.load(ordering: .relaxed)
    }

    /// Reads the purges by all processes since this process last read them.
    ///
    /// - Parameter forget: removes purged entries from memory before the process counts as current.
    package func catchUp(_ forget: @escaping @Sendable (PurgeLog) -> Void) async throws(StoreError) {
        if isCurrent { return }
        try await readers.result { [self] () throws(StoreError) in
            try catching.withLock { _ throws(StoreError) in
                if isCurrent { return }
                let before = known.load(ordering: .relaxed)
                let log = Result { () throws(StoreError) in try store.purges(since: before) }
                // If the folder fails or is read-only, memory is still used, and the folder is read again soon.
                if store.generationHint == 0 {
                    unknownUntil.store(SystemClock.coarseNanoseconds + Self.unknownLifetime, ordering: .relaxed)
                }
                let purged = try log.get()
                guard purged.mark.rawValue != before else { return }
                forget(purged)
                known.store(purged.mark.rawValue, ordering: .releasing)
            }
        }
    }

    /// Writes pending counters and closes the files, after all queued work.
    package func close() async {
        await writer.run { [store] in store.close() }
        await writer.stopAndWait()
    }
}
