import PipelineSupport
import Synchronization

/// The purges by selection that a bucket contains under `q/`. They are read again every ten seconds.
///
/// Each entry lists the purges that were known when work on it began. A newer matching purge invalidates it. Purges
/// therefore need no search and no comparison of clocks, and an entry that a slow node stores late is invalid too.
final class LivePurges: Sendable {
    struct Purge: Sendable {
        var text: String
        var selection: SourceSelection
        var mode: PurgeMode
        /// The time of the purge. Work that began earlier may not know of the purge.
        var time: PurgeMark
    }

    private struct Load {
        var task: Task<Result<Void, StoreError>, Never>
        /// The number of expiries before the load began.
        var expiries: Int
    }

    private struct State {
        var purges: [Purge] = []
        var loading: Load?
        /// The number of expiries. After an expiry, callers need a load that began later.
        var expiries = 0
        /// The time when the last successful load began, and the number of expiries before it.
        var known = (time: -Double.infinity, expiries: 0)
        var nextLoad = -Double.infinity
        /// The sources with entries that nearer tiers have copied, and the times of the copies. An earlier purge may
        /// still become known.
        var copies: [ByteString: PurgeMark] = [:]
        /// The time of the last copy that did not fit in `copies`, or nil if all of them fit.
        var uncounted: PurgeMark?

        /// Returns the part of a purge that covers copies. Returns nil if the purge does not cover any copy.
        func copies(of purge: Purge) -> EntrySelection? {
            if uncounted != nil { return EntrySelection(matching: purge.selection, mode: purge.mode) }
            let names = Set(copies.keys.map(\.text).filter(purge.selection.contains))
            return names.isEmpty ? nil : EntrySelection(sources: names, mode: purge.mode)
        }
    }

    private let state = Mutex(State())
    private let store: any ObjectStore
    private let times: PurgeTimes
    /// The closure that removes copies from nearer tiers after a purge has invalidated them.
    let removeCopies = Mutex<(@Sendable (EntrySelection) async -> Void)?>(nil)
    static let interval = 10.0

    init(_ store: any ObjectStore, _ times: PurgeTimes) { (self.store, self.times) = (store, times) }

    /// Returns the purges that cover a source.
    func covering(_ source: String) -> [Purge] {
        state.withLock(\.purges).filter { $0.selection.contains(source) }
    }

    /// Returns whether an entry of a source may be used, because no known purge invalidates it. Records that nearer
    /// tiers copy the entry. If an earlier purge becomes known later, the copies are removed.
    ///
    /// - Parameter isLeft: decides whether the entry is valid, given the known purges that cover the source.
    func handOut(_ source: String, if isLeft: ([Purge]) -> Bool) -> Bool {
        state.withLock { state in
            guard isLeft(state.purges.filter { $0.selection.contains(source) }) else { return false }
            let (key, now) = (ByteString(source), times.tick())
            let hasRoom = state.copies[key] != nil || state.copies.count < PurgeLog.limit
            if hasRoom { state.copies[key] = now } else { state.uncounted = now }
            return true
        }
    }

    /// Whether copies exist that `refresh` should check.
    var hasCopies: Bool { state.withLock { !$0.copies.isEmpty } }

    /// Writes a purge. When this returns, entries that were stored before the call are invalid.
    func add(_ selection: EntrySelection, _ matching: SourceSelection, named text: String) async throws(StoreError) {
        let texts = [selection.mode.rawValue, "\(matching.prefixes.count)"] + matching.prefixes
        let key = "q/" + text
        try await store.put(key, ObjectCoding.encode([], texts, key: key), type: ObjectTier.opaque)
        let time = times.note([], as: text)
        state.withLock {
            $0.purges.append(Purge(text: text, selection: matching, mode: selection.mode, time: time))
        }
    }

    /// Reads the purges if a read is due. One caller waits for the read. If the known purges are older than twice the
    /// interval, all callers wait.
    func refresh() async throws(StoreError) {
        let expiries = state.withLock(\.expiries)
        while let load = due(expiries) {
            try await load.task.value.get()
            if load.expiries >= expiries { return }
        }
    }

    /// Returns the load to wait for. Returns nil if the known purges are recent enough.
    private func due(_ expiries: Int) -> Load? {
        let now = SystemClock.monotonic.seconds
        return state.withLock { state in
            let isOld = state.known.expiries < expiries || now > state.known.time + 2 * Self.interval
            if let loading = state.loading { return isOld ? loading : nil }
            guard isOld || now >= state.nextLoad else { return nil }
            let began = (now, state.expiries)
            // This is a separate task, because other requests wait for it too, and it must not be cancelled with this
            // request.
            let task = Task { await Result(of: { () async throws(StoreError) in try await self.load(began) }) }
            state.loading = Load(task: task, expiries: state.expiries)
            return state.loading
        }
    }

    /// Makes every later look-up wait until the purges have been read again.
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
        // The next load tries again if a purge cannot be read.
        try await ObjectTier.each(texts.filter { known[$0] == nil }.sorted()) { [self] text throws(StoreError) in
            guard let purge = try await read(text) else { return }
            let copies = state.withLock { state in
                if state.purges.contains(where: { $0.text == text }) { return nil as EntrySelection? }
                state.purges.append(purge)
                return state.copies(of: purge)
            }
            if let copies { await removeCopies.withLock(\.self)?(copies) }
        }
        state.withLock { [texts] state in
            // Purges that this process has added in the meantime stay.
            state.purges.removeAll { $0.time < began && !texts.contains($0.text) }
            state.known = start
            // Copies from before this load have been compared with all earlier purges.
            state.copies = state.copies.filter { $0.value >= began }
            if let last = state.uncounted, last < began { state.uncounted = nil }
        }
    }

    /// Returns whether a string is the name of a purge. A bucket may also contain objects of other tools.
    static func isText(_ text: String) -> Bool {
        text.utf8.count == 32 && text.utf8.allSatisfy(\.isLowercaseHex)
    }

    private func read(_ text: String) async throws(StoreError) -> Purge? {
        let key = "q/" + text
        let answer = try await store.get(key, isLong: false)
        guard case .bytes(let bytes)? = answer.body else { return nil }
        guard var texts = ObjectCoding.decode(bytes, key: key)?.texts, let rawMode = try? texts.text(),
            let prefixes = try? texts.list()
        else {
            // The purge may cover any entry, so no entry can be trusted.
            throw StoreError(
                .damaged, "a purge in the bucket is damaged; repeat important purges, then delete the object \(key)")
        }
        return Purge(
            text: text, selection: SourceSelection(prefixes: prefixes), mode: PurgeMode(rawValue: rawMode) ?? .hard,
            time: times.time(of: text) ?? times.mark(of: answer))
    }
}
