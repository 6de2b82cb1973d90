import HTTPCaching
import PipelineSupport
import Synchronization

/// One tier behind memory: its queue, its deadline and its breaker. Nothing in it throws: trouble is counted, logged
/// once, and turned into a miss.
///
/// The folder is called directly: its calls cannot be cancelled, and its threads bound how many are in progress. Any
/// other tier is called with a deadline, and what it returns is checked, since it may be another machine's.
final class TierLink: Sendable {
    let tier: any CacheTier
    let queue: WriteBehind
    /// nil for the folder.
    private let placement: TierPlacement?
    private let gate: TierGate
    private let folder: DiskTier?
    /// The mark up to which this process knows the tier's purges.
    private let known = Mutex<PurgeMark?>(nil)
    private let recentPurges = Mutex(RecentPurges())
    private let lookups = Mutex(PerTier { _ in LookupCounters() })
    private let hitTime = Mutex<Double?>(nil)

    init(_ folder: DiskTier, queueBytes: Int, warn: @escaping @Sendable (String) -> Void) {
        let gate = TierGate(name: folder.name, placement: nil) { warn($0) }
        (tier, placement, self.folder, self.gate) = (folder, nil, folder, gate)
        queue = WriteBehind(limit: queueBytes) { changes throws(StoreError) in
            try await folder.store(changes)
        } failed: {
            gate.note($0)
        }
    }

