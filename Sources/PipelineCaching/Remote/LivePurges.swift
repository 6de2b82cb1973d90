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

    private struct Load {
        var task: Task<Result<Void, StoreError>, Never>
        /// The number of expiries before it began.
        var expiries: Int
    }

    private struct State {
        var purges: [Purge] = []
        var loading: Load?
        /// A load that began before the last expiry does not make up for it.
        var expiries = 0
        /// When the last load that succeeded began, and the number of expiries before.
        var known = (time: -Double.infinity, expiries: 0)
        var nextLoad = -Double.infinity
        /// The sources whose entries nearer tiers have copied, with the times. An earlier purge may still become known.
        var copies: [ByteString: UInt64] = [:]
        /// The time of the last copy that did not fit into `copies`; 0 if all fit.
        var uncounted: UInt64 = 0

        /// Returns the part of a purge that concerns copies; nil if the purge covers no copy.
        func copies(of purge: Purge) -> PurgeSelection? {
            if uncounted > 0 { return PurgeSelection(matching: purge.selection, mode: purge.mode) }
            let names = Set(copies.keys.map(\.text).filter(purge.selection.contains))
            return names.isEmpty ? nil : PurgeSelection(sources: names, mode: purge.mode)
        }
    }

    private let state = Mutex(State())
    private let store: any ObjectStore
    private let times: PurgeTimes
    /// Removes copies that a purge voids from nearer tiers.
    let removeCopies = Mutex<(@Sendable (PurgeSelection) async -> Void)?>(nil)
    static let interval = 10.0

    init(_ store: any ObjectStore, _ times: PurgeTimes) { (self.store, self.times) = (store, times) }

    /// Those that cover a source.
    func covering(_ source: String) -> [Purge] {
        state.withLock(\.purges).filter { $0.selection.contains(source) }
    }

    /// Hands out an entry of a source unless a purge voids it. Nearer tiers copy it. If a purge from before then becomes known
    /// later, the copies are removed.
    ///
    /// - Parameter isLeft: decides by the known purges that cover the source.
    func handOut(_ source: String, if isLeft: ([Purge]) -> Bool) -> Bool {
        state.withLock { state in
            guard isLeft(state.purges.filter { $0.selection.contains(source) }) else { return false }
            let (key, now) = (ByteString(source), times.tick())
            let hasRoom = state.copies[key] != nil || state.copies.count < PurgeLog.limit
            if hasRoom { state.copies[key] = now } else { state.uncounted = now }
            return true
        }
    }

    /// Whether `refresh` has something to do for copies.
    var hasCopies: Bool { state.withLock { !$0.copies.isEmpty } }

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
        let expiries = state.withLock(\.expiries)
        while let load = due(expiries) {
            try await load.task.value.get()
            if load.expiries >= expiries { return }
        }
    }

    /// The load to wait for; nil if what is known is new enough.
    private func due(_ expiries: Int) -> Load? {
        let now = SystemClock.monotonic.seconds
        return state.withLock { state in
            let isOld = state.known.expiries < expiries || now > state.known.time + 2 * Self.interval
            if let loading = state.loading { return isOld ? loading : nil }
            guard isOld || now >= state.nextLoad else { return nil }
            let began = (now, state.expiries)
            // Not a part of the request that happens to come first: others wait for it as well.
            let task = Task { await Result(of: { () async throws(StoreError) in try await self.load(began) }) }
            state.loading = Load(task: task, expiries: state.expiries)
            return state.loading
        }
    }

    /// Has every look-up from now on wait until they are read again.
    func expire() { state.withLock { $0.expiries += 1 } }

    private func load(_ start: (time: Double, expiries: Int)) async throws(StoreError) {
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
            let copies = state.withLock { state in
                if state.purges.contains(where: { $0.text == text }) { return nil as PurgeSelection? }
                state.purges.append(purge)
                return state.copies(of: purge)
            }
            if let copies { await removeCopies.withLock(\.self)?(copies) }
        }
        state.withLock { [texts] state in
            // Those that this process has added meanwhile stay.
            state.purges.removeAll { $0.time < began && !texts.contains($0.text) }
            state.known = start
            // Copies from before this load have been compared with every earlier purge.
            state.copies = state.copies.filter { $0.value >= began }
            if state.uncounted < began { state.uncounted = 0 }
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
