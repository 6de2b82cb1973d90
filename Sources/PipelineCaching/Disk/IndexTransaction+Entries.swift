import HTTPCaching

/// Insertion and removal of entries.
extension IndexTransaction {
    // MARK: Inserting

    /// Stores a record, replacing the record with the same source and selection. A body that only the replaced record
    /// refers to is removed, unless the new record has the same digest.
    ///
    /// - Returns: whether the record is stored now.
    func replace(_ record: OriginalRecord) throws(StoreError) -> Bool {
        guard let digest = DigestKey(record.digest) else {
            throw StoreError(.invalid, "not a digest of 64 hexadecimal digits: \(record.digest.prefix(80))")
        }
        let fields = EntryCoding.encode(record.response.fields)
        let selecting = EntryCoding.encode(record.response.selecting)
        let former = try connection.first(
            """
            SELECT id, size, accesses, digest FROM records WHERE source = ?1 AND selecting = ?2 AND provisional = ?3
            """, .text(record.source), .blob(selecting), .integer(record.isProvisional ? 1 : 0)
        ) { (id: $0.integer(0), size: $0.count(1), accesses: $0.count(2), digest: $0.digestKey(3)) }
        var accesses = 0
        if let former {
            try connection.run("DELETE FROM records WHERE id = ?1", .integer(former.id))
            uncharge(.records, former.size)
            accesses = former.accesses + (index.notes.takeAccess(.records, row: former.id)?.count ?? 0)
        }
        let size = DiskTable.overhead + record.source.utf8.count + fields.count + selecting.count
        // A body and its validators are useless without a record, so losing a record costs as much as a fetch.
        let position = try admit(
            .records, GhostKey(text: record.source, selecting: selecting), size: size, cost: 30, accesses: accesses)
        var isKept = false
        if let position {
            try connection.run(
                """
                INSERT INTO records (size, cost, accesses, clock, priority, last_access, source, selecting, digest, length, \
                status, request_time, response_time, fetch_milliseconds, stored, media_type, width, height, details, \
                fields, final_url, assigned_lifetime, lifetime_limit, validate_first, provisional) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, \
                ?22, ?23, ?24, ?25)
                """,
                values: position.values + [
                    .text(record.source), .blob(selecting), .digest(digest), .integer(record.length),
                    .integer(record.response.status), .real(record.response.requestTime),
                    .real(record.response.responseTime), .real(record.fetchMilliseconds), .real(position.lastAccess),
                    record.media.map { .text($0.type) } ?? .null,
                    record.media.map { .integer($0.width) } ?? .null,
                    record.media.map { .integer($0.height) } ?? .null,
                    record.media.map { .blob(EntryCoding.encode($0.details)) } ?? .null, .blob(fields),
                    record.finalURL.map { .text($0) } ?? .null,
                    record.response.assignedLifetime.map { .real($0) } ?? .null,
                    record.response.lifetimeLimit.map { .real($0) } ?? .null,
                    .integer(record.response.isInDoubt ? 2 : record.response.isSoftPurged ? 1 : 0),
                    .integer(record.isProvisional ? 1 : 0),
                ])
            let row = connection.lastInsertedRow
            try link(record.source, digest)
            // The record itself is removed if its response is older than all responses that are kept.
            isKept = try !removeOldSelections(of: record.source).contains(row)
        }
        if let former = former?.digest, former != digest || position == nil { try removeUnrecorded(former) }
        return isKept
    }

    /// Removes all but the most recent selections of a source, because an origin with a broad `Vary` could otherwise
    /// fill the tier.
    ///
    /// - Returns: the removed rows.
    private func removeOldSelections(of source: String) throws(StoreError) -> [Int] {
        let old = try connection.rows(
            "SELECT id FROM records WHERE source = ?1 ORDER BY response_time DESC LIMIT -1 OFFSET ?2", .text(source),
            .integer(OriginalRecord.selectionLimit)
        ) { $0.integer(0) }
        for id in old { try removeRow(.records, id) }
        return old
    }

    /// Records that a source has had this original.
    private func link(_ source: String, _ digest: DigestKey) throws(StoreError) {
        try connection.run(
            "INSERT OR IGNORE INTO links (source, digest) VALUES (?1, ?2)", .text(source), .digest(digest))
    }

    /// Adds the body of a record, unless it is stored and intact.
    func addOriginal(
        _ record: OriginalRecord, _ content: EntryBody, _ incoming: DiskStore.IncomingBody
    ) throws(StoreError) {
        let stored = try connection.first(
            "SELECT \(Self.bodyColumns) FROM bodies JOIN originals USING (id) WHERE \(DiskSchema.equal("digest", "?1"))",
            .digest(incoming.key)
        ) { StoredBody($0, at: 0) }
        if let stored {
            let isWhole = stored.length == content.count && stored.checksum == incoming.checksum
            if isWhole, !stored.isFile || files.holds(record.digest, length: content.count) {
                index.notes.use(.originals, row: stored.id)
                return
            }
            try removeRow(.originals, stored.id)
        }
        guard
            let position = try admit(
                .originals, GhostKey(incoming.key), size: DiskTable.charge(body: content.count),
                cost: record.fetchMilliseconds)
        else { return }
        let body = try retain(content, incoming, in: .originals)
        try connection.run(
            """
            INSERT INTO originals (size, cost, accesses, clock, priority, last_access, id) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """, values: position.values + [.integer(body)])
    }

