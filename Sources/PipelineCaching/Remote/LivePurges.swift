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
        /// When the last load that succeeded began.
        var known = -Double.infinity
        var nextLoad = -Double.infinity
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

    /// Reads them if that is due, for which one caller waits, and all if what is known is older than twice the interval.
    func refresh() async throws(StoreError) {
        let now = SystemClock.monotonic.seconds
        let task = state.withLock { state -> Task<Result<Void, StoreError>, Never>? in
            let isOld = now > state.known + 2 * Self.interval
            if let loading = state.loading { return isOld ? loading : nil }
            guard isOld || now >= state.nextLoad else { return nil }
            // Not a part of the request that happens to come first: others wait for it as well.
            let task = Task { await Result(of: { () async throws(StoreError) in try await self.load(now) }) }
            state.loading = task
            return task
        }
        try await task?.value.get()
    }

    /// Makes the next look-up read them again.
    func expire() { state.withLock { $0.known = -.infinity } }

    private func load(_ now: Double) async throws(StoreError) {
        defer {
            state.withLock { state in
                state.loading = nil
                state.nextLoad = SystemClock.monotonic.seconds + Self.interval
            }
        }
        let known = Dictionary(state.withLock(\.purges).map { ($0.text, $0) }) { first, _ in first }
        let began = times.tick()
        var texts: Set<String> = []
        var next: String?
        repeat {
            let page = try await store.list("q/", after: next)
            texts.formUnion(page.objects.map { String($0.key.dropFirst(2)) }.filter(Self.isText))
            next = page.next
        } while next != nil
        // What cannot be read is asked for again by the next load; what was read stays.
        try await ObjectTier.each(texts.filter { known[$0] == nil }.sorted()) { [self] text throws(StoreError) in
            guard let purge = try await read(text) else { return }
            state.withLock { state in
                if !state.purges.contains(where: { $0.text == text }) { state.purges.append(purge) }
            }
        }
        state.withLock { [texts] state in
            // Those that this process has added meanwhile stay.
            state.purges.removeAll { $0.time < began && !texts.contains($0.text) }
            state.known = now
        }
    }

    /// Whether a text is one of ours: other tools leave objects in a bucket, too.
    private static func isText(_ text: String) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
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
