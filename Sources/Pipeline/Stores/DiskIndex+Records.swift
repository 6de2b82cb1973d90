import Variants

extension DiskIndex.StoredBody {
    /// Length, checksum and place from three columns.
    init(_ row: SQLiteRow, at column: Int32) {
        length = row.count(column)
        checksum = UInt32(truncatingIfNeeded: row.integer(column + 1))
        // A negative one lies where nothing does.
        place = row.isNull(column + 2) ? nil : row.integer(column + 2) < 0 ? .max >> 20 : row.count(column + 2)
    }
}

/// Rows of `records`, `originals` and `variants` as values.
extension DiskIndex {
    struct RecordRow {
        var id: Int
        /// nil when the row is damaged.
        var record: OriginalRecord?
        var hasBody: Bool
        var stored: Double
        var touched: Double
        var uses: Int
    }

    struct VariantRow {
        var id: Int
        var entry: VariantEntry?
        var touched: Double
        var uses: Int
    }

    static let variantColumns = """
        variants.id, variants.key, variants.original, variants.digest, variants.length, variants.format, \
        variants.width, variants.height, variants.recipe, variants.cost, variants.created, variants.touched, \
        variants.uses
        """

    /// A variant and where its body is: its key, and what it is a variant of. All of both is compared in its own row.
    fileprivate static let variantByKey = SQLText(
        kept: """
            SELECT \(variantColumns), length, checksum, place FROM digests CROSS JOIN variants \
            ON variants.id BETWEEN digests.id << \(DiskSchema.variantBits) | ?3 \
            AND (digests.id << \(DiskSchema.variantBits) | ?3) + \(DiskSchema.bucket - 1) \
            WHERE head = ?1 AND original = ?2 AND key = ?4
            """)

    /// nil when the row is damaged.
    static func variant(_ row: SQLiteRow) -> VariantEntry? {
        guard let format = ImageFormat(rawValue: row.text(5)) else { return nil }
        return VariantEntry(
            key: row.digest(1), originalDigest: row.digest(2), digest: row.digest(3), length: row.count(4),
            format: format, width: row.side(6), height: row.side(7), recipe: row.text(8), cost: row.real(9),
            created: row.real(10))
    }

    fileprivate static func record(_ row: SQLiteRow) -> OriginalRecord? {
        guard let selecting = row.blob(2).flatMap(EntryCoding.selecting), let digest = row.digestKey(3),
            let fields = row.blob(9).flatMap(EntryCoding.fields)
        else { return nil }
        var header: ImageHeader?
        if !row.isNull(10) {
            guard let format = ImageFormat(rawValue: row.text(10)) else { return nil }
            header = ImageHeader(
                format: format, width: row.side(11), height: row.side(12), pages: row.side(13),
                hasAlpha: row.integer(14) != 0, orientation: row.side(15), scans: row.side(16),
                profileBytes: row.count(17))
        }
        return OriginalRecord(
            source: row.text(1),
            response: StoredResponse(
                status: row.side(5), fields: fields, requestTime: row.real(6), responseTime: row.real(7),
                selecting: selecting, assignedLifetime: row.isNull(22) ? nil : row.real(22),
                lifetimeLimit: row.isNull(23) ? nil : row.real(23)),
            digest: digest.text, length: row.count(4), header: header, fetchMilliseconds: row.real(8),
            finalURL: row.isNull(21) ? nil : row.text(21))
    }

    func recordRow(of source: String, _ selecting: [String: String?]) throws(StoreError) -> Int? {
        try connection.first(
            "SELECT id FROM records WHERE source = ?1 AND selecting = ?2", .text(source),
            .blob(EntryCoding.encode(selecting))
        ) { $0.integer(0) }
    }

    // MARK: Inserting; inside a write transaction

