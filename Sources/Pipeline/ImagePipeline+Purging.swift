import HTTPCaching
public import PipelineCaching
import PipelineFetching
import PipelineFleet
import PipelineSupport

extension ImagePipeline {
    /// Removes the records of sources, their bodies and all their variants from every tier, including the memory of
    /// other processes that share the cache folder. The other machines of the fleet apply the purge too.
    /// `PurgeSelection` has an example.
    ///
    /// The time needed grows with the number of entries removed. Work in flight for these sources is not stored.
    ///
    /// - Parameters:
    ///   - selection: the sources, tags, masks or overlays to purge.
    ///   - mode: whether to remove records, bodies and variants, to remove only variants, or to mark records as stale.
    ///     Defaults to `hard`.
    /// - Throws: `invalidSource` if a source is invalid, or `cacheUnavailable` if the folder fails. Memory is purged
    ///   even then.
    @discardableResult
    public func purge(
        _ selection: PurgeSelection, mode: PurgeMode = .hard
    ) async throws(PipelineError) -> PurgeResult {
        var named = selection.prefixes
        for text in selection.askedPrefixes {
            if let own = ownName(text, isPrefix: true) {
                named.append(own)
            } else {
                named += try SourceSelection(prefix: text).prefixes
            }
        }
        let prefixes = named.map(admit.names.purged)
        var purge = Purge(
            sources: Set(selection.names.map(admit.names.name) + prefixes.flatMap(\.names)),
            prefixes: Set(prefixes.flatMap(\.prefixes)), tags: selection.tags, masks: selection.masks,
            overlays: selection.overlays, mode: mode)
        for asked in selection.asked {
            var request = ImageRequest(asked.source)
            request.sourceID = asked.id
            purge.sources.insert(admit.names.name(try admit.identify(request).source))
        }
        return try await purging { [purge] () async throws(StoreError) in try await purger(purge) }
    }

    /// Whether the cache folder belongs to a machine in a fleet.
    package func isOfFleet() async -> Bool {
        if case .position(_) = await PurgeFeed.start(in: tiers.folder) { true } else { false }
    }

    /// Returns the stored name of an original that one of the program's own transports or providers supplies, or nil if
    /// the text names no such original.
    ///
    /// - Parameter isPrefix: whether to accept a prefix of such a name, including only a scheme (`photos:`).
    package func ownName(_ text: String, isPrefix: Bool = false) -> String? {
        let scheme = text.dropLast().lowercased()
        let isScheme = isPrefix && text.hasSuffix(":") && admit.ownSchemes.contains(scheme)
        return isScheme ? scheme + ":" : SourceURL(text, ofAny: admit.ownSchemes)?.normalized
    }

    /// Returns, in sorted order, those of the given stored names for which this machine has no record.
    package func unknown(among names: Set<String>) async -> [String] {
        var unknown: [String] = []
        for name in names.sorted() {
            let found = await tiers.records(of: admit.names.name(name), again: tiers.folder != nil)
            if found.records.isEmpty { unknown.append(name) }
        }
        return unknown
    }

    func purging(
        _ body: () async throws(StoreError) -> PurgeResult
    ) async throws(PipelineError) -> PurgeResult {
        do throws(StoreError) { return try await body() } catch { throw PipelineError(error) }
    }
}
