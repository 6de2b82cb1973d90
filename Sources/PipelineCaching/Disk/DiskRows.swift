import HTTPCaching

/// A row of `records`. Look-ups, listings and transactions share the row types and queries in this file.
struct RecordRow {
    var id: Int
    /// The listed original, or nil if the row is damaged.
    var listed: ListedOriginal?

    /// The columns that `init` reads.
    static let columns = """
        id, source, selecting, digest, length, status, request_time, response_time, fetch_milliseconds, fields, \
        media_type, width, height, details, final_url, assigned_lifetime, lifetime_limit, stored, last_access, accesses, \
        EXISTS (SELECT 1 FROM bodies JOIN originals USING (id) WHERE \(DiskSchema.equal("bodies.digest", "records.digest"))), \
        validate_first, provisional
        """

    init(_ row: SQLiteRow) {
        id = row.integer(0)
        listed = Self.record(row).map {
            ListedOriginal(
                record: $0, hasBody: row.integer(20) != 0, stored: row.real(17), lastUsed: row.real(18),
                uses: min(255, row.count(19)))
        }
    }

    private static func record(_ row: SQLiteRow) -> OriginalRecord? {
        guard let selecting = row.blob(2).flatMap(EntryCoding.selecting), let digest = row.digestKey(3),
            let fields = row.blob(9).flatMap(EntryCoding.fields)
        else { return nil }
        var media: MediaDescription?
        if !row.isNull(10) {
            guard let details = row.blob(13).flatMap(EntryCoding.details) else { return nil }
            media = MediaDescription(
                type: row.text(10), width: row.side(11), height: row.side(12), details: details)
        }
        var record = OriginalRecord(
            source: row.text(1),
            response: StoredResponse(
                status: row.side(5), fields: fields, requestTime: row.real(6), responseTime: row.real(7),
                selecting: selecting, assignedLifetime: row.isNull(15) ? nil : row.real(15),
                lifetimeLimit: row.isNull(16) ? nil : row.real(16), isSoftPurged: row.integer(21) == 1,
                isInDoubt: row.integer(21) == 2),
            digest: digest.text, length: row.count(4), media: media, fetchMilliseconds: row.real(8),
            finalURL: row.isNull(14) ? nil : row.text(14))
        record.isProvisional = row.integer(22) == 1
        return record
    }
}

struct VariantRow {
    var id: Int
    /// The listed variant, or nil if the row is damaged.
    var listed: ListedVariant?

    /// The columns that `init` reads.
    static let columns = """
        variants.id, key, original, variants.digest, variants.length, media_type, width, height, recipe, cost, created, \
        last_access, accesses
        """

    init(_ row: SQLiteRow) {
        id = row.integer(0)
        let entry = VariantEntry(
            key: row.digest(1), originalDigest: row.digest(2), digest: row.digest(3), length: row.count(4),
            mediaType: "", width: row.side(6), height: row.side(7), recipe: row.text(8), cost: row.real(9),
            created: row.real(10)
        ).with(storedType: row.text(5))
        listed = ListedVariant(entry: entry, lastUsed: row.real(11), uses: min(255, row.count(12)))
    }
}

extension SQLiteRow {
    /// Returns the generation in a column, or 0 if the value is out of range and therefore damaged.
    func generation(_ column: Int32) -> UInt64 {
        let value = UInt64(max(0, integer(column)))
        return value < DiskIndex.generationLimit ? value : 0
    }
}

extension SQLiteConnection {
    /// Returns the current generation.
    ///
    /// - Throws: `.damaged` if the number is out of range, because it could not be incremented.
    func generation() throws(StoreError) -> UInt64 {
        let value = try first("SELECT value FROM state WHERE name = 'generation'") { $0.generation(0) }
        guard let value, value > 0 else {
            throw StoreError(.damaged, "the index is damaged: its generation is out of range", path: path)
        }
        return value
    }

    func recordRows(_ rest: String, _ values: [SQLiteValue]) throws(StoreError) -> [RecordRow] {
        try rows("SELECT \(RecordRow.columns) FROM records \(rest)", values: values) { RecordRow($0) }
    }

    func variantRows(_ rest: String, _ values: [SQLiteValue]) throws(StoreError) -> [VariantRow] {
        try rows("SELECT \(VariantRow.columns) FROM variants \(rest)", values: values) { VariantRow($0) }
    }

    /// Returns whether a body row needs the file of this digest, or the file is scheduled for deletion.
    func isNamed(_ digest: String) throws(StoreError) -> Bool {
        guard let key = DigestKey(digest) else { return false }
        return try first(
            """
            SELECT 1 FROM bodies WHERE \(DiskSchema.equal("digest", "?1")) AND data IS NULL UNION ALL SELECT 1 FROM discarded WHERE digest = ?1
            """, .digest(key)
        ) { _ in true } ?? false
    }

    private static let countersOfTiers =
        "SELECT name, entries, bytes, milliseconds_saved, "
        + StoreCounters.events.map(\.column).joined(separator: ", ") + " FROM tiers"
    private static let addToCounters =
        "UPDATE tiers SET milliseconds_saved = milliseconds_saved + ?2, "
        + StoreCounters.events.enumerated().map { "\($1.column) = \($1.column) + ?\($0 + 3)" }.joined(separator: ", ")
        + " WHERE name = ?1"

    /// Returns the stored counters of the tiers, without the counts that are still in memory.
    func counters() throws(StoreError) -> PerTier<StoreCounters> {
        let rows = try rows(Self.countersOfTiers) { row in
            var counters = StoreCounters()
            (counters.entries, counters.bytes, counters.millisecondsSaved) = (row.count(1), row.count(2), row.real(3))
            for (at, event) in StoreCounters.events.enumerated() {
                counters[keyPath: event.path] = row.count(Int32(at + 4))
            }
            return (name: row.text(0), counters: counters)
        }
        return PerTier { tier in rows.first { $0.name == tier.rawValue }?.counters ?? StoreCounters() }
    }

    /// Adds event counts to the counters of a tier. Does not change its contents.
    func add(_ counters: StoreCounters, to tier: DiskTable) throws(StoreError) {
        guard counters != StoreCounters() else { return }
        let counts = StoreCounters.events.map { SQLiteValue.integer(counters[keyPath: $0.path]) }
        try run(Self.addToCounters, values: [.text(tier.rawValue), .real(counters.millisecondsSaved)] + counts)
    }
}