    /// Puts a record in place of the one with the same source and selecting fields. A body that only the former
    /// record spoke of goes; one of the same digest stays.
    /// - Returns: the number of its original; nil when it was not taken in.
    func replace(_ record: OriginalRecord) throws(StoreError) -> Int? {
        let connection = try connection
        guard let digest = DigestKey(record.digest) else {
            throw StoreError(.invalid, "not a digest of 64 hexadecimal digits: \(record.digest.prefix(80))")
        }
        let fields = EntryCoding.encode(record.response.fields)
        let selecting = EntryCoding.encode(record.response.selecting)
        let before = try connection.rows(
            "DELETE FROM records WHERE source = ?1 AND selecting = ?2 RETURNING size, original, digest, uses, id, touched",
            .text(record.source), .blob(selecting)
        ) {
            (
                size: $0.count(0), original: NumberedOriginal($0.integer(1), $0.digestKey(2)), uses: $0.count(3),
                id: $0.integer(4), touched: $0.real(5)
            )
        }
        var uses = 0
        for row in before {
            uncharge(.records, row.size)
            uses = row.uses + Int(settle(.records, row.id, written: row.touched)?.uses ?? 0)
            notedUses.byRow[UsesFile.Key(.records, row.id)] = nil
        }
        let size = DiskTier.overhead + record.source.utf8.count + fields.count + selecting.count
        // Without its record a body is of no use, and neither are its validators: the cost is that of a fetch.
        let place = try admit(
            .records, GhostKey(text: record.source, selecting: selecting), size: size, cost: 30, uses: uses)
        var original: Int?
        let forgottenBefore = forgotten
        if let place {
            let header = record.header
            let number = try numbered(digest, source: record.source)
            original = number
            try connection.run(
                """
                INSERT INTO records (size, cost, uses, since, priority, touched, source, selecting, original, length, \
                status, request_time, response_time, fetch_milliseconds, stored, fields, format, width, height, \
                pages, alpha, orientation, scans, profile_bytes, final_url, assigned_lifetime, lifetime_limit, digest) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, \
                ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)
                """, .integer(place.size), .real(place.cost), .integer(place.uses), .real(place.since),
                .real(place.priority), .real(place.touched), .text(record.source), .blob(selecting),
                .integer(number), .integer(record.length), .integer(record.response.status),
                .real(record.response.requestTime), .real(record.response.responseTime),
                .real(record.fetchMilliseconds), .real(place.touched), .blob(fields),
                header.map { .text($0.format.rawValue) } ?? .null, .integer(header?.width ?? 0),
                .integer(header?.height ?? 0), .integer(header?.pages ?? 0), .integer(header?.hasAlpha == true ? 1 : 0),
                .integer(header?.orientation ?? 0), .integer(header?.scans ?? 0),
                .integer(header?.profileBytes ?? 0), record.finalURL.map { .text($0) } ?? .null,
                record.response.assignedLifetime.map { .real($0) } ?? .null,
                record.response.lifetimeLimit.map { .real($0) } ?? .null, .digest(digest))
            try dropOldSelections(of: record.source)
        }
        for row in before { try dropUnrecorded(row.original) }
        // What is taken in may be the oldest selection, and has gone again.
        if original != nil, forgotten != forgottenBefore { return try self.original(digest) }
        return original
    }

    /// Keeps the most recent selections of a source: an origin that varies on much would fill the tier with them.
    private func dropOldSelections(of source: String) throws(StoreError) {
        let old = try connection.rows(
            "SELECT id FROM records WHERE source = ?1 ORDER BY response_time DESC LIMIT -1 OFFSET ?2", .text(source),
            .integer(OriginalRecord.selectionLimit)
        ) { $0.integer(0) }
        for id in old { try removeRow(.records, id) }
    }

