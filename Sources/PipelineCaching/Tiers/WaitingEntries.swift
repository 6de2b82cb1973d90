import HTTPCaching
import PipelineSupport
import Synchronization

/// Entries waiting to be stored, which look-ups find meanwhile: memory may be too small for them, or switched off.
///
/// Each has the purge generation of its memory tier. After a later purge of its names it is no longer found, and the
/// store will refuse it.
final class WaitingEntries: Sendable {
    enum Key: Hashable, Sendable {
        case variant(String)
        case body(String)
        case records(source: ByteString)
    }

    enum Item: Sendable {
        case variant(Tiers.StoredVariant)
        case body(EntryBody)
        /// nil means that the record of this selection is removed.
        case record(OriginalRecord?, selecting: [String: String?])
    }

    private struct Waiting {
        var item: Item
        var generation: UInt64
        /// The names whose purge makes it void, its source first.
        var names: [String]
        var serial: UInt64
    }

    private struct State {
        var serial: UInt64 = 0
        /// Oldest first.
        var items: [Key: [Waiting]] = [:]
    }

    private let state = Mutex(State())
    private let originals: PurgeCount
    private let variants: PurgeCount

    /// - Parameters:
    ///   - originals: purges that concern records and bodies.
    ///   - variants: purges that concern variants.
    init(originals: PurgeCount, variants: PurgeCount) { (self.originals, self.variants) = (originals, variants) }

    /// - Parameters:
    ///   - generation: that of its memory tier when the work began.
    ///   - source: where it came from.
    /// - Returns: a closure that removes the item again.
    func add(_ item: Item, under key: Key, of source: String, generation: UInt64) -> @Sendable () -> Void {
        var names = [source]
        switch (item, key) {
        case (.variant(let variant), _): names += [variant.entry.key, variant.entry.originalDigest]
        case (.body, .body(let digest)): names.append(digest)
        case (.record(let record, _), _): if let record { names.append(record.digest) }
        case (.body, _): break
        }
        let serial = state.withLock { state in
            state.serial += 1
            state.items[key, default: []].append(
                Waiting(item: item, generation: generation, names: names, serial: state.serial))
            return state.serial
        }
        return { [self] in end(key, serial) }
    }

    private func end(_ key: Key, _ serial: UInt64) {
        let gone = state.withLock { state -> Waiting? in
            guard let at = state.items[key]?.firstIndex(where: { $0.serial == serial }) else { return nil }
            defer { if state.items[key]?.isEmpty == true { state.items[key] = nil } }
            return state.items[key]?.remove(at: at)
        }
        // Released outside the lock: dropping the last reference to a file that was not stored frees its blocks.
        withExtendedLifetime(gone) {}
    }

    private func items(_ key: Key) -> [Item] {
        let purges = if case .variant = key { variants } else { originals }
        return state.withLock { $0.items[key] ?? [] }
            .filter { purges.isCurrent($0.names, source: $0.names.first, since: $0.generation) }.map(\.item)
    }

    func variant(_ key: String) -> Tiers.StoredVariant? {
        guard case .variant(let variant)? = items(.variant(key)).last else { return nil }
        return variant
    }

    func body(_ digest: String) -> EntryBody? {
        guard case .body(let body)? = items(.body(digest)).last else { return nil }
        return body
    }

    /// The waiting changes to a source's records, oldest first. To be read before the tiers are: a change stored in
    /// between is then found in both, and none is missed.
    func records(of source: String) -> RecordChanges {
        RecordChanges(items: items(.records(source: ByteString(source))))
    }

    /// Changes that a tier does not show yet.
    struct RecordChanges {
        fileprivate var items: [Item]

        /// The records that a source will have once the changes are stored.
        func applied(to stored: [OriginalRecord]) -> [OriginalRecord] {
            var records = stored
            for case .record(let record, let selecting) in items {
                records.removeAll { $0.response.selecting == selecting }
                if let record { records.insert(record, at: 0) }
            }
            return records
        }
    }
}
