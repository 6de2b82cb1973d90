extension DiskStore {
    /// Returns a variant with its body. Returns nil if it is not stored or was damaged.
    package func variant(key: String, of original: String) throws(StoreError) -> (entry: VariantEntry, body: [UInt8])? {
        guard let digits = DigestKey(key), let original = DigestKey(original) else {
            notes.note(.variants) { $0.misses += 1 }
            return nil
        }
        let found = try found(in: .variants, longest: .max) {
            view throws(StoreError) -> (entry: VariantEntry, located: UncheckedEntry)? in
            let found = try view.connection.first(
                Self.variantByKey, .digest(digits), .digest(original)
            ) {
                (
                    row: VariantRow($0), digest: $0.digestKey(3), hasBody: !$0.isNull(14), bytes: $0.blob(13),
                    body: IndexTransaction.StoredBody($0, at: 14)
                )
            }
            guard let (row, digest, hasBody, bytes, body) = found else { return nil }
            guard let entry = row.listed?.entry, let digest, hasBody else {
                try view.removeDamaged(.variants, row: row.id)
                return nil
            }
            return (entry, UncheckedEntry(row: row.id, digest: digest, cost: entry.cost, body: body, bytes: bytes))
        }
        guard let found, case .bytes(let body) = found.body else { return nil }
        return (found.entry, body)
    }

    private static let variantByKey = """
        SELECT \(VariantRow.columns), data, \(IndexTransaction.bodyColumns) FROM variants LEFT JOIN bodies \
        ON bodies.id = body AND bodies.digest = variants.digest WHERE \(DiskSchema.equal("key", "?1")) AND original = ?2
        """

    /// Returns a variant without its body. The body may turn out to be damaged. Does not count an access.
    func variantEntry(key: String, of original: String) throws(StoreError) -> VariantEntry? {
        guard let digits = DigestKey(key), let original = DigestKey(original) else { return nil }
        return try lookUp { view throws(StoreError) in
            try view.connection.first(
                """
                SELECT \(VariantRow.columns) FROM variants JOIN bodies ON bodies.id = body \
                AND bodies.digest = variants.digest WHERE \(DiskSchema.equal("key", "?1")) AND original = ?2
                """, .digest(digits), .digest(original)
            ) { VariantRow($0) }?.listed?.entry
        }
    }

    /// Stores a variant, replacing the variant under the same key.
    ///
    /// - Parameters:
    ///   - generation: `generationNow()` when the work began.
    ///   - source: the source of the variant's original, so that a purge of that source finds the variant even if the
    ///     source's record has changed in the meantime.
    /// - Returns: false if the variant is larger than the budget, if every stored entry is worth more to the policy, or
    ///   if the original or source was purged in the meantime.
    @discardableResult
    package func storeVariant(
        _ entry: VariantEntry, body: [UInt8], generation: UInt64, source: String? = nil
    ) throws(StoreError) -> Bool {
        guard body.count == entry.length else {
            throw StoreError(.invalid, "the variant has \(body.count) bytes, but its entry says \(entry.length)")
        }
        return try storing(entry.digest, .bytes(body), tier: .variants) { transaction, incoming throws(StoreError) in
            let names = [entry.originalDigest] + (source.map { [$0] } ?? [])
            guard try transaction.mayStore(names, source: source, generation: generation) else { return false }
            return try transaction.addVariant(entry, body, incoming, source: source)
        }
    }
}
