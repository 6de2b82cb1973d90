package import PipelineCaching

extension ImagePipeline {
    /// Returns the variants stored most recently in the cache folder, newest first. Returns an empty array if there is
    /// no folder or it cannot be read.
    package func recentVariants(_ count: Int) async -> [RecentVariant] {
        // A disk error has already been counted and reported.
        (try? await tiers.folder?.recentVariants(count)) ?? []
    }

    /// Returns the length and digest of each variant in the cache folder that was rendered with a recipe. Excludes
    /// variants that are identical to their original. Blocks on disk I/O.
    ///
    /// - Parameter recipe: the canonical form of the recipe.
    package func variants(madeBy recipe: String) -> [(length: Int, digest: String)] {
        // Errors are ignored, as in the method above.
        (try? tiers.folder?.store.variants(madeBy: recipe)) ?? []
    }

    /// Returns a variant as stored in the cache folder, or nil if the folder does not have it.
    package func storedVariant(
        _ key: String, of original: String
    ) async -> (entry: VariantEntry, body: [UInt8])? {
        // Errors are ignored, as in the methods above. Memory is not queried, so that inspecting variants does not
        // evict entries.
        guard case .variant(let entry, let body?)? = try? await tiers.folder?.find(.variant(key, of: original), .body)
        else { return nil }
        return (entry, body)
    }
}
