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
    private struct Waiting<Value: Sendable>: Sendable {
        var value: Value
        var generation: UInt64
        var serial: UInt64
    }

    private struct State {
        var serial: UInt64 = 0
        var variants: [String: Waiting<CacheTiers.StoredVariant>] = [:]
        var bodies: [Digest: Waiting<EntryBody>] = [:]
        /// By source, oldest first; without a record the selection was removed.
        var records: [String: [Waiting<(selecting: [String: String?], record: OriginalRecord?)>]] = [:]
    }

    private let state = Mutex(State())

    // MARK: Coming and going

    func add(_ variant: CacheTiers.StoredVariant, generation: UInt64) -> UInt64 {
        state.withLock { state in
            state.serial += 1
            state.variants[variant.entry.key] = Waiting(value: variant, generation: generation, serial: state.serial)
            return state.serial
        }
    }

    func add(_ body: EntryBody, under digest: Digest, generation: UInt64) -> UInt64 {
        state.withLock { state in
            state.serial += 1
            state.bodies[digest] = Waiting(value: body, generation: generation, serial: state.serial)
            return state.serial
        }
    }

    /// - Parameter record: nil where the selection is to be removed.
    func add(
        _ record: OriginalRecord?, of source: String, selecting: [String: String?], generation: UInt64
    ) -> UInt64 {
        state.withLock { state in
            state.serial += 1
            state.records[source, default: []].append(
                Waiting(value: (selecting, record), generation: generation, serial: state.serial))
            return state.serial
        }
    }

    /// Later ones under the same key stay; so in all three.
    func end(variant key: String, _ serial: UInt64) {
        state.withLock { if $0.variants[key]?.serial == serial { $0.variants[key] = nil } }
    }

    func end(body digest: Digest, _ serial: UInt64) {
        let last = state.withLock { state in
            guard state.bodies[digest]?.serial == serial else { return nil as EntryBody? }
            return state.bodies.removeValue(forKey: digest)?.value
        }
        // Closed outside the lock: the last reference to a file that was not stored frees its blocks.
        withExtendedLifetime(last) {}
    }

    func end(recordOf source: String, _ serial: UInt64) {
        state.withLock { state in
            state.records[source]?.removeAll { $0.serial == serial }
            if state.records[source]?.isEmpty == true { state.records[source] = nil }
        }
    }

    // MARK: Looking up

    func variant(_ key: String, generation: UInt64) -> CacheTiers.StoredVariant? {
        state.withLock { $0.variants[key].flatMap { $0.generation == generation ? $0.value : nil } }
    }

    func body(_ digest: Digest, generation: UInt64) -> EntryBody? {
        state.withLock { $0.bodies[digest].flatMap { $0.generation == generation ? $0.value : nil } }
    }

    /// What will be stored of a source once all that waits now is: `stored` as the store gave it afterwards.
    func merged(
        _ source: String, generation: UInt64, stored: () -> [OriginalRecord]
    ) -> [OriginalRecord] {
        // Taken before the store is asked: what is stored in between is in both, and none is missed.
        let waiting = state.withLock { $0.records[source] ?? [] }.filter { $0.generation == generation }
        var records = stored()
        for change in waiting {
            records.removeAll { $0.response.selecting == change.value.selecting }
            if let record = change.value.record { records.insert(record, at: 0) }
        }
        return records
    }
}