    /// Adds the body of a record, unless it is there and whole.
    ///
    /// - Parameter id: the number of the original.
    func addOriginal(
        _ id: Int, _ record: OriginalRecord, _ content: EntryBody, _ incoming: DiskStore.IncomingBody
    ) throws(StoreError) {
        let connection = try connection
        let stored = try connection.first(
            "SELECT digest, length, checksum, place, touched FROM originals WHERE id = ?1", .integer(id)
        ) { (digest: $0.digestKey(0), body: StoredBody($0, at: 1), touched: $0.real(4)) }
        if let (digest, body, touched) = stored, digest == incoming.key, body.length == content.count,
            body.checksum == incoming.checksum
        {
            if body.place == nil, !files.holds(record.digest, length: content.count) {
                try publish(record.digest, content, temporary: &incoming.temporary)
            }
            touch(.originals, row: id, written: touched)
            return
        }
        if stored != nil { try removeRow(.originals, id) }
        guard
            let place = try admit(
                .originals, GhostKey(incoming.key), size: DiskTier.charge(body: content.count),
                cost: record.fetchMilliseconds)
        else { return }
        let (body, other) = try body(for: content, incoming, in: .originals)
        try connection.run(
            """
            INSERT INTO originals (size, cost, uses, since, priority, touched, id, length, checksum, place, digest) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            """, .integer(place.size), .real(place.cost), .integer(place.uses), .real(place.since),
            .real(place.priority), .real(place.touched), .integer(id), .integer(body.length),
            .integer(Int(body.checksum)), body.place.map { .integer($0) } ?? .null, .digest(incoming.key))
        try hold(incoming.key, body, by: Holder(.originals, id), with: other)
    }

    /// - Parameter source: linked with its original, if given.
    func addVariant(
        _ entry: VariantEntry, _ bytes: [UInt8], _ incoming: DiskStore.IncomingBody, source: String?
    ) throws(StoreError) -> Bool {
        guard let key = DigestKey(entry.key), let originalDigest = DigestKey(entry.originalDigest) else {
            throw StoreError(
                .invalid,
                "not digests of 64 hexadecimal digits: key \(entry.key.prefix(80)), original "
                    + "\(entry.originalDigest.prefix(80))")
        }
        var bucket = try bucket(of: key, originalDigest, source)
        let forgottenBefore = forgotten
        var uses = 0
        if let row = bucket.row {
            uses = bucket.uses + Int(settle(.variants, row, written: bucket.touched)?.uses ?? 0)
            try removeRow(.variants, row)
            bucket.taken &= ~(1 << UInt16(row - bucket.start))
        }
        let size = DiskTier.charge(body: bytes.count)
        guard let place = try admit(.variants, GhostKey(key), size: size, cost: entry.cost, uses: uses) else {
            return false
        }
        // The eviction may have forgotten it. What has gone from the bucket meanwhile is not looked for.
        if forgotten != forgottenBefore { bucket = try self.bucket(of: key, originalDigest, source) }
        if bucket.taken == .max {
            // Some hundred thousand variants of one original: the first makes room, before its body is looked for.
            try removeRow(.variants, bucket.start)
            bucket.taken &= ~1
        }
        let forgottenSince = forgotten
        let (body, other) = try body(for: .bytes(bytes), incoming, in: .variants)
        if forgotten != forgottenSince { bucket = try self.bucket(of: key, originalDigest, source) }
        let original: Int
        if let known = bucket.original {
            original = known
            if let source, !bucket.isOfFirst { try link(source, original, originalDigest) }
        } else {
            original = try number(originalDigest, source: source)
        }
        let row = (original << DiskSchema.variantBits | key.bucket) + (~bucket.taken).trailingZeroBitCount
        try connection.run(
            """
            INSERT INTO variants (size, cost, uses, since, priority, touched, id, key, original, \
            digest, length, checksum, place, format, width, height, created, recipe) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
            """, .integer(place.size), .real(entry.cost), .integer(place.uses), .real(place.since),
            .real(place.priority), .real(place.touched), .integer(row), .digest(key), .digest(originalDigest),
            .digest(incoming.key), .integer(body.length), .integer(Int(body.checksum)),
            body.place.map { .integer($0) } ?? .null,
            .text(entry.format.rawValue), .integer(entry.width), .integer(entry.height), .real(entry.created),
            .text(entry.recipe))
        try hold(incoming.key, body, by: Holder(.variants, row), with: other)
        return true
    }

