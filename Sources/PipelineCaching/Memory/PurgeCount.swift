import Synchronization

/// Counts purges of a store, or of stores that are purged together, and remembers the names of the last ones, so that
/// a purge voids the in-flight work it concerns and no other.
final class PurgeCount: Sendable {
    private struct Purge {
        var generation: UInt64
        /// nil for everything.
        var names: Set<String>?
        /// Further sources.
        var matching: SourceSelection?
    }

    private struct State {
        /// Oldest first.
        var recent: [Purge] = []
        /// Of work older than this it is not known which purges concern it.
        var floor: UInt64 = 0
    }

    /// The number of purges remembered, and of names in all of them; older work is void.
    private static let (mostPurges, mostNames) = (64, 10_000)
    private static let workInFlight = PurgeSelection.workInFlight.sources
    private let count = Atomic<UInt64>(0)
    private let state = Mutex(State())

    var generation: UInt64 { count.load(ordering: .acquiring) }

    /// Counts a purge of these names (nil: of everything); to be called before anything is removed.
    func begin(_ names: Set<String>?, matching: SourceSelection? = nil) {
        state.withLock { state in
            let generation = count.load(ordering: .relaxed) + 1
            state.recent.append(Purge(generation: generation, names: names, matching: matching))
            var known = state.recent.reduce(0) { $0 + ($1.names?.count ?? 0) }
            while state.recent.count > Self.mostPurges || known > Self.mostNames {
                let forgotten = state.recent.removeFirst()
                known -= forgotten.names?.count ?? 0
                state.floor = forgotten.generation
            }
            count.store(generation, ordering: .releasing)
        }
    }

    /// Whether none of these names was purged since a generation.
    ///
    /// - Parameter source: one of the names; nil if it is not known, and then any purge by selection counts.
    func isCurrent(_ names: [String], source: String?, since generation: UInt64) -> Bool {
        // Almost always, and without a lock.
        if generation == count.load(ordering: .acquiring) { return true }
        return state.withLock { state in
            if generation < state.floor { return false }
            return state.recent.reversed().prefix { $0.generation > generation }.allSatisfy { purge in
                guard let purged = purge.names else { return false }
                if let matching = purge.matching, source.map(matching.contains) ?? true { return false }
                return !names.contains(where: purged.contains) && purged.isDisjoint(with: Self.workInFlight)
            }
        }
    }
}
