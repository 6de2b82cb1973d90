import PipelineSupport

/// A stored variant and the source of its original.
package struct RecentVariant: Sendable, Hashable {
    package var entry: VariantEntry
    /// One of the sources that have had the original, or nil if no such source is stored any more.
    package var source: String?
}

extension DiskTier {
    /// Returns the most recently stored variants, newest first. Does not count accesses.
    package func recentVariants(_ count: Int) async throws(StoreError) -> [RecentVariant] {
        try await readers.result { [self] () throws(StoreError) in try store.recentVariants(count) }
    }
}

extension DiskStore {
    /// Returns the length and digest of each variant that a recipe rendered and that is not its own original. Reads the
    /// complete table.
    package func variants(madeBy recipe: String) throws(StoreError) -> [(length: Int, digest: String)] {
        try lookUp { view throws(StoreError) in
            try view.connection.rows(
                "SELECT length, digest FROM variants WHERE recipe = ?1 AND digest <> original", .text(recipe)
            ) { (length: $0.count(0), digest: $0.digestKey(1)) }
            .compactMap { row in row.digest.map { (length: row.length, digest: $0.text) } }
        } ?? []
    }

    /// Returns the most recently stored variants. Row numbers follow the order of storing, so neither this query nor
    /// the look-up of a source reads the complete table.
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
