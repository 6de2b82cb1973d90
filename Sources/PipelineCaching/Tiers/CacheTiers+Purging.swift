import Synchronization
/// Purges, by this process and by others on the same folder.
extension CacheTiers {
    /// Whether memory may answer: no process has purged anything since this one last read the purges.
    package var isMemoryCurrent: Bool {
        // If the store gives no hints, only look-ups on the disk notice purges.
        guard let hint = disk?.generationHint else { return true }
        if hint == knownGeneration.load(ordering: .acquiring) { return true }
        return hint == 0 && GenerationPage.now() < unknownUntil.load(ordering: .relaxed)
    }

    /// Nanoseconds for which memory may answer after the disk could not report purges.
    private static let unknownLifetime: UInt64 = 100_000_000

    /// Removes from memory what any process has purged since this one last looked; blocks on the disk.
    func catchUp() {
        guard let disk, disk.generationHint == nil || !isMemoryCurrent else { return }
        catching.withLock { _ in
            let known = knownGeneration.load(ordering: .relaxed)
            let log = attempt { () throws(StoreError) in try disk.purges(since: known) }
            // If the folder fails or is read-only, memory still answers, and the folder is asked again soon.
            if disk.generationHint == 0 {
                unknownUntil.store(GenerationPage.now() + Self.unknownLifetime, ordering: .relaxed)
            }
            guard let log, log.generation != known else { return }
            if let names = log.names {
                forget(names)
            } else {
                memory.removeAll()
                pixels.removeAll()
            }
            knownGeneration.store(log.generation, ordering: .releasing)
        }
    }

    /// Removes everything that came from a source, in every tier of this process and on disk; other processes on the
    /// folder find it gone at their next look-up.
    package func purge(source: String) async throws(StoreError) -> PurgeResult {
        // Bytes supplied by a caller have no record; their source name contains their digest.
        let known: Set<Digest> = source.hasPrefix("bytes:") ? [String(source.dropFirst(6))] : []
        return try await purge { disk throws(StoreError) in
            try disk.purge(source: source, digests: known)
        } inMemory: { digests in
            forget(digests.union(known).union([source]))
        }
    }

    /// Purges a source that a request has changed. The request has been answered already, so disk errors are counted
    /// and logged like any other, and memory is purged regardless.
    package func invalidate(source: String) async {
        do throws(StoreError) {
            _ = try await purge(source: source)
        } catch {
            attempt { () throws(StoreError) in throw error }
        }
    }

    /// Purges every source of a selection; no work begun before is stored afterwards.
    package func purge(_ selection: SourceSelection) async throws(StoreError) -> PurgeResult {
        try await purge { disk throws(StoreError) in
            try disk.purge(selection)
        } inMemory: { digests in
            let purged = memory.purge(selection, digests: digests).digests
            pixels.remove(named: purged)
        }
    }

    private func purge(
        onDisk: @escaping @Sendable (any Store) throws(StoreError) -> PurgeResult, inMemory: (Set<Digest>) -> Void
    ) async throws(StoreError) -> PurgeResult {
        // On the writer's thread, after everything queued before, so that it is purged too; occupies no reader.
        let result: Result<PurgeResult, StoreError> = await writer.run { [self] in
            guard let disk else { return .success(PurgeResult()) }
            do throws(StoreError) {
                let result = try onDisk(disk)
                catchUp()
                return .success(result)
            } catch {
                return .failure(error)
            }
        }
        var digests: Set<Digest> = []
        if case .success(let purged) = result { digests = purged.digests }
        inMemory(digests)
        return try result.get()
    }

    private func forget(_ names: Set<String>) {
        let digests = memory.forget(names)
        pixels.remove(named: digests)
    }
}
