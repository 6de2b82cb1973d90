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
