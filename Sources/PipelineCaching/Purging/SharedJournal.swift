import HTTPCaching
import Synchronization

/// The journal of stores that are purged together. Any thread may use it.
final class SharedJournal: Sendable {
    private let last = Atomic<UInt64>(0)
    private let journal = Mutex(PurgeJournal())

    /// The current mark, for work that begins now.
    var mark: PurgeMark { PurgeMark(last.load(ordering: .acquiring)) }

    /// Records a purge, or a purge of everything if `selection` is nil. Call this before anything is removed.
    ///
    /// - Parameter clock: a clock reading that the mark must not precede.
    func record(
        _ selection: EntrySelection?, _ kinds: PurgeJournal.Kinds = .all, clock: PurgeMark = PurgeMark(0)
    ) {
        journal.withLock { journal in
            let mark = journal.tick(clock)
            if let selection { journal.record(selection, kinds, at: mark) } else { journal.recordAll(at: mark) }
            last.store(mark.rawValue, ordering: .releasing)
        }
    }

    /// Calls `PurgeJournal.confirm`.
    func confirm(_ selection: EntrySelection) { journal.withLock { $0.confirm(selection) } }

    /// Calls `PurgeJournal.isCurrent`.
    func isCurrent(
        _ names: [String], source: String?, _ kinds: PurgeJournal.Kinds = .all, since mark: PurgeMark
    ) -> Bool {
        // The marks are almost always equal, and then no lock is needed.
        mark == self.mark || journal.withLock { $0.isCurrent(names, source: source, kinds, since: mark) }
    }

    /// Returns the part of an entry that is newer than the last purge of its name. Returns nil if no part is left.
    /// Marks are Unix times.
    func unpurgedPart(of found: FoundEntry) -> FoundEntry? {
        journal.withLock { journal in
            func isLeft(_ time: Double, _ names: String...) -> Bool {
                names.allSatisfy { name in journal.lastPurge(of: name).map { PurgeMark(seconds: time) > $0 } ?? true }
            }
            switch found {
            case .records(let records):
                let left = records.filter { isLeft($0.response.responseTime, $0.source, $0.digest) }
                return left.isEmpty ? nil : .records(left)
            case .variant(let entry, _):
                return isLeft(entry.created, entry.originalDigest) ? found : nil
            // This entry is valid, because the bytes under a digest never change, and only a record that was not purged
            // leads to them.
            case .original:
                return found
            }
        }
    }
}