    init(_ placement: TierPlacement, warn: @escaping @Sendable (String) -> Void) {
        let gate = TierGate(name: placement.tier.name, placement: placement, warn: warn)
        (tier, self.placement, folder, self.gate) = (placement.tier, placement, nil, gate)
        let tier = placement.tier
        queue = WriteBehind(limit: placement.queueBytes) { changes throws(StoreError) in
            try await gate.call(within: placement.storeDeadline) { () async throws(StoreError) in
                try await tier.store(changes)
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

    /// The mark up to which this process knows the tier's purges; to be taken before anything is looked up.
    var mark: PurgeMark { folder?.mark ?? tier.currentMark ?? known.withLock { $0 } ?? PurgeMark(0) }

    /// Milliseconds that a look-up of a variant takes which finds it, on average over the last ones; nil if none has.
    var millisecondsOfHit: Double? { hitTime.withLock(\.self) }

    /// Bytes of the longest body that is stored in one call with others: the folder stores them in one transaction, for
    /// which other writers wait, and other tiers at the same time.
    var longestOfSeveral: Int { isFolder ? DiskStoreConfiguration().inlineLimit : 1_000_000 }

    /// The entry, or what is known of it; nil if the tier has none, or none that can be relied on.
    ///
    /// - Parameter isCounted: false for what is no look-up of a request, or its second one.
    func find(_ key: EntryKey, _ part: EntryPart, isCounted: Bool = true) async -> FoundEntry? {
        let began = SystemClock.monotonic.seconds
        let found: FoundEntry?
        do throws(StoreError) { found = try await asked(key, part) } catch {
            // The tier may have the entry, so do not count a miss.
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

    private func asked(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        guard let placement else { return try await tier.find(key, part) }
        let found = try await gate.call(within: placement.deadline) { [tier] () async throws(StoreError) in
            try await tier.find(key, part)
        }
        guard let found else { return nil }
        if !EntryCheck.agrees(found, with: key, part) {
            throw StoreError(
                .damaged, "the tier \(name) returned another entry than the one asked for, or a changed one")
        }
        return recentPurges.withLock { $0.left(of: found) }
    }

    /// No longer takes entries from before a purge from the tier, whether that purge succeeds or not; to be called
    /// before any tier is purged, or a look-up could copy an entry to one that was.
    ///
    /// - Parameter now: Unix seconds.
    func distrust(_ selection: PurgeSelection, now: Double) async {
        guard placement != nil else { return }
        var known = selection
        for source in selection.sources where tier.currentMark == nil {
            guard case .records(let records)? = await find(.records(source: source), .description) else { continue }
            known.digests.formUnion(records.map(\.digest))
        }
        recentPurges.withLock { [known] in $0.add(known, now: now) }
    }

    /// No longer takes any entry from before now.
    func distrustAll(now: Double) {
        if placement != nil { recentPurges.withLock { $0.addAll(now: now) } }
    }

    /// Purges after everything queued before; a tier that knows its mark at once need not wait, since it refuses what a
    /// purge has overtaken.
    ///
    /// - Parameter now: Unix seconds.
    func purge(_ selection: PurgeSelection, now: Double) async throws(StoreError) -> PurgeResult {
        if let placement, tier.currentMark != nil {
            let purged = await Result { [tier] () async throws(StoreError) in
                try await gate.call(within: placement.storeDeadline) { () async throws(StoreError) in
                    try await tier.purge(selection)
                }
            }
            // The digests stand for variants, which a soft purge leaves alone.
            let left = PurgeSelection(digests: selection.mode == .soft ? [] : selection.digests)
            recentPurges.withLock { recent in
                if case .success = purged { recent.confirm(selection) } else { recent.add(left, now: now) }
            }
            return try purged.get()
        }
        let result = await queue.run { [tier, placement, gate] in
            await Result(of: { () async throws(StoreError) in
                guard let placement else { return try await tier.purge(selection) }
                return try await gate.call(within: placement.storeDeadline) { () async throws(StoreError) in
                    try await tier.purge(selection)
                }
            })
        }
        let purged = try result.get()
        if placement != nil { recentPurges.withLock { $0.add(PurgeSelection(digests: purged.digests), now: now) } }
        return purged
    }

    /// Reads what others have purged from a tier that is not the folder since this process last looked.
    func catchUp(_ forget: (PurgeLog) -> Void) async {
        guard let placement else { return }
        let before = known.withLock { $0 }
        do throws(StoreError) {
            // At hand, and no sign that the tier works.
            let isAtHand = tier.currentMark != nil
            let log =
                isAtHand
                ? try await tier.purges(since: before)
                : try await gate.call(within: placement.deadline) { [tier] () async throws(StoreError) in
                    try await tier.purges(since: before)
                }
            if let before, log.mark == before { return }
            if before != nil, !log.isEmpty { forget(log) }
            // Two of these may run at once; the later mark stays.
            known.withLock { $0 = max($0 ?? log.mark, log.mark) }
        } catch {
            gate.note(error)
        }
    }

    func note(_ error: StoreError) { gate.note(error) }
}

/// Whether what a tier returned is what was asked for. A body is compared with its digest.
enum EntryCheck {
    static func agrees(_ found: FoundEntry, with key: EntryKey, _ part: EntryPart) -> Bool {
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

/// What this process has purged from a tier, in case the tier returns it all the same: its removal may have failed, the
/// tier may answer with what it had, or another machine may have stored it again. When there are too many, those that the
/// tier has confirmed are forgotten, or else all of them by distrusting everything from before.
struct RecentPurges: Sendable {
    /// Sources and digests.
    private var names: [String: (time: Double, isConfirmed: Bool)] = [:]
    private var selections: [(selection: SourceSelection, time: Double, isConfirmed: Bool)] = []
    private var floor = -Double.infinity

    private static let mostNames = 4_096
    private static let mostSelections = 64

    /// - Parameter now: Unix seconds.
    mutating func add(_ selection: PurgeSelection, now: Double) {
        for name in selection.sources.union(selection.digests) { names[name] = (now, false) }
        if let matching = selection.matching { selections.append((matching, now, false)) }
        if isFull {
            names = names.filter { !$0.value.isConfirmed }
            selections.removeAll(where: \.isConfirmed)
        }
        if isFull { addAll(now: now) }
    }

    mutating func addAll(now: Double) { (names, selections, floor) = ([:], [], now) }

    private var isFull: Bool { names.count > Self.mostNames || selections.count > Self.mostSelections }

    /// Notes that the tier has confirmed a purge.
    mutating func confirm(_ selection: PurgeSelection) {
        for name in selection.sources.union(selection.digests) { names[name]?.isConfirmed = true }
        for at in selections.indices where selections[at].selection == selection.matching {
            selections[at].isConfirmed = true
        }
    }

    /// An entry without what is older than the purge of its name; nil if nothing is left.
    func left(of found: FoundEntry) -> FoundEntry? {
        switch found {
        case .records(let records):
            let left = records.filter { $0.response.responseTime > max(purged($0.source), purged($0.digest)) }
            return left.isEmpty ? nil : .records(left)
        case .variant(let entry, _):
            return entry.created > purged(entry.originalDigest) ? found : nil
        // The bytes under a digest are what they are; only a record that was not purged leads to them.
        case .original:
            return found
        }
    }

    private func purged(_ name: String) -> Double {
        selections.reduce(max(floor, names[name]?.time ?? -.infinity)) { time, purge in
            purge.selection.contains(name) ? max(time, purge.time) : time
        }
    }
}
