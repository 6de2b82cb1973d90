import PipelineSupport

/// Purges of what no index finds: a search through all entries of the folder and of memory, in pieces, each of which is
/// purged by name before the next is read. Tiers behind the folder purge the names found, also those that other machines
/// use: each machine knows other names.
extension Tiers {
    /// Purges the sources of which a record matches.
    ///
    /// - Parameters:
    ///   - texts: a record whose fields contain none of these is skipped unread.
    ///   - matches: decides about a source, by the fields of one of its records.
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

    /// Purges the sources whose names match.
    package func purge(
        mode: PurgeMode, sourcesWhere matches: @escaping @Sendable (String) -> Bool
    ) async throws(StoreError) -> PurgeResult {
        try await purging(mode) { store, place throws(StoreError) in
            try store.sources(in: place, where: matches)
        } inMemory: {
            $0.sources { matches($0.source) }
        }
    }

    /// Purges all variants of the originals of which a variant's recipe matches; the originals stay.
    package func purge(
        recipesWhere matches: @escaping @Sendable (String) -> Bool
    ) async throws(StoreError) -> PurgeResult {
        try await purging(.variantsOnly, areDigests: true) { store, place throws(StoreError) in
            try store.originals(in: place, whereRecipe: matches)
        } inMemory: {
            $0.originals(whereRecipe: matches)
        }
    }

    /// - Parameters:
    ///   - areDigests: whether digests of originals are found instead of sources.
    ///   - search: searches one piece of the folder, on a thread of the look-ups.
    private func purging(
        _ mode: PurgeMode, areDigests: Bool = false,
        _ search: @escaping @Sendable (DiskStore, FolderSearch) throws(StoreError) -> FolderSearch.Piece,
        inMemory: @Sendable (MemoryTier) -> Set<ByteString>
    ) async throws(StoreError) -> PurgeResult {
        // What is in flight is found by no search. What is queued is stored before this purge, and found.
        var result = try await purge(.workInFlight)
        func purgeFound(_ found: Set<ByteString>) async throws(StoreError) {
            var left = found
            while !left.isEmpty {
                // A set of strings has one of two names that differ in bytes alone; the next turn has the other.
                let names = Set(left.map(\.text))
                left.subtract(names.map(ByteString.init))
                let selection =
                    areDigests
                    ? PurgeSelection(sources: PurgeSelection.workInFlight.sources, digests: names, mode: mode)
                    : PurgeSelection(sources: names, mode: mode)
                result.add(try await purge(selection))
                // There may be very many.
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