    /// Adds a variant.
    ///
    /// - Parameter source: a source to link with the original, or nil if there is none.
    /// - Returns: whether the variant was stored.
    func addVariant(
        _ entry: VariantEntry, _ bytes: [UInt8], _ incoming: DiskStore.IncomingBody, source: String?
    ) throws(StoreError) -> Bool {
        guard let key = DigestKey(entry.key), let original = DigestKey(entry.originalDigest) else {
            throw StoreError(
                .invalid,
                "not digests of 64 hexadecimal digits: key \(entry.key.prefix(80)), original "
                    + "\(entry.originalDigest.prefix(80))")
        }
        let former = try connection.first(
            "SELECT id, accesses FROM variants WHERE \(DiskSchema.equal("key", "?1"))", .digest(key)
        ) {
            (id: $0.integer(0), accesses: $0.count(1))
        }
        var accesses = 0
        if let former {
            accesses = former.accesses + (index.notes.takeAccess(.variants, row: former.id)?.count ?? 0)
            try removeRow(.variants, former.id)
        }
        let size = DiskTable.charge(body: bytes.count)
        guard let position = try admit(.variants, GhostKey(key), size: size, cost: entry.cost, accesses: accesses)
        else {
            return false
        }
        let body = try retain(.bytes(bytes), incoming, in: .variants)
        try connection.run(
            """
            INSERT INTO variants (size, cost, accesses, clock, priority, last_access, key, original, body, digest, length, \
            media_type, width, height, created, recipe) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
            """,
            values: position.values + [
                .digest(key), .digest(original), .integer(body), .digest(incoming.key), .integer(bytes.count),
                .text(entry.storedType), .integer(entry.width), .integer(entry.height), .real(entry.created),
                .text(entry.recipe),
            ])
        if let source { try link(source, original) }
        return true
    }

    // MARK: Removing

    /// A row about to be removed.
    struct RemovedRow {
        let tier: DiskTable
        let id: Int
        let entry: EvictionEntry
        let priority: Double
        /// The key that identifies the entry after its eviction.
        let key: GhostKey?
        /// The ID of the body of an original or a variant.
        let body: Int?
        /// The original that a record or a variant belongs to, or nil if its column is damaged.
        let original: DigestKey?

        /// Reads a row of `DiskTable.Statements.front` or `row`.
        init(_ tier: DiskTable, _ row: SQLiteRow) {
            self.tier = tier
            id = row.integer(0)
            entry = EvictionEntry(
                size: row.count(1), cost: row.real(2), uses: UInt8(clamping: row.integer(3)), since: row.real(4))
            priority = row.real(5)
            switch tier {
            case .originals:
                body = id
                key = row.digestKey(7).map { GhostKey($0) }
                original = nil
            case .variants:
                body = row.integer(6)
                key = row.digestKey(7).map { GhostKey($0) }
                original = row.digestKey(8)
            case .records:
                body = nil
                key = GhostKey(text: row.text(6), selecting: row.blob(7) ?? [])
                original = row.digestKey(8)
            }
        }
    }

    /// Removes a row if it exists, together with its body and unneeded links, and subtracts its bytes from the sums.
    func removeRow(_ tier: DiskTable, _ id: Int) throws(StoreError) {
        if let found = try connection.first(
            tier.sql.row, .integer(id), read: { RemovedRow(tier, $0) })
        {
            try remove(found)
        }
    }

    func remove(_ row: RemovedRow) throws(StoreError) {
        try connection.run(row.tier.sql.delete, .integer(row.id))
        uncharge(row.tier, row.entry.size)
        _ = index.notes.takeAccess(row.tier, row: row.id)
        if let body = row.body { try release(body) }
        guard let original = row.original else { return }
        if row.tier == .records { try removeUnrecorded(original) } else { try removeUnneededLinks(of: original) }
    }

    /// Removes an original's body and links if no record refers to it any more.
    func removeUnrecorded(_ original: DigestKey) throws(StoreError) {
        if try isRecorded(original) { return }
        let body = try connection.first(
            "SELECT id FROM bodies WHERE \(DiskSchema.equal("digest", "?1"))", .digest(original)
        ) { $0.integer(0) }
        if let body { try removeRow(.originals, body) }
        try removeUnneededLinks(of: original)
    }

    /// Removes the links of an original that neither a record nor a variant needs.
    private func removeUnneededLinks(of original: DigestKey) throws(StoreError) {
        try connection.run(
            """
            DELETE FROM links WHERE \(DiskSchema.equal("digest", "?1")) AND NOT EXISTS (SELECT 1 FROM variants WHERE \(DiskSchema.equal("original", "?1"))) \
            AND NOT EXISTS (SELECT 1 FROM records WHERE \(DiskSchema.equal("digest", "?1")))
            """, .digest(original))
    }

    private func isRecorded(_ original: DigestKey) throws(StoreError) -> Bool {
        try connection.first(
            "SELECT 1 FROM records WHERE \(DiskSchema.equal("digest", "?1")) LIMIT 1", .digest(original)
        ) { _ in true }
            ?? false
    }
}
