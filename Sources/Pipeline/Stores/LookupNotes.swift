import Glibc
import Synchronization

/// Counters and accesses recorded by look-ups until the next writer merges them into the index.
final class LookupNotes: Sendable {
    /// One access of a row.
    struct Use: Sendable {
        var tier: DiskTier
        var row: Int
        /// `touched` of the row.
        var written: Double
        var time: Double
    }

    struct Taken: Sendable {
        var counters = PerTier { _ in StoreCounters() }
        var uses: [Use] = []
        var isEmpty = true
    }

    private struct State {
        var taken = Taken()
        /// Unix seconds of the first note; 0 without one.
        var since = 0.0
    }

    /// Accesses and seconds after which the notes are merged even if nothing is stored.
    private static let (most, longest) = (4096, 30.0)
    private let state = Mutex(State())
    private let due = Atomic<Bool>(false)

    /// Whether one of these limits is exceeded.
    var isDue: Bool { due.load(ordering: .relaxed) }

    func note(_ tier: DiskTier, _ change: (inout StoreCounters) -> Void) {
        state.withLock { state in
            change(&state.taken.counters[tier])
            state.taken.isEmpty = false
        }
    }

    func use(_ tier: DiskTier, row: Int, written: Double) {
        let now = DiskIndex.now()
        state.withLock { state in
            if state.since == 0 { state.since = now }
            state.taken.uses.append(Use(tier: tier, row: row, written: written, time: now))
            state.taken.isEmpty = false
            if state.taken.uses.count >= Self.most || now - state.since > Self.longest {
                due.store(true, ordering: .relaxed)
            }
        }
    }

    func take() -> Taken {
        due.store(false, ordering: .relaxed)
        return state.withLock { state in
            defer { if !state.taken.isEmpty { state = State() } }
            return state.taken
        }
    }
}

extension DiskIndex {
    /// Merges the notes of look-ups, to be written with the next transaction.
    func take(_ notes: LookupNotes) {
        let taken = notes.take()
        if taken.isEmpty { return }
        for tier in DiskTier.allCases where taken.counters[tier] != StoreCounters() {
            note(tier) { $0.add(taken.counters[tier]) }
        }
        for use in taken.uses { touch(use.tier, row: use.row, written: use.written, now: use.time) }
    }
}
