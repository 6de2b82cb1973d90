package import PipelineCaching

extension ImagePipeline {
    /// The variants that the cache folder stored last, the newest first; none without a folder, or if it cannot be read.
    package func recentVariants(_ count: Int) async -> [RecentVariant] {
        // An error of the disk has been counted and reported already.
        (try? await tiers.folder?.recentVariants(count)) ?? []
    }

    /// Length and digest of each variant in the cache folder that a recipe made and that is not its own original. Blocks on
    /// the disk.
    ///
    /// - Parameter recipe: canonical text.
    package func variants(madeBy recipe: String) -> [(length: Int, digest: String)] {
        // As above.
        (try? tiers.folder?.store.variants(madeBy: recipe)) ?? []
    }

    /// A variant as the cache folder holds it; nil if it does not.
    package func storedVariant(
        _ key: String, of original: String
    ) async -> (entry: VariantEntry, body: [UInt8])? {
        // As above. Memory is not asked, so that looking at variants evicts none.
        guard case .variant(let entry, let body?)? = try? await tiers.folder?.find(.variant(key, of: original), .body)
        else { return nil }
        return (entry, body)
    }
}
