/// A place that keeps originals, their records and variants: what `CacheTiers` needs of one, and all it may assume.
///
/// Nothing here mentions a folder: a store may as well be memory or another machine. Every call may block for as long
/// as its I/O takes (a store on another machine sets its own time limit), so callers use threads of the pipeline's own.
/// Stores that never block, such as the memory tier, may be called from anywhere. Any thread may make any call at any
/// time. A store checks bodies as it reads them, so that what it returns is intact; damage is a miss, and a miss is
/// never an error. Every store must pass `StoreConformance` in the tests.
package protocol Store: Sendable {
    /// The current purge generation, to be passed to later stores: a purge in between makes them void.
    func generationNow() throws(StoreError) -> UInt64

    /// `generationNow()` without blocking; it may be ahead while a purge commits. 0 if it is currently unknown, so that
    /// the caller has to ask the store; nil if the store never knows it without blocking.
    var generationHint: UInt64? { get }

    /// What any process has purged since a generation.
    func purges(since generation: UInt64) throws(StoreError) -> PurgeLog

    /// The records of a source, newest first: one for each selection that its `Vary` has led to.
    func records(source: String) throws(StoreError) -> [OriginalRecord]

    /// The body of an original; nil if it is not there (any more).
    ///
    /// - Parameter longest: bytes of the longest body wanted in memory. A longer one may come as an open file, the
    ///   store's own or an unlinked one; its content stays intact for as long as the caller holds it.
    func originalBody(digest: Digest, longest: Int) throws(StoreError) -> EntryBody?

    /// Whether the body of an original is there; counts no access and reads no body.
    func holdsOriginal(digest: Digest) throws(StoreError) -> Bool

    /// Whether a record of the source with this digest is there.
    func holdsRecord(source: String, digest: Digest) throws(StoreError) -> Bool

    /// Stores a record, replacing the one with the same source and selecting fields, and its body if there is room for
    /// it: a record may be kept without its body.
    ///
    /// - Parameter generation: `generationNow()` from when the work began.
    /// - Returns: false if it was purged since or the record was refused.
    func storeOriginal(
        _ record: OriginalRecord, content: EntryBody?, generation: UInt64
    ) throws(StoreError) -> Bool

    /// Replaces the fields and times of a record and keeps its body; false if there is no such record (any more).
    func freshen(_ record: OriginalRecord) throws(StoreError) -> Bool

    /// Removes one record; false if there was none. Its body may be removed with it; its variants stay.
    func removeRecord(source: String, selecting: [String: String?]) throws(StoreError) -> Bool

    /// A variant with its body; nil if it is not there (any more).
    ///
    /// - Parameter original: digest of the original it was made from.
    func variant(key: String, of original: Digest) throws(StoreError) -> (entry: VariantEntry, body: [UInt8])?

    /// Whether a variant is there; counts no access, and reads the body only if the store cannot tell otherwise.
    func holdsVariant(key: String, of original: Digest) throws(StoreError) -> Bool

    /// Stores a variant, replacing any under the same key.
    ///
    /// - Parameters:
    ///   - generation: `generationNow()` from when the work began.
    ///   - source: the source of the original it was made from, so that a purge of that source finds the variant.
    /// - Returns: false if it was purged since or was refused.
    func storeVariant(
        _ entry: VariantEntry, body: [UInt8], generation: UInt64, source: String?
    ) throws(StoreError) -> Bool

    /// Removes a source's records, their bodies and all variants made from them, and invalidates work begun before.
    ///
    /// - Parameter digests: further originals known to belong to the source, although no record says so.
    func purge(source: String, digests: Set<Digest>) throws(StoreError) -> PurgeResult

    /// Runs the stores within `body` as one transaction if it can; if it cannot, those before one that throws stay.
    func together(_ body: () throws(StoreError) -> Void) throws(StoreError)

    /// Purges every source whose name is in the selection. Invalidates all in-flight work, because the names it will be
    /// stored under are unknown.
    func purge(_ selection: SourceSelection) throws(StoreError) -> PurgeResult

    /// Counts that a look-up found records which are no longer fresh; does nothing if the store does not count that.
    func noteStale() throws(StoreError)

    /// What the store holds and has done. `records` stays zero if records have no budget of their own.
    func statistics() throws(StoreError) -> (originals: StoreCounters, variants: StoreCounters, records: StoreCounters)

    /// Writes pending counters and releases everything it holds open. Called once, as the last call.
    func close()

    /// A warning to log once for the operator, such as that everything stored was lost; nil if there is none.
    var notice: String? { get }
}

extension Store {
    package func together(_ body: () throws(StoreError) -> Void) throws(StoreError) { try body() }

    package func noteStale() throws(StoreError) {}

    package var notice: String? { nil }

    package var generationHint: UInt64? { nil }

    /// The default, for a store without a purge log: everything counts as purged once the generation has changed.
    package func purges(since generation: UInt64) throws(StoreError) -> PurgeLog {
        let now = try generationNow()
        return PurgeLog(generation: now, names: now == generation ? [] : nil)
    }

    package func holdsRecord(source: String, digest: Digest) throws(StoreError) -> Bool {
        try records(source: source).contains { $0.digest == digest }
    }

    package func holdsVariant(key: String, of original: Digest) throws(StoreError) -> Bool {
        try variant(key: key, of: original) != nil
    }
}

extension DiskStore: Store {
    package var notice: String? {
        rebuilds == 0
            ? nil
            : "the cache index in \(folder) was damaged or written by an older version; it was set aside as "
                + "cache.sqlite.damaged and replaced with an empty one (`pipectl cache clear` removes it)"
    }
}
