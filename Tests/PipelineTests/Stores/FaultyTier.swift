import PipelineCaching
import Synchronization

/// A tier that fails every nth call, before it reaches the tier behind it or after that one did its work. It can call
/// again what failed, as any caller of a tier may: whichever side of the work it failed on, the outcome is the same.
final class FaultyTier: CacheTier {
    enum Moment: Sendable { case before, after }

    private let tier: any CacheTier
    private let interval: Int
    private let moment: Moment
    private let isRetrying: Bool
    private let calls = Atomic<Int>(0)
    private let failed = Atomic<Int>(0)

    /// - Parameter interval: 1 fails every call, 3 the third, the sixth, …
    init(_ tier: any CacheTier, failingEvery interval: Int, _ moment: Moment = .before, isRetrying: Bool = false) {
        self.isRetrying = isRetrying
        self.tier = tier
        self.interval = interval
        self.moment = moment
    }

    var name: TierName { tier.name }

    /// Calls that failed.
    var failures: Int { failed.load(ordering: .relaxed) }

    private func call<Value: Sendable>(
        _ work: () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        while true {
            let isFailing = calls.add(1, ordering: .relaxed).newValue % interval == 0
            if isFailing { failed.add(1, ordering: .relaxed) }
            if isFailing, moment == .before {
                if isRetrying { continue }
                throw StoreError(.io, "made to fail")
            }
            let value = try await work()
            if isFailing {
                if isRetrying { continue }
                throw StoreError(.io, "made to fail afterwards")
            }
            return value
        }
    }

    func find(_ key: EntryKey, _ part: EntryPart) async throws(StoreError) -> FoundEntry? {
        try await call { () async throws(StoreError) in try await tier.find(key, part) }
    }

    func store(_ changes: [EntryChange]) async throws(StoreError) {
        try await call { () async throws(StoreError) in try await tier.store(changes) }
    }

    /// The first call that removed an entry reports the removed entries.
    func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult {
        var all = PurgeResult()
        let last = try await call { () async throws(StoreError) in
            let result = try await tier.purge(selection)
            all.digests.formUnion(result.digests)
            return result
        }
        var result = last
        result.digests = all.digests
        return result
    }

    func statistics() async throws(StoreError) -> TierStatistics {
        try await call { () async throws(StoreError) in try await tier.statistics() }
    }
}
