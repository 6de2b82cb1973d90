import PipelineSupport
import Synchronization

/// The purges by selection that a bucket holds below `q/`, read again every ten seconds.
///
/// Every entry says which of those that cover it were known when its making began; another one voids it. So nothing is
/// searched for, no clocks are compared, and an entry that a slow node stores late is void, too.
final class LivePurges: Sendable {
    struct Purge: Sendable {
        var text: String
        var selection: SourceSelection
        var mode: PurgeMode
        /// Work begun before this mark may not know it.
        var time: UInt64
    }

    private struct State {
        var purges: [Purge] = []
        var loading: Task<Result<Void, StoreError>, Never>?
        var hasLoaded = false
        var nextLoad = 0.0
    }

    private let state = Mutex(State())
    private let store: any ObjectStore
    private let times: PurgeTimes
    static let interval = 10.0

    init(_ store: any ObjectStore, _ times: PurgeTimes) { (self.store, self.times) = (store, times) }

    /// Those that cover a source.
    func covering(_ source: String) -> [Purge] {
        state.withLock(\.purges).filter { $0.selection.contains(source) }
    }

    /// Writes one. What was stored before is void once this returns.
    func add(_ selection: PurgeSelection, _ matching: SourceSelection, named text: String) async throws(StoreError) {
        let texts = [selection.mode.rawValue, "\(matching.prefixes.count)"] + matching.prefixes
        let key = "q/" + text
        try await store.put(key, ObjectCoding.encode([], texts, key: key), type: ObjectTier.opaque)
        let time = times.note([], as: text)
        state.withLock {
            $0.purges.append(Purge(text: text, selection: matching, mode: selection.mode, time: time))
        }
    }

    /// Reads them if that is due: the first time everything waits for it, later only the caller.
    func refresh() async throws(StoreError) {
        let now = SystemClock.monotonic.seconds
        let task = state.withLock { state -> Task<Result<Void, StoreError>, Never>? in
            if let loading = state.loading { return state.hasLoaded ? nil : loading }
            guard now >= state.nextLoad else { return nil }
            // Not a part of the request that happens to come first: others wait for it as well.
            let task = Task { await Result(of: { () async throws(StoreError) in try await self.load() }) }
            state.loading = task
            return task
        }
        try await task?.value.get()
    }

    /// Makes the next look-up read them again.
    func expire() { state.withLock { $0.nextLoad = 0 } }

    private func load() async throws(StoreError) {
        defer { state.withLock { $0.loading = nil } }
        let known = Dictionary(state.withLock(\.purges).map { ($0.text, $0) }) { first, _ in first }
        let began = times.tick()
        var texts: Set<String> = []
        var next: String?
        repeat {
            let page = try await store.list("q/", after: next)
            texts.formUnion(page.objects.map { String($0.key.dropFirst(2)) })
            next = page.next
        } while next != nil
        var found: [Purge] = []
        for text in texts where known[text] == nil {
            if let purge = try await read(text) { found.append(purge) }
        }
        state.withLock { [found] state in
            // Those that this process has added meanwhile stay.
            state.purges.removeAll { $0.time < began && !texts.contains($0.text) }
            let own = Set(state.purges.map(\.text))
            state.purges += found.filter { !own.contains($0.text) }
            state.hasLoaded = true
            state.nextLoad = SystemClock.monotonic.seconds + Self.interval
        }
    }

    private func read(_ text: String) async throws(StoreError) -> Purge? {
        let key = "q/" + text
        let answer = try await store.get(key, isLong: false)
        guard case .bytes(let bytes)? = answer.body else { return nil }
        guard var texts = ObjectCoding.decode(bytes, key: key)?.texts, let rawMode = try? texts.text(),
            let prefixes = try? texts.list()
        else {
            // What it covers is not known, so nothing can be relied on.
            throw StoreError(
                .damaged, "a purge in the bucket is damaged; purge again what matters, then delete the object \(key)")
        }
        return Purge(
            text: text, selection: SourceSelection(prefixes: prefixes), mode: PurgeMode(rawValue: rawMode) ?? .hard,
            time: times.time(of: text) ?? times.mark(of: answer))
    }
}
