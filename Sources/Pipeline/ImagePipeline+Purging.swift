import HTTPCaching
public import PipelineCaching
import PipelineFetching
import PipelineSupport

extension ImagePipeline {
    /// Removes a source's records, bodies and all their variants from every tier, including the memory of other processes
    /// that share the cache folder, and has the other machines of the fleet do so too.
    ///
    /// - Parameters:
    ///   - source: as in the requests for it.
    ///   - sourceID: `ImageRequest.sourceID` of the requests for it; nil, the default, if they have none.
    ///   - mode: whether all of it is removed, or only variants, or records are made stale.
    public func purge(
        _ source: ImageSource, sourceID: String? = nil, mode: PurgeMode = .hard
    ) async throws(PipelineError) -> PurgeResult {
        var request = ImageRequest(source)
        request.sourceID = sourceID
        return try await purge(name: admit.identify(request).source, mode: mode)
    }

    /// Purges a source given as text: a URL, a provider's name (`photos:42`) or a path, as in `image(for:recipe:)`.
    @discardableResult
    public func purge(_ source: String, mode: PurgeMode = .hard) async throws(PipelineError) -> PurgeResult {
        try await purge(ImageSource(source), mode: mode)
    }

    /// Purges a source by its `OriginalRecord.source` name: a normalised URL, `file:` and an absolute path, `id:` and a
    /// `sourceID`, or `bytes:` and the SHA-256 of the given bytes.
    public func purge(name: String, mode: PurgeMode = .hard) async throws(PipelineError) -> PurgeResult {
        try await purge(Purge(sources: [admit.names.name(name)], mode: mode))
    }

    /// Purges many sources at once, by URL prefix or by host. The time it takes grows with what it removes.
    /// What is in flight of these sources when it starts is not stored.
    public func purge(
        _ selection: SourceSelection, mode: PurgeMode = .hard
    ) async throws(PipelineError) -> PurgeResult {
        try await purge(names: [], prefixes: selection.prefixes, mode: mode)
    }

    /// The stored name of an original that the program has itself; nil for other texts.
    ///
    /// - Parameter isPrefix: whether the beginning of such names will do, `photos:` alone too.
    package func ownName(_ text: String, isPrefix: Bool = false) -> String? {
        let isScheme = isPrefix && text.hasSuffix(":") && admit.ownSchemes.contains(String(text.dropLast()))
        return isScheme ? text : SourceURL(text, ofAny: admit.ownSchemes)?.normalised
    }

    /// Those of these stored names that this machine has no record of, sorted.
    package func unknown(among names: Set<String>) async -> [String] {
        var unknown: [String] = []
        for name in names.sorted() {
            let found = await tiers.records(of: admit.names.name(name), again: tiers.folder != nil)
            if found.records.isEmpty { unknown.append(name) }
        }
        return unknown
    }

    package func purge(
        names: Set<String>, prefixes: [String], mode: PurgeMode
    ) async throws(PipelineError) -> PurgeResult {
        let purged = prefixes.map(admit.names.purged)
        let names = Set(names.map(admit.names.name) + purged.flatMap(\.names))
        return try await purge(Purge(sources: names, prefixes: Set(purged.flatMap(\.prefixes)), mode: mode))
    }

    /// Purges every source of which a stored response has one of these tags, in its `Cache-Tag` or `Surrogate-Key`
    /// fields, and those with a tag `src-` and the first 16 hexadecimal digits of the SHA-256 of their name.
    ///
    /// Searches all records of the cache folder and of memory; a source whose record has been evicted is found by its
    /// own tag only. Work in flight when it starts is not stored, whatever its source.
    public func purge(tags: Set<String>, mode: PurgeMode = .hard) async throws(PipelineError) -> PurgeResult {
        try await purge(Purge(tags: tags, mode: mode))
    }

    /// Removes the variants of every original of which a stored variant uses one of these masks or overlays; originals
    /// stay. A changed mask never meets an old variant, so this is for masks whose variants should not be stored at all.
    ///
    /// Searches all variants of the cache folder and of memory. Work in flight when it starts is not stored.
    public func purge(masks: Set<String>, overlays: Set<String> = []) async throws(PipelineError) -> PurgeResult {
        try await purge(Purge(masks: masks, overlays: overlays))
    }

    private func purge(_ purge: Purge) async throws(PipelineError) -> PurgeResult {
        try await purging { () async throws(StoreError) in try await purger(purge) }
    }

    func purging(
        _ body: () async throws(StoreError) -> PurgeResult
    ) async throws(PipelineError) -> PurgeResult {
        do throws(StoreError) { return try await body() } catch { throw PipelineError(error) }
    }
}
