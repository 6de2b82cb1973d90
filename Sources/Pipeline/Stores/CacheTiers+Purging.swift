import Synchronization
import Variants

/// Purges, of this process and of others on the same folder.
extension CacheTiers {
    /// Whether memory may answer: no process has purged anything since this one last read what was purged. One load.
    var isMemoryCurrent: Bool {
        guard let disk else { return true }
        let hint = disk.generationHint
        // 0: the folder cannot tell, and look-ups on the disk have to.
        return hint == 0 || hint == knownGeneration.load(ordering: .acquiring)
    }

    /// Takes from memory what any process has purged since this one last looked; blocks on the disk. Trouble with the
    /// disk leaves memory unused, or where the folder cannot tell as it is.
    func catchUp() {
        guard let disk, !isMemoryCurrent || disk.generationHint == 0 else { return }
        catching.withLock { _ in
            let known = knownGeneration.load(ordering: .relaxed)
            guard let log = attempt({ () throws(StoreError) in try disk.purges(since: known) }),
                log.generation != known
            else { return }
            if let names = log.names {
                forget(names)
            } else {
                originals.removeAll()
                variants.removeAll()
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
        let result: Result<PurgeResult, StoreError> = await readers.run { [self] in
            // What was queued before the purge lands before it, so that it is purged too.
            writer.drain()
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
