import HTTPCaching
import PipelineSupport
import Synchronization

/// Entries that are waiting to be stored. Look-ups find them in the meantime, because memory may be too small for them,
/// or disabled.
///
/// Each entry has the mark that memory had when the work on the entry began. After a later purge of its names, look-ups
/// no longer find it, and the store will refuse it.
final class WaitingEntries: Sendable {
    enum Key: Hashable, Sendable {
        case variant(String)
        case body(String)
        case records(source: ByteString)
    }

    enum Item: Sendable {
        case variant(Tiers.StoredVariant)
        case body(EntryBody)
        /// A record, or nil if the record of this selection is being removed.
        case record(OriginalRecord?, OriginalRecord.Selection)
    }

    private struct Waiting {
        var item: Item
        var mark: PurgeMark
        /// The names under which a purge covers the entry, beginning with its source.
        var names: [String]
        var serial: UInt64
    }

    private struct State {
        var serial: UInt64 = 0
        /// The waiting entries, oldest first.
        var items: [Key: [Waiting]] = [:]
    }

    private let state = Mutex(State())
    private let purges: SharedJournal

    init(_ purges: SharedJournal) { self.purges = purges }

    /// Adds an item.
    ///
    /// - Parameters:
    ///   - mark: the mark that memory had when the work began.
    ///   - source: the source of the item.
    /// - Returns: a closure that removes the item again.
    func add(_ item: Item, under key: Key, of source: String, mark: PurgeMark) -> @Sendable () -> Void {
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
                Waiting(item: item, mark: mark, names: names, serial: state.serial))
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
        // Release it outside the lock, because dropping the last reference to a file that was not stored frees its
        // blocks.
        withExtendedLifetime(gone) {}
    }

    private func items(_ key: Key) -> [Item] {
        let kinds: PurgeJournal.Kinds = if case .variant = key { .variants } else { .originals }
        return state.withLock { $0.items[key] ?? [] }
            .filter { purges.isCurrent($0.names, source: $0.names.first, kinds, since: $0.mark) }.map(\.item)
    }

    func variant(_ key: String) -> Tiers.StoredVariant? {
        guard case .variant(let variant)? = items(.variant(key)).last else { return nil }
        return variant
    }

    func body(_ digest: String) -> EntryBody? {
        guard case .body(let body)? = items(.body(digest)).last else { return nil }
        return body
    }

    /// Returns the waiting changes to a source's records, oldest first. Read them before the tiers, so that a change
    /// that is stored in the meantime is found in both places instead of being missed.
    func records(of source: String) -> RecordChanges {
        RecordChanges(items: items(.records(source: ByteString(source))))
    }

    /// Changes that a tier does not show yet.
    struct RecordChanges {
        fileprivate var items: [Item]

        /// Returns the records that a source will have once the changes are stored.
        func applied(to stored: [OriginalRecord]) -> [OriginalRecord] {
            var records = stored
            for case .record(let record, let selection) in items {
                records.removeAll { $0.selection == selection }
                if let record { records.insert(record, at: 0) }
            }
            return records
        }
    }
}
