/// A place that keeps originals, their records and variants: what `CacheTiers` needs of one, and all it may assume.
///
/// Nothing here speaks of a folder: a store may as well be memory or another machine. Every call may block for as long
/// as its I/O takes (a store on another machine bounds that itself), so it is made from threads of our own; those that
/// never block, such as the memory tier's, may be called from anywhere. All calls may be made at once from any thread.
/// What is found is whole: a store checks bodies as it reads them, and damage is a miss. A miss is never an error.
/// `StoreConformance` in the tests is what every store has to pass.
protocol Store: Sendable {
    /// The mark to hand to what stores later: a purge in between makes that storing void.
    func generationNow() throws(StoreError) -> UInt64

    /// `generationNow()` without blocking; it may be ahead for the moment a purge takes to commit. 0 if it is unknown at the moment,
    /// so that the store has to be asked; nil if the store never knows it without blocking.
    var generationHint: UInt64? { get }

    /// What was purged since a generation, by whomever.
    func purges(since generation: UInt64) throws(StoreError) -> PurgeLog

    /// What is remembered of a source: one record for each selection its `Vary` has led to, newest first.
    func records(source: String) throws(StoreError) -> [OriginalRecord]

    /// The body of an original; nil when it is not there (any more).
    ///
    /// - Parameter longest: bytes of the longest body wanted in memory. A longer one may come as an open file of the
    ///   store's or of nobody's; it stays whole for who has it.
    func originalBody(digest: Digest, longest: Int) throws(StoreError) -> EntryBody?

    /// Whether the body of an original is there; counts no use and reads no body.
    func holdsOriginal(digest: Digest) throws(StoreError) -> Bool

    /// Whether a record of the source with this digest is there.
    func holdsRecord(source: String, digest: Digest) throws(StoreError) -> Bool

    /// Keeps a record in place of the one with the same source and selecting fields, and its body where it has room
    /// for it: a record may be kept without.
    ///
    /// - Parameter generation: `generationNow()` from when the work began.
    /// - Returns: false when it was purged since, or the record was not taken in.
    func storeOriginal(
        _ record: OriginalRecord, content: EntryBody?, generation: UInt64
    ) throws(StoreError) -> Bool

    /// Replaces the fields and times of a record and keeps its body; false when there is no such record (any more).
    func freshen(_ record: OriginalRecord) throws(StoreError) -> Bool

    /// Removes one record; false when there was none. Its body may go with it, its variants stay.
    func removeRecord(source: String, selecting: [String: String?]) throws(StoreError) -> Bool

    /// A variant with its body; nil when it is not there (any more).
    ///
    /// - Parameter original: digest of the original it was made from.
    func variant(key: String, of original: Digest) throws(StoreError) -> (entry: VariantEntry, body: [UInt8])?

    /// Whether a variant is there; counts no use and reads no body where the store can tell without.
    func holdsVariant(key: String, of original: Digest) throws(StoreError) -> Bool

    /// Keeps a variant in place of any under the same key.
    ///
    /// - Parameters:
    ///   - generation: `generationNow()` from when the work began.
    ///   - source: whose original it was made from, so that a purge of that source finds it.
    /// - Returns: false when it was purged since or not taken in.
    func storeVariant(
        _ entry: VariantEntry, body: [UInt8], generation: UInt64, source: String?
    ) throws(StoreError) -> Bool

    /// Removes a source's records, their bodies and all variants made from them, and voids work begun before.
    ///
    /// - Parameter digests: further originals known to be the source's, where no record says so.
    func purge(source: String, digests: Set<Digest>) throws(StoreError) -> PurgeResult

    /// Makes the stores within `body` one transaction where it can; where it cannot, those before one that throws stay.
    func together(_ body: () throws(StoreError) -> Void) throws(StoreError)

    /// The same of every source whose name is in the selection. Voids all work begun before: which names it will be stored
    /// under nobody knows.
    func purge(_ selection: SourceSelection) throws(StoreError) -> PurgeResult

    /// Counts that records which were found are no longer fresh; nothing where a store does not count that.
    func noteStale() throws(StoreError)

    /// What it holds and has done. `records` is left at zero where records have no budget of their own.
    func statistics() throws(StoreError) -> (originals: StoreCounters, variants: StoreCounters, records: StoreCounters)

    /// Writes what is noted and lets go of what it holds open. Called once, as the last call.
    func close()

    /// What the operator should be told once, such as that everything stored was lost; nil as long as all is well.
    var notice: String? { get }
}

extension Store {
    func together(_ body: () throws(StoreError) -> Void) throws(StoreError) { try body() }

    func noteStale() throws(StoreError) {}

    var notice: String? { nil }

    var generationHint: UInt64? { nil }

    /// Everything, where a store keeps no log.
    func purges(since generation: UInt64) throws(StoreError) -> PurgeLog {
        let now = try generationNow()
        return PurgeLog(generation: now, names: now == generation ? [] : nil)
    }

    func holdsRecord(source: String, digest: Digest) throws(StoreError) -> Bool {
        try records(source: source).contains { $0.digest == digest }
    }

    func holdsVariant(key: String, of original: Digest) throws(StoreError) -> Bool {
        try variant(key: key, of: original) != nil
    }
}

extension DiskStore: Store {
    var notice: String? {
        rebuilds == 0
            ? nil
            : "the index of the cache in \(folder) was damaged, or an older program's; it was set aside as "
                + "cache.sqlite.damaged and an empty one begun (`pipectl cache clear` removes it)"
    }
}
