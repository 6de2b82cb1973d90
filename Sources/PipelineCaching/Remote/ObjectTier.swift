import HTTPCaching
import PipelineSupport

/// An object store as a tier for any number of nodes. Bodies, records and variants are objects.
///
/// | key | object |
/// |---|---|
/// | `o/{digest}` | an original's body, unchanged |
/// | `d/{digest}/{SHA-256 of the source}` | empty: a source that has had this body |
/// | `s/{SHA-256 of the source}` | the records of a source, and the digests it has had |
/// | `v/{original's digest}/{key}` | a variant |
/// | `p/{SHA-256 of the source}` | the last purge of a source: a random text |
/// | `q/{random text}` | a purge by selection |
///
/// Purges take precedence: a record lists the purges that were known when its fetch began (`seen`), and a record that
/// lacks a purge of its source is invalid. An entry that a node stores after a purge, from work that began before it,
/// is therefore never used. No write is conditional, and the clocks of nodes are not compared. If two nodes store
/// records of one source at the same time, one record may be lost and is fetched again.
package final class ObjectTier: MarkedTier {
    package let name = TierName.remote
    let store: any ObjectStore
    private let keepsOriginals: Bool
    private let keepsVariants: Bool
    let times = PurgeTimes()
    let purges: LivePurges
    static let opaque = "application/octet-stream"
    /// The size in bytes of the longest body of an original that is stored.
    static let longestOriginal = 64 << 20
    /// The number of concurrent requests per store or purge.
    static let width = 48

    package init(_ store: any ObjectStore, originals: Bool = true, variants: Bool = true) {
        self.store = store
        (keepsOriginals, keepsVariants) = (originals, variants)
        purges = LivePurges(store, times)
    }

    static func hash(_ source: String) -> String { sha256Hex(Array(source.utf8)) }
    static func key(of source: String) -> String { "s/" + hash(source) }
    static func purgeKey(_ source: String) -> String { "p/" + hash(source) }
    static func key(ofVariant key: String, of original: String) -> String { "v/\(original)/\(key)" }

    // MARK: Looking up

    package func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        switch key {
        case .records(let source) where keepsOriginals: return try await records(source)
        case .original(let digest) where keepsOriginals: return try await original(digest, part)
        case .variant(let key, let original) where keepsVariants: return try await variant(key, of: original, part)
        // Do not return nil, because that would indicate that the bucket works.
        default: throw StoreError(.skipped, "the bucket does not store this kind of entry")
        }
    }

    /// Returns the records of a source. This takes one round trip, because the records and the purges that may
    /// invalidate them are requested at the same time.
    private func records(_ source: String) async throws(StoreError) -> FoundEntry? {
        async let asked = Result(of: { () async throws(StoreError) in try await self.stored(source) })
        async let purged = Result(of: { () async throws(StoreError) in
            try await self.store.get(Self.purgeKey(source), isLong: false)
        })
        async let refreshed = Result(of: { () async throws(StoreError) in try await self.purges.refresh() })
        let (found, purge) = (try await asked.get(), try await purged.get())
        try await refreshed.get()
        let last = try Self.text(purge).map { [$0] } ?? []
        var records = found.object?.records ?? []
        let isLeft = purges.handOut(source) { purges in
            records.removeAll { !$0.seen.isSuperset(of: purges.map(\.text) + last) }
            return !records.isEmpty
        }
        return isLeft ? .records(records.map { $0.record.moved(by: -found.clockOffset) }) : nil
    }

    /// Reads the object of a source, with times according to the store's clock. Returns nil if the bucket has no such
    /// object. Throws `damaged` if the object was changed or belongs to a different source.
    func stored(_ source: String) async throws(StoreError) -> (object: SourceObject?, clockOffset: Double) {
        let key = Self.key(of: source)
        let answer = try await store.get(key, isLong: false)
        guard let bytes = answer.body?.read() else { return (nil, answer.clockOffset) }
        guard var texts = ObjectCoding.decode(bytes, key: key)?.texts, let object = try? SourceObject(&texts),
            ByteString(object.source) == ByteString(source)
        else { throw StoreError(.damaged, "the bucket returned a different or modified object for \(key)") }
        return (object, answer.clockOffset)
    }

    /// Reads the name of a source's last purge. Returns nil if no node has purged the source.
    private static func text(_ answer: ObjectAnswer) throws(StoreError) -> String? {
        guard let bytes = answer.body?.read() else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        guard LivePurges.isText(text) else {
            throw StoreError(.damaged, "the bucket returned a modified purge in p/")
        }
        return text
    }

    private func original(_ digest: String, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        guard DigestKey(digest) != nil else { return nil }
        if part == .description { return try await store.holds("o/" + digest) ? .original(nil) : nil }
        return try await store.get("o/" + digest, isLong: true).body.map { .original($0) }
    }

    private func variant(
        _ name: String, of original: String, _ part: EntryPart
    ) async throws(StoreError) -> FoundEntry? {
        let key = Self.key(ofVariant: name, of: original)
        async let refreshed = Result(of: { () async throws(StoreError) in try await self.purges.refresh() })
        let answer = try await store.get(key, isLong: false)
        try await refreshed.get()
        guard let bytes = answer.body?.read() else { return nil }
        guard var object = ObjectCoding.decode(bytes, key: key), let found = try? StoredObjectVariant(&object.texts),
            found.entry.key == name, found.entry.originalDigest == original, found.entry.length == object.body.count
        else { throw StoreError(.damaged, "the bucket returned a different or modified object for \(key)") }
        if let source = found.source {
            let isLeft = purges.handOut(source) { purges in
                purges.allSatisfy { $0.mode == .soft || found.seen.contains($0.text) }
            }
            if !isLeft { return nil }
        }
        return .variant(found.entry, body: part == .body ? Array(object.body) : nil)
    }

    // MARK: Storing

    /// Stores changes. Changes to the same source are applied in order, and changes to different sources are applied
    /// concurrently.
    package func store(_ changes: [EntryChange]) async throws(StoreError) {
        var groups: [ByteString: [EntryChange]] = [:]
        for change in changes { groups[ByteString(change.kind.name), default: []].append(change) }
        try await Self.each(Array(groups.values)) { [self] changes throws(StoreError) in
            for change in changes { try await store(change) }
        }
    }

    private func store(_ change: EntryChange) async throws(StoreError) {
        switch change.kind {
        case .original(let record, let body): try await store(record, body, since: change.mark)
        case .freshenedRecord(let record):
            try await update(record, since: change.mark) { object, record, seen in
                let isThere = object.records.contains { $0.record.selection == record.selection }
                if isThere { object.put(record, seen: seen) }
                return isThere
            }
        case .removedRecord(let record):
            guard keepsOriginals, var object = try await stored(record.source).object else { return }
            object.records.removeAll { $0.record.hasSameSelection(as: record) }
            try await put(object)
        case .variant(let entry, let body, let source):
            guard keepsVariants, let seen = try await seen(source, [entry.originalDigest], since: change.mark)
            else { return }
            let key = Self.key(ofVariant: entry.key, of: entry.originalDigest)
            let stored = StoredObjectVariant(entry: entry, source: source, seen: seen)
            try await store.put(key, ObjectCoding.encode(body, stored.texts, key: key), type: entry.mediaType)
            // This work may not know of a purge that began in the meantime.
            let names = [entry.originalDigest] + (source.map { [$0] } ?? [])
            if times.haveBeenPurged(names, since: change.mark) { try await store.delete(key) }
        }
    }

    /// Stores the body first, so that no record leads to a missing body.
    private func store(
        _ record: OriginalRecord, _ body: EntryBody?, since mark: PurgeMark
    ) async throws(StoreError) {
        guard keepsOriginals else { return }
        if let body, body.count > 0, body.count <= Self.longestOriginal {
            if times.haveBeenPurged([record.source, record.digest], since: mark) { return }
            guard let bytes = body.read() else { throw StoreError(.io, EntryBody.lost) }
            try await store.put("d/\(record.digest)/\(Self.hash(record.source))", [], type: Self.opaque)
            try await store.put("o/" + record.digest, bytes, type: record.media?.type ?? Self.opaque)
        }
        try await update(record, since: mark) { object, record, seen in
            object.put(record, seen: seen)
            return true
        }
    }

    /// Changes the object of a record's source, unless a purge has invalidated the record.
    ///
    /// - Parameter change: applies the change. Returns whether anything changed.
    private func update(
        _ record: OriginalRecord, since mark: PurgeMark,
        _ change: @Sendable (inout SourceObject, OriginalRecord, Set<String>) -> Bool
    ) async throws(StoreError) {
        guard keepsOriginals else { return }
        async let asked = Result(of: { () async throws(StoreError) in try await self.stored(record.source) })
        let seen = try await seen(record.source, [record.digest], since: mark)
        let found: (object: SourceObject?, clockOffset: Double)
        // A damaged object is replaced.
        switch await asked {
        case .success(let stored): found = stored
        case .failure(let error) where error.code == .damaged: found = (nil, 0)
        case .failure(let error): throw error
        }
        guard let seen else { return }
        var object = found.object ?? SourceObject(source: record.source)
        // Invalid records are not copied, because they would then outlive the purge.
        object.records.removeAll { !$0.seen.isSuperset(of: seen) }
        if change(&object, record.moved(by: found.clockOffset), seen) { try await put(object) }
    }

    func put(_ object: SourceObject) async throws(StoreError) {
        let key = Self.key(of: object.source)
        try await store.put(key, ObjectCoding.encode([], object.texts, key: key), type: Self.opaque)
    }

    /// Returns the purges that cover a source if all of them were known to the work that began at a mark. Otherwise,
    /// returns nil.
    private func seen(
        _ source: String?, _ digests: [String], since mark: PurgeMark
    ) async throws(StoreError) -> Set<String>? {
        if times.haveBeenPurged(digests + (source.map { [$0] } ?? []), since: mark) { return nil }
        guard let source else { return [] }
        try await purges.refresh()
        var seen: Set<String> = []
        for purge in purges.covering(source) {
            if purge.time >= mark { return nil }
            seen.insert(purge.text)
        }
        let answer = try await store.get(Self.purgeKey(source), isLong: false)
        guard let text = try Self.text(answer) else { return seen }
        if times.time(of: text) ?? times.mark(of: answer) >= mark { return nil }
        return seen.union([text])
    }

    package var mark: PurgeMark { times.tick() }

    package func catchUp() async {
        // Ignore the error, because the next look-up counts it.
        if purges.hasCopies { try? await purges.refresh() }
    }

    /// Counts the contents of the bucket by listing it, with one request per thousand objects.
    package func statistics() async throws(StoreError) -> TierStatistics {
        var statistics = TierStatistics()
        for (prefix, counter) in [("o/", \TierStatistics.originals), ("s/", \.records), ("v/", \.variants)] {
            try await eachPage(of: prefix) { page throws(StoreError) in
                statistics[keyPath: counter].entries += page.count
                statistics[keyPath: counter].bytes += page.reduce(0) { $0 + $1.size }
            }
        }
        return statistics
    }

    // MARK: Helpers

    func eachPage(
        of prefix: String, _ body: ([(key: String, size: Int)]) async throws(StoreError) -> Void
    ) async throws(StoreError) {
        var next: String?
        repeat {
            let page = try await store.list(prefix, after: next)
            try await body(page.objects)
            next = page.next
        } while next != nil
    }

    /// Runs `body` for all items, a few at a time. Continues after an error, and throws the first error at the end.
    static func each<Item: Sendable>(
        _ items: [Item], _ body: @escaping @Sendable (Item) async throws(StoreError) -> Void
    ) async throws(StoreError) {
        if items.count == 1 { return try await body(items[0]) }
        let results = await withTaskGroup(of: Result<Void, StoreError>.self) { group in
            var (results, rest) = ([Result<Void, StoreError>](), items[...])
            func add() {
                guard let item = rest.popFirst() else { return }
                group.addTask { await Result(of: { () async throws(StoreError) in try await body(item) }) }
            }
            for _ in 0..<Self.width { add() }
            while let result = await group.next() {
                results.append(result)
                add()
            }
            return results
        }
        for result in results { try result.get() }
    }
}

extension EntryChange.Kind {
    /// The source or key. Changes with the same name are applied in order.
    fileprivate var name: String {
        switch self {
        case .original(let record, _), .freshenedRecord(let record), .removedRecord(let record): record.source
        case .variant(let entry, _, _): entry.key
        }
    }
}

extension OriginalRecord {
    /// Returns the record with its times converted to another clock. The times do not change if the clocks differ by
    /// only a few seconds.
    fileprivate func moved(by seconds: Double) -> OriginalRecord {
        guard abs(seconds) > 5 else { return self }
        var moved = self
        moved.response.requestTime += seconds
        moved.response.responseTime += seconds
        return moved
    }
}
