import PipelineSupport
import Synchronization

/// Purges by this process and by other processes that use the same tiers.
extension Tiers {
    /// Whether entries in memory may be used, because this process knows all purges of the folder by other processes.
    package var isMemoryCurrent: Bool { folder?.isCurrent ?? true }

    /// Whether records in memory may be used, because this process also knows all purges by other machines.
    package var isCurrent: Bool { isMemoryCurrent && purgeUpdates?.isCurrent != false }

    /// The number of nanoseconds between checks for purges of tiers other than the folder.
    private static let catchUpInterval: UInt64 = 1_000_000_000

    /// Removes entries from memory that other processes have purged from the folder.
    func catchUp() async {
        guard let folder, !folder.isCurrent else { return }
        do throws(StoreError) {
            try await folder.catchUp { [self] log in
                forget(log)
                for link in links { link.distrust(log, now: now()) }
            }
        } catch {
            links.first?.note(error)
        }
    }

    /// Removes copies of entries that other machines have purged from farther tiers. This happens in the background, at
    /// most once per second.
    package func catchUpWithFartherTiers() {
        guard let last = links.last, !last.isFolder else { return }
        let time = SystemClock.coarseNanoseconds
        let due = nextCatchUp.load(ordering: .relaxed)
        guard time >= due,
            nextCatchUp.compareExchange(expected: due, desired: time + Self.catchUpInterval, ordering: .relaxed)
                .exchanged
        else { return }
        Task { [self] in for link in links { await link.catchUp() } }
    }

    /// Counts and logs an error that does not affect a response.
    package func note(_ error: StoreError) { links.first?.note(error) }

    /// Removes everything that a selection covers in every tier. Other processes that use the folder no longer find
    /// these entries at their next look-up, and earlier work is no longer stored.
    ///
    /// Throws if the folder fails. If other tiers fail, the result contains them. Memory is always purged.
    ///
    /// - Parameter isOwn: false if another machine has already applied the purge in the shared tiers.
    package func purge(_ selection: EntrySelection, isOwn: Bool = true) async throws(StoreError) -> PurgeResult {
        var (selection, result) = (selection, PurgeResult())
        var failure: StoreError?
        let links = links.filter { isOwn || !$0.wasPurgedElsewhere(selection) }
        for link in links { await link.distrust(selection, now: now()) }
        for (at, link) in links.enumerated() {
            do throws(StoreError) {
                let purged = try await link.purge(selection, now: now())
                if at == 0 { result = purged } else { result.digests.formUnion(purged.digests) }
                selection.digests.formUnion(purged.digests)
            } catch {
                result.unconfirmed.append(link.name)
                if link.isFolder {
                    failure = error
                    continue
                }
                link.note(error)
                if selection != .workInFlight { result.unconfirmedSelections.append(selection) }
            }
        }
        // A look-up may have copied a variant from a farther tier before that tier was purged.
        if links.count > 1, selection.mode != .soft { await removeCopies(selection, before: links.count - 1) }
        // Entries stored from now on carry a mark from after the purge.
        await catchUp()
        let inMemory = purgeMemory(selection)
        if self.links.isEmpty { result = inMemory }
        if let failure { throw failure }
        return result
    }

    private func purgeMemory(_ selection: EntrySelection) -> PurgeResult {
        // A soft purge of the folder removed these names from memory. Entries that are there now were stored later.
        let result = selection.mode == .soft && folder != nil ? PurgeResult() : memory.purge(selection)
        if selection.mode != .soft { pixels.remove(named: result.digests.union(selection.sources)) }
        return result
    }

    /// Removes copies of a tier's entries from memory and from nearer tiers.
    func removeCopies(_ selection: EntrySelection, before tier: Int) async {
        for link in links[..<tier] {
            do throws(StoreError) { _ = try await link.purge(selection, now: now()) } catch { link.note(error) }
        }
        await catchUp()
        _ = purgeMemory(selection)
    }

    /// Whether there are tiers behind the folder.
    package var hasFartherTiers: Bool { links.contains { !$0.isFolder } }

    /// Purges the tiers behind the folder again. Returns whether all of them have confirmed the purge.
    package func purgeFarther(_ selection: EntrySelection) async -> Bool {
        var isConfirmed = true
        for link in links where !link.isFolder {
            await link.distrust(selection, now: now())
            do throws(StoreError) { _ = try await link.purge(selection, now: now()) } catch {
                link.note(error)
                isConfirmed = false
            }
        }
        return isConfirmed
    }

    /// Marks every record so that it is validated before its next use, because purges by other machines may have been
    /// missed. Invalidates work in progress.
    package func markAllForValidation() async throws(StoreError) {
        isDoubting.store(true, ordering: .releasing)
        defer { isDoubting.store(false, ordering: .releasing) }
        let everything = PurgeLog(mark: PurgeMark(0), names: nil)
        forget(everything)
        if let folder { _ = try await folder.markAllForValidation() }
        for link in links where !link.wasPurgedElsewhere(.workInFlight) { link.distrustAll(now: now()) }
        await catchUp()
        // Memory may contain entries that were read from the folder before its records were marked.
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

    /// Removes entries from memory that were purged elsewhere.
    func forget(_ log: PurgeLog) {
        guard let names = log.names else {
            memory.removeAll()
            pixels.removeAll()
            return
        }
        pixels.remove(named: memory.forget(names, log.selections))
    }
}
