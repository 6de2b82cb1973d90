import HTTPCaching
import PipelineSupport
import Synchronization

/// A tier behind memory, with its queue, its deadline and its breaker. Calls other than `purge` do not throw: an error
/// is counted, logged once, and turned into a miss.
///
/// The folder is called without a deadline, because its calls cannot be cancelled, and its threads limit the number of
/// calls in progress. Entries of all other tiers are checked, because another machine may have written them.
final class TierLink: Sendable {
    let tier: any CacheTier
    let queue: WriteBehind
    private let gate: TierGate
    private let folder: DiskTier?
    /// The tier if it has marks, or nil if it is a program's own tier. In that case, the journal determines which
    /// entries a purge has invalidated.
    private let marked: (any MarkedTier)?
    /// The purges by this process. The tier may still return the removed entries: the removal may have failed, the tier
    /// may return an old entry, or another machine may have stored the entry again. Marks are Unix times.
    private let journal: SharedJournal
    /// The sources with a response that the tier failed to store. The tier may still have an earlier response.
    private let outdated = Mutex(PurgeJournal())
    private let lookups = Mutex(PerTier { _ in LookupCounters() })
    private let hitTime = Mutex<Double?>(nil)
    /// The stores in progress. A store that took too long counts until it ends.
    private let stores: Stores

    private final class Stores: Sendable {
        let count = Atomic<Int>(0)
    }

    /// - Parameter placement: the limits, or nil if the tier is the folder.
    init(
        _ tier: any CacheTier, _ placement: TierPlacement?, queueBytes: Int,
        warn: @escaping @Sendable (String) -> Void
    ) {
        let gate = TierGate(name: tier.name, placement: placement, warn: warn)
        let (marked, journal, stores) = (tier as? any MarkedTier, SharedJournal(), Stores())
        (self.tier, folder, self.gate) = (tier, placement == nil ? tier as? DiskTier : nil, gate)
        (self.marked, self.journal, self.stores) = (marked, journal, stores)
        queue = WriteBehind(limit: queueBytes) { changes throws(StoreError) in
            let due = marked == nil ? changes.filter { $0.isCurrent(in: journal) } : changes
            if due.isEmpty { return }
            try await gate.call(within: \.storeDeadline) { () async throws(StoreError) in
                stores.count.add(1, ordering: .relaxed)
                defer { stores.count.subtract(1, ordering: .relaxed) }
                try await tier.store(due)
            }
        } failed: {
            gate.note($0)
        }
    }

    var name: TierName { tier.name }
    var isFolder: Bool { folder != nil }
    var failures: Int { gate.failures }

    var counters: TierCounters {
        let lookups = lookups.withLock(\.self)
        return TierCounters(
            name: name, records: lookups.records, originals: lookups.originals, variants: lookups.variants,
            failures: gate.failures, problem: gate.problem, skips: gate.skips, calls: gate.calls,
            queuedBytes: queue.waiting, dropped: queue.dropped)
    }

    /// The mark up to which this process knows the tier's purges. Read it before any look-up.
    var mark: PurgeMark { marked?.mark ?? journal.mark }

    /// Returns whether a machine that has applied a purge has also applied it in this tier.
    func wasPurgedElsewhere(_ selection: EntrySelection) -> Bool { marked?.wasPurgedElsewhere(selection) ?? false }

    /// The average time of recent look-ups that found a variant, in milliseconds, or nil if there were no such
    /// look-ups.
    var millisecondsOfHit: Double? { hitTime.withLock(\.self) }

    /// The size in bytes of the longest body that is stored in one call with others. The folder stores them in one
    /// transaction, for which other writers wait. Other tiers store them concurrently.
    var longestOfSeveral: Int { folder?.store.configuration.inlineLimit ?? 1_000_000 }

    /// Returns the entry or its description. Returns nil if the tier has no entry, or if its entry is not reliable.
    ///
    /// - Parameter isCounted: false if the look-up does not belong to a request, or is the request's second look-up.
    func find(_ key: EntryKey, _ part: EntryPart, isCounted: Bool = true) async -> FoundEntry? {
        let began = SystemClock.monotonic.seconds
        let found: FoundEntry?
        do throws(StoreError) { found = markedInDoubt(try await queryTier(key, part)) } catch {
            // Do not count a miss, because the tier may have the entry.
            gate.note(error)
            return nil
        }
        if !isFolder, case .variant(_, _?)? = found {
            let milliseconds = (SystemClock.monotonic.seconds - began) * 1000
            hitTime.withLock { $0 = $0.map { 0.9 * $0 + 0.1 * milliseconds } ?? milliseconds }
        }
        guard isCounted else { return found }
        let tier: DiskTable =
            switch key {
            case .records: .records
            case .original: .originals
            case .variant: .variants
            }
        lookups.withLock { $0[tier].add(isHit: found != nil) }
        return found
    }

    /// Records that the tier has not stored a change. The tier's earlier records of the source are then validated
    /// before they are used.
    ///
    /// - Parameter now: the current time in Unix seconds.
    func recordMissed(_ change: EntryChange.Kind, now: Double) {
        let (source, time): (String, Double)
        switch change {
        case .original(let record, _), .freshenedRecord(let record):
            (source, time) = (record.source, record.response.responseTime)
        case .removedRecord(let record): (source, time) = (record.source, now)
        case .variant: return
        }
        outdated.withLock { $0.record(EntrySelection(sources: [source]), at: PurgeMark(seconds: time)) }
    }

