import HTTPCaching
import PipelineSupport
import Synchronization
/// Stores in the background: a bounded queue in front of a store that may be slow, or stall altogether.
///
/// Queueing holds a lock for one append and never waits for the disk. Writes beyond the bound are dropped and counted.
/// One thread writes, since SQLite has one writer. Small waiting writes share a transaction, which costs half as much
/// as writing them one by one. Writes stay in order.
final class WriteBehind: Sendable {
    /// One entry to be stored.
    struct Write: Sendable {
        /// Bytes counted against the bound, in addition to `overhead`.
        var bytes: Int
        /// Whether it may share a transaction with others; a long write would make other writers wait for all of them.
        var isSmall: Bool
        /// Stores it, alone or together with others.
        var store: @Sendable () throws(StoreError) -> Void
        /// Stores it alone and counts a failure.
        var storeAlone: @Sendable () -> Void
        /// Runs once, after the write was stored, failed or was dropped.
        var end: @Sendable () -> Void
    }

    /// Bytes charged per write in addition to its own: a freshened record has none, but takes memory while it waits.
    static let overhead = 1_024
    /// The maximum number of small writes in one transaction, for which other writers wait.
    static let mostTogether = 16

    private struct Queue {
        var writes: [Write] = []
        var head = 0
        var bytes = 0
        var dropped = 0

        var isEmpty: Bool { head == writes.count }

        mutating func take() -> [Write] {
            guard !isEmpty else { return [] }
            var taken = [writes[head]]
            head += 1
            while taken[0].isSmall, taken.count < WriteBehind.mostTogether, !isEmpty, writes[head].isSmall {
                taken.append(writes[head])
                head += 1
            }
            if isEmpty || head >= 1_024 {
                writes.removeFirst(head)
                head = 0
            }
            return taken
        }
    }

    private let queue = Mutex(Queue())
    private let thread = OwnedThreads(count: 1)
    private let limit: Int
    private let together: @Sendable ([@Sendable () throws(StoreError) -> Void]) throws(StoreError) -> Void

    /// - Parameters:
    ///   - limit: bytes that may wait.
    ///   - together: runs all of them as one transaction, or fails and stores none of them.
    init(
        limit: Int,
        together: @escaping @Sendable ([@Sendable () throws(StoreError) -> Void]) throws(StoreError) -> Void
    ) {
        self.limit = limit
        self.together = together
    }

    /// Writes dropped because the queue was full.
    var dropped: Int { queue.withLock { $0.dropped } }

    /// Bytes waiting or being written.
    var waiting: Int { queue.withLock { $0.bytes } }

    /// Queues a write; if too much is waiting already, drops it and returns false.
    @discardableResult
    func submit(_ write: Write) -> Bool {
        let isTaken = queue.withLock { queue in
            let bytes = write.bytes + Self.overhead
            guard queue.bytes + bytes <= limit else {
                queue.dropped += 1
                return false
            }
            queue.bytes += bytes
            queue.writes.append(write)
            return true
        }
        guard isTaken else {
            write.end()
            return false
        }
        thread.submit { [self] in storeSome() }
        return true
    }

    /// Runs a job once everything queued so far is stored or has failed; the caller bounds the number of jobs.
    func afterwards(_ job: @escaping @Sendable () -> Void) { thread.submit(job) }

    /// Runs a job once everything queued so far is stored or has failed, and returns its result.
    func run<Result: Sendable>(_ job: @escaping @Sendable () -> Result) async -> Result { await thread.run(job) }

    /// Waits until everything queued is stored; blocks.
    func drain() { thread.drain() }

    /// Drains, then stops the thread.
    func stop() { thread.stop() }

    /// Runs once per queued write; finds nothing left if an earlier run took that write along.
    private func storeSome() {
        let writes = queue.withLock { $0.take() }
        if writes.isEmpty { return }
        var areStored = false
        if writes.count > 1 {
            do throws(StoreError) {
                try together(writes.map(\.store))
                areStored = true
            } catch {
                // Nothing was stored. Each write is retried alone, so that only one that fails is lost and counted.
            }
        }
        for write in writes {
            if !areStored { write.storeAlone() }
            write.end()
        }
        let bytes = writes.reduce(0) { $0 + $1.bytes + Self.overhead }
        queue.withLock { $0.bytes -= bytes }
    }
}

/// Entries waiting to be stored, which look-ups find meanwhile: memory may be too small for them, or switched off.
///
/// Each has the purge generation of its memory tier. After a later purge it is no longer found, and the store will
/// refuse it.
final class WaitingEntries: Sendable {
    enum Key: Hashable, Sendable {
        case variant(String)
        case body(Digest)
        case records(source: String)
    }

    enum Item: Sendable {
        case variant(CacheTiers.StoredVariant)
        case body(EntryBody)
        /// nil means that the record of this selection is removed.
        case record(OriginalRecord?, selecting: [String: String?])
    }

    private struct Waiting {
        var item: Item
        var generation: UInt64
        var serial: UInt64
    }

    private struct State {
        var serial: UInt64 = 0
        /// Oldest first.
        var items: [Key: [Waiting]] = [:]
    }

    private let state = Mutex(State())

    /// - Returns: a closure that removes the item again.
    func add(_ item: Item, under key: Key, generation: UInt64) -> @Sendable () -> Void {
        let serial = state.withLock { state in
            state.serial += 1
            state.items[key, default: []].append(Waiting(item: item, generation: generation, serial: state.serial))
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

    private func items(_ key: Key, _ generation: UInt64) -> [Item] {
        state.withLock { $0.items[key] ?? [] }.filter { $0.generation == generation }.map(\.item)
    }

    func variant(_ key: String, generation: UInt64) -> CacheTiers.StoredVariant? {
        guard case .variant(let variant)? = items(.variant(key), generation).last else { return nil }
        return variant
    }

    func body(_ digest: Digest, generation: UInt64) -> EntryBody? {
        guard case .body(let body)? = items(.body(digest), generation).last else { return nil }
        return body
    }

    /// The records that a source will have once all waiting writes are stored; `stored` reads those of the store.
    func merged(
        _ source: String, generation: UInt64, stored: () -> [OriginalRecord]
    ) -> [OriginalRecord] {
        // Copied before the store is read: a record stored in between is then in both, and none is missed.
        let waiting = items(.records(source: source), generation)
        var records = stored()
        for case .record(let record, let selecting) in waiting {
            records.removeAll { $0.response.selecting == selecting }
            if let record { records.insert(record, at: 0) }
        }
        return records
    }
}
