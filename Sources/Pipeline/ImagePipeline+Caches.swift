public import PipelineCaching
public import Variants

/// Statistics of the pipeline, and operations on its caches.
extension ImagePipeline {
    /// Removes bodies of originals and variants from the cache folder: first old or unused bodies, then as many more as
    /// needed to meet a limit. Records are kept, so that a 304 can still validate variants. Memory does not change. Use
    /// `reduceMemory(to:)` to free it. Does nothing if there is no cache folder.
    ///
    /// - Throws: `cacheUnavailable` if the folder fails. Entries removed before the failure stay removed.
    public func trim(_ request: TrimRequest) async throws(PipelineError) -> PurgeResult {
        try await purging { () async throws(StoreError) in try await tiers.folder?.trim(request) ?? PurgeResult() }
    }

    /// Removes all entries from memory and the cache folder, and from the memory of other processes that share the
    /// folder. Work in flight when the call starts is not stored. Tiers behind the folder keep their entries.
    ///
    /// - Throws: `cacheUnavailable` if the folder fails. Memory is emptied even then.
    @discardableResult
    public func removeAll() async throws(PipelineError) -> PurgeResult {
        try await purging { () async throws(StoreError) in try await tiers.removeAll() }
    }

    /// Changes the budgets of the memory tiers, and evicts entries that exceed the new budgets.
    ///
    /// A budget is divided into partitions: one for each 64 MB of the initial budget, at most 16. Entries larger than a
    /// partition are not kept. A program that intends to raise its budgets considerably should start with small ones.
    public func setMemoryBudgets(_ budgets: MemoryBudgets) { tiers.resizeMemory(to: budgets) }

    /// Changes the budgets of the cache folder for this process, in bytes, and evicts entries that exceed the new
    /// budgets. Other processes that share the folder keep their budgets, so the smallest budget applies.
    ///
    /// - Throws: `cacheUnavailable` if the folder fails.
    public func setDiskBudgets(originals: Int, variants: Int) async throws(PipelineError) {
        _ = try await purging { () async throws(StoreError) in
            try await tiers.folder?.resize(originals: originals, variants: variants)
            return PurgeResult()
        }
    }

    /// Frees memory in a program that is running short of it or is about to need it.
    ///
    /// The memory tiers evict their least valuable entries until they use at most the given fraction of their current
    /// size. The budgets do not change, so the tiers fill up again as entries are requested. The call takes a few
    /// milliseconds per gigabyte.
    ///
    /// - Parameter share: the fraction of the current size to keep, 0…1. Defaults to 0.
    /// - Returns: the number of bytes freed.
    @discardableResult
    public func reduceMemory(to share: Double = 0) -> Int { tiers.reduceMemory(to: share) }

    /// The counters of the cache folder, or nil if there is no folder or it cannot be read.
    public func diskStatistics() async -> TierStatistics? {
        // The tier has already counted and reported a disk error.
        try? await tiers.folder?.statistics()
    }

    /// The counters of the memory tiers.
    public var memoryStatistics: TierStatistics {
        var statistics = tiers.memory.statistics()
        statistics.pixels = tiers.pixels.counters
        return statistics
    }

    /// The status of this machine in its fleet, or nil if there is no fleet.
    public var fleetStatus: FleetStatus? { purger.feed?.status }

    /// The counters of the render workers, or nil if renders run in this process.
    public var workerStatistics: WorkerStatistics? { (renderer as? WorkerPool)?.statistics }
}
