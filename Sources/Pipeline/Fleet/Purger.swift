import PipelineCaching
import Variants

extension TierName {
    /// In `PurgeResult.unconfirmed`: the other machines of the fleet have not been told yet.
    public static let fleet = TierName("fleet")
}

/// Carries out purges here, and has the other machines of the fleet told.
struct Purger: Sendable {
    let tiers: Tiers
    /// nil without a fleet.
    let feed: PurgeFeed?

    func callAsFunction(_ purge: Purge) async throws(StoreError) -> PurgeResult {
        let carriedOut = await Result { () async throws(StoreError) in try await carryOut(purge) }
        // Even if the folder fails here.
        let isTold = await feed?.tell(purge) ?? true
        var result = try carriedOut.get()
        if !isTold { result.unconfirmed.append(.fleet) }
        return result
    }

    /// Purges a source that a request has changed. The request has been answered already, so errors are counted and logged
    /// like any other, and memory is purged regardless.
    func invalidate(_ source: String) async {
        let purge = Purge(sources: [source])
        do throws(StoreError) { _ = try await carryOut(purge) } catch { tiers.note(error) }
        feed?.tellLater(purge)
    }

    /// - Parameter isOwn: whether this machine was asked for it.
    func carryOut(_ purge: Purge, isOwn: Bool = true) async throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        if purge.isUnknown {
            try await tiers.doubtAll()
            return result
        }
        // Bytes supplied by a caller have no record; their source name contains their digest.
        let bytes = purge.sources.filter { $0.hasPrefix("bytes:") }
        for source in bytes {
            let own = PurgeSelection(sources: [source], digests: [String(source.dropFirst(6))], mode: purge.mode)
            result.add(try await tiers.purge(own, isOwn: isOwn))
        }
        let matching = purge.prefixes.isEmpty ? nil : SourceSelection(prefixes: purge.prefixes.sorted())
        let named = PurgeSelection(sources: purge.sources.subtracting(bytes), matching: matching, mode: purge.mode)
        if !named.sources.isEmpty || matching != nil { result.add(try await tiers.purge(named, isOwn: isOwn)) }
        if !purge.tags.isEmpty { result.add(try await remove(tags: purge.tags, purge.mode)) }
        let names = purge.masks.union(purge.overlays)
        if names.isEmpty { return result }
        result.add(
            try await tiers.purge { text in
                guard names.contains(where: { text.contains($0) }) else { return false }
                // A recipe that does not parse may use one: rendering it again does no harm.
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
