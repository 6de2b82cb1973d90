import PipelineSupport

/// A stored variant and where its original came from.
package struct RecentVariant: Sendable, Hashable {
    package var entry: VariantEntry
    /// One of the sources that have had the original; nil if none is stored any more.
    package var source: String?
}

extension DiskTier {
    /// The variants stored last, the newest first; counts no access.
    package func recentVariants(_ count: Int) async throws(StoreError) -> [RecentVariant] {
        try await readers.result { [self] () throws(StoreError) in try store.recentVariants(count) }
    }
}

extension DiskStore {
    /// Length and digest of each variant that a recipe made and that is not its own original. Reads the whole table.
    package func variants(madeBy recipe: String) throws(StoreError) -> [(length: Int, digest: String)] {
        try lookUp { view throws(StoreError) in
            try view.connection.rows(
                "SELECT length, digest FROM variants WHERE recipe = ?1 AND digest <> original", .text(recipe)
            ) { (length: $0.count(0), digest: $0.digestKey(1)) }
            .compactMap { row in row.digest.map { (length: row.length, digest: $0.text) } }
        } ?? []
    }

    /// Rows are numbered as they are stored, so neither this nor the look-up of a source reads the whole table.
    fileprivate func recentVariants(_ count: Int) throws(StoreError) -> [RecentVariant] {
        try lookUp { view throws(StoreError) in
            var found: [RecentVariant] = []
            let rows = try view.connection.variantRows("ORDER BY variants.id DESC LIMIT ?1", [.integer(count)])
            for entry in rows.compactMap(\.listed?.entry) {
                guard let original = DigestKey(entry.originalDigest) else { continue }
                let source = try view.connection.first(
                    "SELECT source FROM records WHERE \(DiskSchema.equal("digest", "?1")) LIMIT 1", .digest(original)
                ) { $0.text(0) }
                found.append(RecentVariant(entry: entry, source: source))
            }
            return found
        } ?? []
    }
}
