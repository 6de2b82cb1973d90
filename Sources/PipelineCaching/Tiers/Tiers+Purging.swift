import PipelineSupport
import Synchronization

/// Purges, by this process and by others that use the same tiers.
extension Tiers {
    /// Whether memory may answer: no process has purged anything of the folder that this one does not know of.
    package var isMemoryCurrent: Bool { folder?.isCurrent ?? true }

    /// Whether records in memory may answer: nor has another machine.
    package var isCurrent: Bool { isMemoryCurrent && news?.isCurrent != false }

    /// Nanoseconds between two looks at the purges of tiers that are not the folder.
    private static let catchUpInterval: UInt64 = 1_000_000_000

    /// Removes from memory what other processes have purged from the folder.
    func catchUp() async {
        guard let folder, !folder.isCurrent else { return }
        do throws(StoreError) { try await folder.catchUp { [self] in forget($0) } } catch { links.first?.note(error) }
    }

    /// Removes from memory, in the background and at most once a second, what others have purged from farther tiers.
    package func catchUpWithFartherTiers() {
        guard let last = links.last, !last.isFolder else { return }
        let time = SystemClock.coarseNanoseconds
        let due = nextCatchUp.load(ordering: .relaxed)
        guard time >= due,
            nextCatchUp.compareExchange(expected: due, desired: time + Self.catchUpInterval, ordering: .relaxed)
                .exchanged
        else { return }
        Task { [self] in for link in links { await link.catchUp { forget($0) } } }
    }

    /// Counts and logs an error that costs no answer.
    package func note(_ error: StoreError) { links.first?.note(error) }

    /// Removes everything that a selection covers, in every tier; other processes on the folder find it gone at their next
    /// look-up, and no work begun before is stored afterwards.
    ///
    /// Throws if the folder fails; other tiers that fail are in the result. Memory is purged in any case.
    ///
    /// - Parameter isOwn: whether no other machine has carried it out in the tiers that they share.
    package func purge(_ selection: PurgeSelection, isOwn: Bool = true) async throws(StoreError) -> PurgeResult {
        var (selection, result) = (selection, PurgeResult())
        var failure: StoreError?
        let links = links.filter { isOwn || !$0.tier.wasPurgedElsewhere(selection) }
        for link in links { await link.distrust(selection, now: now()) }
        for (at, link) in links.enumerated() {
            do throws(StoreError) {
                let purged = try await link.purge(selection, now: now())
                if at == 0 { result = purged } else { result.digests.formUnion(purged.digests) }
                selection.digests.formUnion(purged.digests)
            } catch {
                if link.isFolder { failure = error } else { link.note(error) }
                result.unconfirmed.append(link.name)
            }
        }
        // A look-up may have copied a variant from a farther tier before it was purged there.
        if links.count > 1, selection.mode != .soft { await removeCopies(selection, before: links.count - 1) }
        // What is stored from now on carries a mark from after the purge.
        await catchUp()
        for link in self.links { await link.catchUp { forget($0) } }
        let inMemory = purgeMemory(selection)
        if self.links.isEmpty { result = inMemory }
        if let failure { throw failure }
        return result
    }

    private func purgeMemory(_ selection: PurgeSelection) -> PurgeResult {
        // A soft purge of the folder removed these names from memory. Entries that are there now were stored later.
        let result = selection.mode == .soft && folder != nil ? PurgeResult() : memory.purge(selection)
        if selection.mode != .soft { pixels.remove(named: result.digests.union(selection.sources)) }
        return result
    }

    /// Removes copies of a farther tier's entries from memory and the tiers before it.
    func removeCopies(_ selection: PurgeSelection, before tier: Int) async {
        for link in links[..<tier] {
            do throws(StoreError) { _ = try await link.purge(selection, now: now()) } catch { link.note(error) }
        }
        await catchUp()
        _ = purgeMemory(selection)
    }

    /// Has every record validated before it answers, because purges by other machines may have been missed. Work in flight is
    /// not stored.
    package func doubtAll() async throws(StoreError) {
        isDoubting.store(true, ordering: .releasing)
        defer { isDoubting.store(false, ordering: .releasing) }
        let everything = PurgeLog(mark: PurgeMark(0), names: nil)
        forget(everything)
        if let folder { _ = try await folder.doubtAll() }
        for link in links where !link.tier.wasPurgedElsewhere(.workInFlight) { link.distrustAll(now: now()) }
        await catchUp()
        // What was read from the folder before it was in doubt.
        forget(everything)
    }

    /// Empties memory and the folder.
    package func removeAll() async throws(StoreError) -> PurgeResult {
        let held = memory.statistics()
        defer { forget(PurgeLog(mark: PurgeMark(0), names: nil)) }
        if let folder { return try await folder.clear() }
        var result = PurgeResult()
        (result.records, result.originals, result.variants) =
            (held.records.entries, held.originals.entries, held.variants.entries)
        result.bytes = held.originals.bytes + held.variants.bytes
        return result
    }

    /// Removes from memory what was purged elsewhere.
    func forget(_ log: PurgeLog) {
        guard let names = log.names else {
            memory.removeAll()
            pixels.removeAll()
            return
        }
        pixels.remove(named: memory.forget(names, log.selections))
    }
}