    /// Where a variant with a key lies or would lie.
    private struct Bucket {
        /// The number of its original; nil while nothing is known of that.
        var original: Int?
        /// Whether that was first had by the source of the variant.
        var isOfFirst = false
        /// The first row, and which of those from there on are taken, a bit each.
        var start = 0
        var taken: UInt16 = 0
        /// The row that has the key, and its uses.
        var row: Int?
        var uses = 0
        var touched = 0.0
    }

    private func bucket(
        of key: DigestKey, _ original: DigestKey, _ source: String?
    ) throws(StoreError) -> Bucket {
        let rows = try connection.rows(
            Self.bucketRows, .integer(original.head), .digest(original), .integer(key.bucket),
            source.map { .text($0) } ?? .null
        ) {
            (
                original: $0.integer(0), isOfFirst: $0.integer(1) != 0, id: $0.isNull(2) ? nil : $0.integer(2),
                key: $0.digestKey(3), uses: $0.count(4), touched: $0.real(5)
            )
        }
        var bucket = Bucket()
        for row in rows where bucket.original ?? row.original == row.original {
            (bucket.original, bucket.isOfFirst) = (row.original, row.isOfFirst)
            bucket.start = row.original << DiskSchema.variantBits | key.bucket
            guard let id = row.id else { continue }
            bucket.taken |= 1 << UInt16(id - bucket.start)
            if row.key == key { (bucket.row, bucket.uses, bucket.touched) = (id, row.uses, row.touched) }
        }
        return bucket
    }

    private static let bucketRows = SQLText(
        kept: """
            SELECT digests.id, source IS ?4, variants.id, key, uses, touched FROM digests LEFT JOIN variants \
            ON variants.id BETWEEN digests.id << \(DiskSchema.variantBits) | ?3 \
            AND (digests.id << \(DiskSchema.variantBits) | ?3) + \(DiskSchema.bucket - 1) \
            WHERE head = ?1 AND digests.digest = ?2 AND \(isNumber)
            """)
}

/// Queries shared by look-ups, lists and verification.
extension SQLiteConnection {
    func recordRows(
        _ rest: String, _ value: SQLiteValue, _ limit: Int = .max
    ) throws(StoreError) -> [DiskIndex.RecordRow] {
        try rows(
            """
            SELECT id, source, selecting, digest, length, status, request_time, response_time, fetch_milliseconds, \
            fields, format, width, height, pages, alpha, orientation, scans, profile_bytes, touched, uses, \
            EXISTS (SELECT 1 FROM originals WHERE originals.id = original), final_url, assigned_lifetime, \
            lifetime_limit, stored FROM records \(rest) LIMIT ?2
            """, value, .integer(limit)
        ) { row in
            DiskIndex.RecordRow(
                id: row.integer(0), record: DiskIndex.record(row), hasBody: row.integer(20) != 0, stored: row.real(24),
                touched: row.real(18), uses: row.count(19))
        }
    }

    func variantRows(
        _ rest: String, _ value: SQLiteValue, _ limit: Int = .max
    ) throws(StoreError) -> [DiskIndex.VariantRow] {
        try rows("SELECT \(DiskIndex.variantColumns) FROM variants \(rest) LIMIT ?2", value, .integer(limit)) {
            DiskIndex.VariantRow(
                id: $0.integer(0), entry: DiskIndex.variant($0), touched: $0.real(11), uses: $0.count(12))
        }
    }

    /// Reads the row of an original's variant by its key; nil if it is not stored.
    func variant<Result>(
        _ key: DigestKey, of original: DigestKey, read: (SQLiteRow) -> Result
    ) throws(StoreError) -> Result? {
        try first(
            DiskIndex.variantByKey, .integer(original.head), .digest(original), .integer(key.bucket), .digest(key),
            read: read)
    }

    func generation() throws(StoreError) -> UInt64? {
        try first("SELECT value FROM state WHERE name = 'generation'") { UInt64($0.count(0)) }
    }
}