    private func markedInDoubt(_ found: FoundEntry?) -> FoundEntry? {
        guard case .records(var records)? = found else { return found }
        outdated.withLock { outdated in
            for at in records.indices {
                guard let latest = outdated.lastPurge(of: records[at].source) else { continue }
                if PurgeMark(seconds: records[at].response.responseTime) < latest {
                    records[at].response.isInDoubt = true
                }
            }
        }
        return .records(records)
    }

    private func queryTier(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        let found = try await gate.call(within: \.deadline) { [tier] () async throws(StoreError) in
            try await tier.find(key, part)
        }
        guard !isFolder, let found else { return found }
        if !EntryCheck.matches(found, with: key, part) {
            throw StoreError(
                .damaged, "the tier \(name) returned a different or modified entry")
        }
        return journal.unpurgedPart(of: found)
    }

    /// Ignores entries in the tier that are older than a purge, whether that purge succeeds or not. Call this before
    /// any tier is purged, because otherwise a look-up could copy an entry to a tier that was already purged.
    ///
    /// - Parameter now: the current time in Unix seconds.
    func distrust(_ selection: EntrySelection, now: Double) async {
        if isFolder { return }
        var known = selection
        for source in selection.sources where marked == nil && !source.isEmpty {
            guard case .records(let records)? = await find(.records(source: source), .description) else { continue }
            known.digests.formUnion(records.map(\.digest))
        }
        journal.record(known, clock: PurgeMark(seconds: now))
    }

    /// Ignores entries in the tier that are older than purges that another process made in the cache folder.
    ///
    /// - Parameter now: the current time in Unix seconds.
    func distrust(_ log: PurgeLog, now: Double) {
        if isFolder || marked != nil { return }
        let clock = PurgeMark(seconds: now)
        guard let names = log.names else { return journal.record(nil, clock: clock) }
        if !names.isEmpty { journal.record(EntrySelection(sources: names), clock: clock) }
        for selection in log.selections { journal.record(EntrySelection(matching: selection), clock: clock) }
    }

    /// Ignores all entries that were stored in the tier before now.
    func distrustAll(now: Double) {
        if !isFolder { journal.record(nil, clock: PurgeMark(seconds: now)) }
    }

    /// Purges after all previously queued changes. A tier behind the folder that has marks need not wait, because it
    /// refuses changes that a purge has invalidated.
    ///
    /// - Parameter now: the current time in Unix seconds.
    func purge(_ selection: EntrySelection, now: Double) async throws(StoreError) -> PurgeResult {
        let clock = PurgeMark(seconds: now)
        var asked = selection
        if marked == nil { asked.sources.subtract(EntrySelection.workInFlight.sources) }
        let call = { @Sendable [tier, gate, asked] in
            await Result { () async throws(StoreError) in
                try await gate.call(within: \.storeDeadline) { () async throws(StoreError) in
                    try await tier.purge(asked)
                }
            }
        }
        if isFolder { return try await queue.run(call).get() }
        if marked != nil {
            let purged = await call()
            if case .success = purged {
                journal.confirm(selection)
            } else if selection.mode != .soft {
                // The digests represent variants, which a soft purge does not remove.
                journal.record(EntrySelection(digests: selection.digests), clock: clock)
            }
            return try purged.get()
        }
        if asked.isEmpty {
            await queue.drain()
            return PurgeResult()
        }
        // Record the purge here too, because copies are purged from nearer tiers without `distrust`.
        journal.record(asked, clock: clock)
        let purged = await queue.run { [journal, stores] () -> Result<PurgeResult, StoreError> in
            // The queue is serial, so a store that is still in progress has exceeded its deadline.
            let isStoring = stores.count.load(ordering: .relaxed) > 0
            let purged = await call()
            if case .success(let result) = purged {
                journal.record(EntrySelection(digests: result.digests), clock: clock)
                if isStoring || stores.count.load(ordering: .relaxed) > 0 {
                    // The store may still store purged entries, so the purge is repeated.
                    return .failure(
                        StoreError(.timedOut, "a store operation that exceeded its deadline is still in progress"))
                }
            }
            return purged
        }
        return try purged.get()
    }

    /// Removes copies of this tier's entries from nearer tiers if a purge by another machine covers them.
    func catchUp() async { await marked?.catchUp() }

    func note(_ error: StoreError) { gate.note(error) }
}

/// Checks whether a tier returned what was requested. A body is compared with its digest.
enum EntryCheck {
    static func matches(_ found: FoundEntry, with key: EntryKey, _ part: EntryPart) -> Bool {
        switch (found, key) {
        case (.records(let records), .records(let source)):
            return !records.isEmpty
                && records.allSatisfy {
                    ByteString($0.source) == ByteString(source) && DigestKey($0.digest) != nil && $0.length >= 0
                }
        case (.original(let body), .original(let digest)):
            guard let body else { return part == .description }
            return body.digest() == digest
        case (.variant(let entry, let body), .variant(let key, let original)):
            guard entry.key == key, entry.originalDigest == original else { return false }
            guard let body else { return part == .description }
            return body.count == entry.length && sha256Hex(body) == entry.digest
        default:
            return false
        }
    }
}

extension EntryChange {
    /// Returns whether none of the change's names was purged since its mark.
    fileprivate func isCurrent(in journal: SharedJournal) -> Bool {
        switch kind {
        case .original(let record, _), .freshenedRecord(let record):
            journal.isCurrent([record.source, record.digest], source: record.source, since: mark)
        case .variant(let entry, _, let source):
            journal.isCurrent([entry.originalDigest] + [source].compactMap(\.self), source: source, since: mark)
        case .removedRecord: true
        }
    }
}
