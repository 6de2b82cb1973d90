import Glibc
import Synchronization

/// What look-ups leave to be written: counts, and which entries were used. Whoever writes takes it over.
final class LookupNotes: Sendable {
    /// A use of a row.
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

    /// Uses and seconds after which somebody should take them over, though nobody stores anything.
    private static let (most, longest) = (4096, 30.0)
    private let state = Mutex(State())
    private let due = Atomic<Bool>(false)

    /// Whether it is time to take all of them over.
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
    /// Makes what look-ups have noted its own, to be written with what is stored next.
    func take(_ notes: LookupNotes) {
        let taken = notes.take()
        if taken.isEmpty { return }
        for tier in DiskTier.allCases where taken.counters[tier] != StoreCounters() {
            note(tier) { $0.add(taken.counters[tier]) }
        }
        for use in taken.uses { touch(use.tier, row: use.row, written: use.written, now: use.time) }
    }
}
