import Synchronization
import Variants

/// Purges, of this process and of others on the same folder.
extension CacheTiers {
    /// Whether memory may answer: no process has purged anything since this one last read what was purged.
    var isMemoryCurrent: Bool {
        // Without hints only look-ups on the disk learn of purges.
        guard let hint = disk?.generationHint else { return true }
        if hint == knownGeneration.load(ordering: .acquiring) { return true }
        return hint == 0 && GenerationPage.now() < unknownUntil.load(ordering: .relaxed)
    }

    /// Nanoseconds for which memory may answer after the disk could not say what was purged.
    private static let unknownLifetime: UInt64 = 100_000_000

    /// Removes from memory what any process has purged since this one last looked; blocks on the disk.
    func catchUp() {
        guard let disk, disk.generationHint == nil || !isMemoryCurrent else { return }
        catching.withLock { _ in
            let known = knownGeneration.load(ordering: .relaxed)
            let log = attempt { () throws(StoreError) in try disk.purges(since: known) }
            // A folder that fails or may only be read costs no answer, and is asked again soon.
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
    /// folder find it gone with their next look-up.
    func purge(source: String) async throws(PipelineError) -> PurgeResult {
        // The bytes of a caller have no record; their name tells their digest.
        let known: Set<Digest> = source.hasPrefix("bytes:") ? [String(source.dropFirst(6))] : []
        return try await purge { disk throws(StoreError) in
            try disk.purge(source: source, digests: known)
        } inMemory: { digests in
            forget(digests.union(known).union([source]))
        }
    }

    /// The same where a request has changed the source, which has been answered already: trouble with the disk is
    /// counted and warned of like any other, and memory does not answer all the same.
    func invalidate(source: String) async {
        do throws(PipelineError) {
            _ = try await purge(source: source)
        } catch {
            attempt { () throws(StoreError) in throw StoreError(.io, error.message) }
        }
    }

    /// The same of every source of a selection; nothing that was begun before is stored afterwards.
    func purge(_ selection: SourceSelection) async throws(PipelineError) -> PurgeResult {
        try await purge { disk throws(StoreError) in
            try disk.purge(selection)
        } inMemory: { digests in
            let purged = memory.purge(selection, digests: digests).digests
            pixels.remove(named: purged)
        }
    }

    private func purge(
        onDisk: @escaping @Sendable (any Store) throws(StoreError) -> PurgeResult, inMemory: (Set<Digest>) -> Void
    ) async throws(PipelineError) -> PurgeResult {
        // On the writer's thread: after all that was queued before, so that it is purged too, and without a look-up thread.
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
        switch result {
        case .success(let purged):
            return purged
        case .failure(let error):
            throw PipelineError(.cacheUnavailable, error.description, cause: error)
        }
    }

    private func forget(_ names: Set<String>) {
        let digests = memory.forget(names)
        pixels.remove(named: digests)
    }
}
