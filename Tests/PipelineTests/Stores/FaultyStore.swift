@testable import PipelineCaching
import Synchronization

@testable import Pipeline

/// A store that fails every nth call, before it reaches the store behind it or after that one did its work. It can call
/// again what failed, as any caller of a store may: whichever side of the work it failed on, the outcome is the same.
final class FaultyStore: Store {
    enum Moment: Sendable { case before, after }

    private let store: any Store
    private let interval: Int
    private let moment: Moment
    private let isRetrying: Bool
    private let calls = Atomic<Int>(0)
    private let failed = Atomic<Int>(0)

    /// - Parameter interval: 1 fails every call, 3 the third, the sixth, …
    init(_ store: any Store, failingEvery interval: Int, _ moment: Moment = .before, isRetrying: Bool = false) {
        self.isRetrying = isRetrying
        self.store = store
        self.interval = interval
        self.moment = moment
    }

    /// Calls that failed.
    var failures: Int { failed.load(ordering: .relaxed) }

    private func call<Value>(_ work: () throws(StoreError) -> Value) throws(StoreError) -> Value {
        do throws(StoreError) {
            return try callOnce(work)
        } catch {
            guard isRetrying else { throw error }
            return try call(work)
        }
    }

    private func callOnce<Value>(_ work: () throws(StoreError) -> Value) throws(StoreError) -> Value {
        let isFailing = calls.add(1, ordering: .relaxed).newValue % interval == 0
        if isFailing { failed.add(1, ordering: .relaxed) }
        if isFailing, moment == .before { throw StoreError(.io, "made to fail") }
        let value = try work()
        if isFailing { throw StoreError(.io, "made to fail afterwards") }
        return value
    }

    func generationNow() throws(StoreError) -> UInt64 {
        try call { () throws(StoreError) in try store.generationNow() }
    }

    var generationHint: UInt64? { store.generationHint }

    func purges(since generation: UInt64) throws(StoreError) -> PurgeLog {
        try call { () throws(StoreError) in try store.purges(since: generation) }
    }

    func records(source: String) throws(StoreError) -> [OriginalRecord] {
        try call { () throws(StoreError) in try store.records(source: source) }
    }

    func originalBody(digest: Digest, longest: Int) throws(StoreError) -> EntryBody? {
        try call { () throws(StoreError) in try store.originalBody(digest: digest, longest: longest) }
    }

    func holdsOriginal(digest: Digest) throws(StoreError) -> Bool {
        try call { () throws(StoreError) in try store.holdsOriginal(digest: digest) }
    }

    func storeOriginal(
        _ record: OriginalRecord, content: EntryBody?, generation: UInt64
    ) throws(StoreError) -> Bool {
        try call { () throws(StoreError) in
            try store.storeOriginal(record, content: content, generation: generation)
        }
    }

    func freshen(_ record: OriginalRecord) throws(StoreError) -> Bool {
        try call { () throws(StoreError) in try store.freshen(record) }
    }

    func removeRecord(source: String, selecting: [String: String?]) throws(StoreError) -> Bool {
        try call { () throws(StoreError) in try store.removeRecord(source: source, selecting: selecting) }
    }

    func variant(key: String, of original: Pipeline.Digest) throws(StoreError) -> (entry: VariantEntry, body: [UInt8])?
    {
        try call { () throws(StoreError) in try store.variant(key: key, of: original) }
    }

    func storeVariant(
        _ entry: VariantEntry, body: [UInt8], generation: UInt64, source: String?
    ) throws(StoreError) -> Bool {
        try call { () throws(StoreError) in
            try store.storeVariant(entry, body: body, generation: generation, source: source)
        }
    }

    func purge(source: String, digests: Set<Digest>) throws(StoreError) -> PurgeResult {
        try call { () throws(StoreError) in try store.purge(source: source, digests: digests) }
    }

    func purge(_ selection: SourceSelection) throws(StoreError) -> PurgeResult {
        try call { () throws(StoreError) in try store.purge(selection) }
    }

    func statistics() throws(StoreError) -> (originals: StoreCounters, variants: StoreCounters, records: StoreCounters)
    {
        try call { () throws(StoreError) in try store.statistics() }
    }

    func close() { store.close() }
}
