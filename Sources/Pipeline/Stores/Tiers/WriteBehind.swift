import Synchronization
import Variants

/// Stores behind the answer: a bounded queue in front of a store that may be slow, or stall altogether.
///
/// Queueing takes a lock for the time of an append and never waits for the disk. What would exceed the bound is dropped
/// and counted. One thread writes, since SQLite has one writer; small writes that wait go together, which costs half of
/// what they cost one by one. Order is kept.
final class WriteBehind: Sendable {
    /// One thing to be stored.
    struct Write: Sendable {
        /// What it counts for in the bound; its own bookkeeping comes on top.
        var bytes: Int
        /// Whether it may share a transaction with others. What takes long should not: readers would wait for it.
        var isSmall: Bool
        /// Stores it, alone or together with others.
        var store: @Sendable () throws(StoreError) -> Void
        /// Stores it alone, and counts its failure.
        var storeAlone: @Sendable () -> Void
        /// Runs once: after it was stored, failed, or was dropped.
        var end: @Sendable () -> Void
    }

    /// Charged for each write beside its bytes: a freshened record has none, and takes memory while it waits.
    static let overhead = 1_024
    /// Small writes in one transaction: it holds readers of this process up for so long.
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
    ///   - together: runs all of them as one, or fails and leaves nothing of them.
    init(
        limit: Int,
        together: @escaping @Sendable ([@Sendable () throws(StoreError) -> Void]) throws(StoreError) -> Void
    ) {
        self.limit = limit
        self.together = together
    }

    /// Writes dropped because too much waited already.
    var dropped: Int { queue.withLock { $0.dropped } }

    /// Bytes that wait, or are being written.
    var waiting: Int { queue.withLock { $0.bytes } }

    /// Queues a write; false where too much waits already, and it is dropped.
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

    /// Runs a job once everything queued so far is stored or has failed; bounded by who calls.
    func afterwards(_ job: @escaping @Sendable () -> Void) { thread.submit(job) }

    /// Runs a job once everything queued so far is stored or has failed, and returns its result.
    func run<Result: Sendable>(_ job: @escaping @Sendable () -> Result) async -> Result { await thread.run(job) }

    /// Waits until everything queued is stored; blocks.
    func drain() { thread.drain() }

    /// Drains, then ends the thread.
    func stop() { thread.stop() }

    /// One job for each write that came; those whose write went with an earlier one find nothing left.
    private func storeSome() {
        let writes = queue.withLock { $0.take() }
        if writes.isEmpty { return }
        var areStored = false
        if writes.count > 1 {
            do throws(StoreError) {
                try together(writes.map(\.store))
                areStored = true
            } catch {
                // Nothing of it was stored: each on its own, so that one that fails fails alone and is counted.
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

/// What waits to be stored, for who looks it up meanwhile: memory may be too small for it, or switched off.
///
/// Everything is kept with the purge generation of its memory tier when it came: what a purge has overtaken is not
/// found any more, and the store will refuse it.
final class WaitingEntries: Sendable {
    enum Key: Hashable, Sendable {
        case variant(String)
        case body(Digest)
        case records(source: String)
    }

    enum Item: Sendable {
        case variant(CacheTiers.StoredVariant)
        case body(EntryBody)
        /// Without a record the selection was removed.
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

    /// - Returns: what ends it.
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
        // Closed outside the lock: the last reference to a file that was not stored frees its blocks.
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

    /// What will be stored of a source once all that waits now is: `stored` as the store gave it afterwards.
    func merged(
        _ source: String, generation: UInt64, stored: () -> [OriginalRecord]
    ) -> [OriginalRecord] {
        // Taken before the store is asked: what is stored in between is in both, and none is missed.
        let waiting = items(.records(source: source), generation)
        var records = stored()
        for case .record(let record, let selecting) in waiting {
            records.removeAll { $0.response.selecting == selecting }
            if let record { records.insert(record, at: 0) }
        }
        return records
    }
}
