import PipelineCaching
import Variants

extension TierName {
    /// Listed in `PurgeResult.unconfirmed` if the other machines of the fleet may not know about the purge yet.
    public static let fleet = TierName("fleet")
}

/// Applies purges on this machine and publishes them to the other machines of the fleet.
struct Purger: Sendable {
    let tiers: Tiers
    /// The connection to the fleet, or nil if there is no fleet.
    let feed: PurgeFeed?
    let unconfirmed: UnconfirmedPurges

    func callAsFunction(_ purge: Purge) async throws(StoreError) -> PurgeResult {
        let carriedOut = await Result { () async throws(StoreError) in try await carryOut(purge) }
        if case .failure = carriedOut { feed?.repeatOwn() }
        // The purge is published even if the folder on this machine fails.
        let isPublished = await feed?.publish(purge) ?? true
        var result = try carriedOut.get()
        if !isPublished { result.unconfirmed.append(.fleet) }
        return result
    }

    /// Purges a source that a request has changed. The request has already been answered, so errors are only counted
    /// and logged. Memory is purged even then.
    func invalidate(_ source: String) async {
        let purge = Purge(sources: [source])
        do throws(StoreError) { _ = try await carryOut(purge) } catch {
            tiers.note(error)
            feed?.repeatOwn()
        }
        feed?.publishLater(purge)
    }

    /// Applies a purge on this machine.
    ///
    /// - Parameter isOwn: whether the purge was requested on this machine.
    func carryOut(_ purge: Purge, isOwn: Bool = true) async throws(StoreError) -> PurgeResult {
        let result = try await carryOutOnce(purge, isOwn)
        await unconfirmed.add(result.unconfirmedSelections)
        return result
    }

    private func carryOutOnce(_ purge: Purge, _ isOwn: Bool) async throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        if purge.isUnknown {
            try await tiers.markAllForValidation()
            return result
        }
        let named = purge.selection
        if !named.sources.isEmpty || named.matching != nil { result.add(try await tiers.purge(named, isOwn: isOwn)) }
        if !purge.tags.isEmpty { result.add(try await remove(tags: purge.tags, purge.mode)) }
        let names = purge.masks.union(purge.overlays)
        if names.isEmpty { return result }
        result.add(
            try await tiers.purge { text in
                guard names.contains(where: { text.contains($0) }) else { return false }
                // A recipe that does not parse may use one of the names. Rendering such a variant again is harmless.
                guard let recipe = try? Recipe(text) else { return true }
                return recipe.maskNames.contains(where: purge.masks.contains)
                    || recipe.overlayNames.contains(where: purge.overlays.contains)
            })
        return result
    }

    private func remove(tags: Set<String>, _ mode: PurgeMode) async throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        let own = tags.filter(SourceTags.isOwn)
        if !own.isEmpty {
            result.add(try await tiers.purge(mode: mode) { own.contains(SourceTags.own($0)) })
        }
        result.add(
            try await tiers.purge(recordsContaining: tags.sorted(), mode: mode) { record in
                SourceTags.named(in: record.response.fields).contains(where: tags.contains)
            })
        return result
    }
}
