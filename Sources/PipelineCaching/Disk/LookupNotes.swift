import PipelineSupport
import Synchronization

/// Records counters and accesses in memory until a writer stores them in the index, so that a hit does not write.
final class LookupNotes: Sendable {
    struct Row: Sendable, Hashable {
        var tier: DiskTable
        var id: Int
    }

    /// The accesses of a row that are not stored in its columns yet.
    struct Access: Sendable {
        var count = 0
        /// The eviction policy's clock at the last access.
        var clock = 0.0
        /// The time of the last access in Unix seconds.
        var time = 0.0

        fileprivate mutating func add(_ other: Access) {
            count = min(255, count + other.count)
            clock = max(clock, other.clock)
            time = max(time, other.time)
        }
    }

    private struct State {
        var counters = PerTier { _ in StoreCounters() }
        var accesses: [Row: Access] = [:]
        /// Copies of the index's policies after its last transaction. Only their clocks are used.
        var policies = PerTier { _ in GreedyDualSizeFrequency() }
        /// The time of the oldest note in Unix seconds, or 0 if there are no notes.
        var since = 0.0
    }

    /// The number of seconds after which notes are stored even if they are few.
    private static let longest = 30.0
    /// The maximum number of rows with accesses, as a multiple of `limit`, while the index cannot be written.
    private static let mostBatches = 4
    private let limit: Int
    private let state = Mutex(State())
    private let due = Atomic<Bool>(false)
    /// The number of times that a damaged database was set aside. It can be read without the store's lock.
    let rebuilds = Atomic<Int>(0)

    /// - Parameter limit: the number of rows with accesses at which the notes are due to be stored.
    init(limit: Int) { self.limit = limit }

    /// Whether the notes are numerous or old enough to be stored now.
    var isDue: Bool { due.load(ordering: .relaxed) }

    /// The counters that are not stored yet.
    var counters: PerTier<StoreCounters> { state.withLock { $0.counters } }

    func note(_ tier: DiskTable, _ change: (inout StoreCounters) -> Void) {
        update(at: SystemClock.unix.seconds) { change(&$0.counters[tier]) }
    }

    /// Records an access to a row.
    func use(_ tier: DiskTable, row: Int) {
        let now = SystemClock.unix.seconds
        update(at: now) { state in
            var entry = EvictionEntry(size: 1, cost: 1)
            state.policies[tier].touch(&entry, uses: 1)
            let access = Access(count: 1, clock: entry.since, time: now)
            state.accesses[Row(tier: tier, id: row), default: Access()].add(access)
        }
    }

    private func update(at now: Double, _ body: (inout State) -> Void) {
        let isDue = state.withLock { state in
            if state.since == 0 { state.since = now }
            body(&state)
            return state.accesses.count >= limit || now - state.since > Self.longest
        }
        if isDue { due.store(true, ordering: .relaxed) }
    }

    // MARK: Storing

    /// Takes the counters so that the transaction that is beginning can store them.
    func takeCounters() -> PerTier<StoreCounters> {
        state.withLock { state in
            defer { state.counters = PerTier { _ in StoreCounters() } }
            return state.counters
        }
    }

    /// Adds the counters back after their transaction failed.
    func add(_ counters: PerTier<StoreCounters>) {
        state.withLock { state in for tier in DiskTable.allCases { state.counters[tier].add(counters[tier]) } }
    }

    /// Takes all accesses in the order of their rows, so that rows on one page are written together.
    func takeAccesses() -> [(row: Row, access: Access)] {
        due.store(false, ordering: .relaxed)
        let drained = state.withLock { state in
            defer {
                state.accesses = [:]
                state.since = 0
            }
            return state.accesses
        }
        return drained.map { (row: $0, access: $1) }.sorted {
            ($0.row.tier.number, $0.row.id) < ($1.row.tier.number, $1.row.id)
        }
    }

    /// Adds back accesses that could not be stored. Drops them if there are too many.
    func add(_ accesses: ArraySlice<(row: Row, access: Access)>) {
        state.withLock { state in
            guard state.accesses.count + accesses.count <= Self.mostBatches * limit else { return }
            for (row, access) in accesses { state.accesses[row, default: Access()].add(access) }
        }
    }

    /// Takes the accesses of one row so that the current transaction can store or delete them.
    func takeAccess(_ tier: DiskTable, row: Int) -> Access? {
        state.withLock { $0.accesses.removeValue(forKey: Row(tier: tier, id: row)) }
    }

    /// Drops all accesses, because their rows are gone.
    func dropAccesses() { state.withLock { $0.accesses = [:] } }

    /// Adopts the clocks after a transaction.
    func update(_ policies: PerTier<GreedyDualSizeFrequency>) { state.withLock { $0.policies = policies } }
}
