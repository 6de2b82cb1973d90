public import PipelineCaching

/// What an operator does with the caches.
extension ImagePipeline {
    /// Removes bodies of originals and variants from the cache folder: old or unused ones, and then as many more as it takes to
    /// meet a limit. Records stay, so that a 304 can still validate variants; so does what memory holds, which
    /// `reduceMemory(to:)` frees. Nothing without a folder.
    ///
    /// - Throws: `cacheUnavailable` if the folder fails; what was removed by then stays removed.
    public func trim(_ request: TrimRequest) async throws(PipelineError) -> PurgeResult {
        try await purging { () async throws(StoreError) in try await tiers.folder?.trim(request) ?? PurgeResult() }
    }

    /// Removes everything from memory and the cache folder, also from the memory of other processes that share the folder.
    /// Work in flight when it starts is not stored. Tiers behind the folder keep what they have.
    ///
    /// - Throws: `cacheUnavailable` if the folder fails; memory is emptied in any case.
    @discardableResult
    public func removeAll() async throws(PipelineError) -> PurgeResult {
        try await purging { () async throws(StoreError) in try await tiers.removeAll() }
    }

    /// Changes the budgets of the memory tiers, and evicts what exceeds them.
    ///
    /// A budget is that of parts, one for each 64 MB of the first one and at most 16, and what is larger than a part is not
    /// kept: a program that will change its budgets much makes its pipeline with small ones.
    public func setMemoryBudgets(_ budgets: MemoryBudgets) { tiers.resizeMemory(to: budgets) }

    /// Changes the budgets of the cache folder for this process, in bytes, and evicts what exceeds them. Other processes on the
    /// folder keep theirs, so the least of them all is what counts.
    ///
    /// - Throws: `cacheUnavailable` if the folder fails.
    public func setDiskBudgets(originals: Int, variants: Int) async throws(PipelineError) {
        _ = try await purging { () async throws(StoreError) in
            try await tiers.folder?.resize(originals: originals, variants: variants)
            return PurgeResult()
        }
    }
}
