import Glibc
/// Freeing of memory, and decoded pixels, which are stored in memory only.
extension Tiers {
    /// Evicts entries from every memory tier until the tier takes up at most this fraction of its current memory.
    ///
    /// - Returns: the number of bytes freed.
    package func reduceMemory(to share: Double) -> Int {
        let bytes = memory.reduce(to: share) + pixels.reduce(to: share)
        if bytes > 0 { _ = Self.trimHeap?(0) }
        return bytes
    }

    /// Frees half of the memory tiers when the machine is short of memory.
    ///
    /// - Parameter least: the number of bytes below which nothing is freed, because that would not help.
    package func yieldMemory(least: Int = 16_000_000) {
        let counters = [memory.records.counters, memory.originals.counters, memory.variants.counters, pixels.counters]
        if counters.reduce(0, { $0 + $1.bytes }) >= least { _ = reduceMemory(to: 0.5) }
    }

    /// Changes the budgets of the memory tiers, evicts entries that exceed them, and returns freed memory to the
    /// system.
    package func resizeMemory(to budgets: MemoryBudgets) {
        memory.records.resize(to: budgets.records)
        memory.originals.resize(to: budgets.originals)
        memory.variants.resize(to: budgets.variants)
        pixels.resize(to: budgets.pixels)
        _ = Self.trimHeap?(0)
    }

    /// glibc's `malloc_trim(3)`, which Swift does not import. Small bodies are in the allocator's arenas, which keep
    /// freed memory until they are trimmed.
    private static let trimHeap = dlsym(nil, "malloc_trim").map {
        unsafeBitCast($0, to: (@convention(c) (Int) -> CInt).self)
    }
}
