import PipelineSupport

/// Purges for which there is no index. They search all entries of the folder and of memory in pieces. The entries found
/// in each piece are purged by name before the next piece is read. Tiers behind the folder also purge the found names,
/// including tiers that other machines use, because each machine knows different names.
extension Tiers {
    /// Purges the sources that have a matching record.
    ///
    /// - Parameters:
    ///   - texts: strings to search for. A record whose header fields contain none of these strings is skipped without
    ///     being decoded.
    ///   - matches: decides whether to purge a source, given the header fields of one of its records.
    package func purge(
        recordsContaining texts: [String], mode: PurgeMode,
        where matches: @escaping @Sendable (OriginalRecord) -> Bool
    ) async throws(StoreError) -> PurgeResult {
        try await purging(mode) { store, place throws(StoreError) in
            try store.sources(in: place, containing: texts, where: matches)
        } inMemory: {
            $0.sources(where: matches)
        }
    }

    /// Purges the sources with matching names.
    package func purge(
        mode: PurgeMode, sourcesWhere matches: @escaping @Sendable (String) -> Bool
    ) async throws(StoreError) -> PurgeResult {
        try await purging(mode) { store, place throws(StoreError) in
            try store.sources(in: place, where: matches)
        } inMemory: {
            $0.sources { matches($0.source) }
        }
    }

    /// Purges all variants of the originals that have a variant with a matching recipe. The originals stay.
    package func purge(
        recipesWhere matches: @escaping @Sendable (String) -> Bool
    ) async throws(StoreError) -> PurgeResult {
        try await purging(.variantsOnly, areDigests: true) { store, place throws(StoreError) in
            try store.originals(in: place, whereRecipe: matches)
        } inMemory: {
            $0.originals(whereRecipe: matches)
        }
    }

    /// Purges the names that a search finds.
    ///
    /// - Parameters:
    ///   - areDigests: whether the search finds digests of originals instead of sources.
    ///   - search: searches one piece of the folder, on a look-up thread.
    private func purging(
        _ mode: PurgeMode, areDigests: Bool = false,
        _ search: @escaping @Sendable (DiskStore, FolderSearch) throws(StoreError) -> FolderSearch.Piece,
        inMemory: @Sendable (MemoryTier) -> Set<ByteString>
    ) async throws(StoreError) -> PurgeResult {
        // A search cannot find requests in progress, so invalidate them first. Queued entries are stored before this
        // purge, so the search finds them.
        var result = try await purge(.workInFlight)
        func purgeFound(_ found: Set<ByteString>) async throws(StoreError) {
            var left = found
            while !left.isEmpty {
                // A set of strings contains only one of two names that differ only in their bytes. The next round finds
                // the other name.
                let names = Set(left.map(\.text))
                left.subtract(names.map(ByteString.init))
                let selection =
                    areDigests
                    ? EntrySelection(sources: EntrySelection.workInFlight.sources, digests: names, mode: mode)
                    : EntrySelection(sources: names, mode: mode)
                result.add(try await purge(selection))
                // Do not collect the digests, because there may be very many.
                result.digests = []
            }
        }
        if let folder {
            var place = FolderSearch()
            while !place.isAtEnd {
                let piece = try await folder.readers.result { [place] () throws(StoreError) in
                    try search(folder.store, place)
                }
                try await purgeFound(piece.found)
                place = piece.next
            }
        }
        try await purgeFound(inMemory(memory))
        return result
    }
}
