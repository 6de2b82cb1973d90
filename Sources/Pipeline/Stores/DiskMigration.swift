/// What makes an index of the version before each into one of that version.
enum DiskMigration {
    /// Which statements make an index of an older version into one of this. Those of version 5, with `moveBodies` and
    /// `fillTables`, make all tables as they are now, those of version 6 that of variants.
    static func versions(from version: Int) -> [Int] {
        if version < 5 { return Array(version + 1...5) }
        return (version + 1...DiskSchema.version).filter { $0 == version + 1 || $0 > 7 }
    }

    /// Statements of each version.
    static let statements: [Int: String] = [
        2: """
        ALTER TABLE records ADD COLUMN final_url TEXT;
        ALTER TABLE records ADD COLUMN assigned_lifetime REAL;
        ALTER TABLE records ADD COLUMN lifetime_limit REAL;
        """,
        // Priorities were times of use; the clock of GDSF-P begins at 0.
        3: """
        ALTER TABLE tiers ADD COLUMN clock REAL NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN ghosts INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE ghosts (
            tier TEXT NOT NULL, number INTEGER NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (tier, number)) WITHOUT ROWID;
        \(["records", "originals", "variants"].map(requeue).joined())
        """,
        4: """
        ALTER TABLE tiers ADD COLUMN stale INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN bytes_saved INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN milliseconds_saved REAL NOT NULL DEFAULT 0;
        CREATE INDEX purges_time ON purges (time);
        """,
        5: """
        ALTER TABLE tiers ADD COLUMN ghost_floor INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN ghost_buckets INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN pack INTEGER NOT NULL DEFAULT 0;
        UPDATE tiers SET ghost_floor = ghosts;
        DROP TABLE ghosts;
        DROP INDEX records_queue; DROP INDEX records_digest; DROP INDEX originals_queue; DROP INDEX variants_queue;
        DROP INDEX variants_original; DROP INDEX variants_digest; DROP INDEX links_digest;
        \(["bodies", "records", "originals", "variants", "links"].map { "ALTER TABLE \($0) RENAME TO old_\($0);" }.joined())
        ALTER TABLE old_bodies ADD COLUMN place INTEGER;
        """,
        // Only of version 5, which found variants by an index on their keys.
        6: """
        ALTER TABLE tiers ADD COLUMN pack INTEGER NOT NULL DEFAULT 0;
        UPDATE tiers SET pack = (SELECT value FROM state WHERE name = 'pack') WHERE name = 'variants';
        DELETE FROM state WHERE name = 'pack';
        DROP INDEX variants_queue; DROP INDEX variants_key; DROP INDEX variants_digest;
        ALTER TABLE variants RENAME TO old_variants;
        \(DiskSchema.variants)
        INSERT OR IGNORE INTO variants SELECT \(row("id >> \(DiskSchema.variantBits)", "key_head")), size, cost, uses, since, priority,
            touched, key, original, digest, length, checksum, place, format, width, height, created, recipe
            FROM old_variants;
        DROP TABLE old_variants;
        \(sum("variants"))
        \(share)
        """,
        // Only of version 6, which found equal bytes by an index on the digests of all.
        7: """
        DROP INDEX variants_digest;
        ALTER TABLE variants DROP COLUMN digest_head;
        \(DiskSchema.sharing)
        \(share)
        """,
        // Found originals by an index on their digests, and links by another on the originals. Rows that are there stay where
        // they are and get longer: their own indexes stay as they are.
        8: """
        ALTER TABLE originals ADD COLUMN \(DiskSchema.digestColumn);
        ALTER TABLE records ADD COLUMN \(DiskSchema.digestColumn);
        UPDATE originals SET digest =
            ifnull((SELECT digests.digest FROM digests WHERE digests.id = originals.id), digest);
        UPDATE records SET digest =
            ifnull((SELECT digests.digest FROM digests WHERE digests.id = records.original), digest);
        ALTER TABLE digests RENAME TO old_digests; ALTER TABLE links RENAME TO old_links;
        \(DiskSchema.digests)
        INSERT INTO digests SELECT head, id, digest, (SELECT min(source) FROM old_links WHERE original = old.id)
            FROM old_digests AS old ORDER BY head, id;
        INSERT INTO links SELECT old_links.source, original, digests.head, old_links.source IS NOT digests.source
            FROM old_links CROSS JOIN old_digests ON old_digests.id = original
            CROSS JOIN digests ON digests.head = old_digests.head AND digests.id = original
            ORDER BY old_links.source, original;
        DROP TABLE old_digests; DROP TABLE old_links;
        """,
    ]

    private static let share = "INSERT INTO shared \(DiskSchema.sharers);"

    /// The row of a variant: in the bucket of its key, one behind the other. A full bucket takes some hundred thousand
    /// variants of one original.
    private static func row(_ original: String, _ head: String) -> String {
        let bucket = "(\(head) >> \(63 - DiskSchema.variantBits)) & \(~(DiskSchema.bucket - 1))"
        return """
            (\(original) << \(DiskSchema.variantBits) | \(bucket)) \
            + row_number() OVER (PARTITION BY \(original), \(bucket)) - 1
            """
    }

    private static func requeue(_ table: String) -> String {
        """
        UPDATE \(table) SET since = 0, priority = iif(uses <= 1, 0.5, uses) * (max(0, cost) / max(1, size));

        """
    }

    /// The bodies that lie in an index of version 4, once its tables are set apart.
    ///
    /// - Parameter move: puts a body elsewhere and says where.
    static func moveBodies(
        _ connection: SQLiteConnection, move: ([UInt8]) throws(StoreError) -> Int
    ) throws(StoreError) {
        var after = 0
        while true {
            let found = try connection.first(
                "SELECT id, data FROM old_bodies WHERE id > ?1 AND data IS NOT NULL ORDER BY id LIMIT 1",
                .integer(after)
            ) { (id: $0.integer(0), data: $0.blob(1) ?? []) }
            guard let found else { return }
            let place = try move(found.data)
            try connection.run("UPDATE old_bodies SET place = ?2 WHERE id = ?1", .integer(found.id), .integer(place))
            after = found.id
        }
    }

    /// Fills the tables of today from those of version 4, which go. What has lost its body, or names a digest that is
    /// none, is left behind.
    static let fillTables = """
        \(DiskSchema.entries)
        INSERT INTO digests SELECT digest_head(text), row_number() OVER (), digest_bytes(text), first.source FROM (
            SELECT digest AS text FROM old_records UNION SELECT original FROM old_variants)
            LEFT JOIN (SELECT digest, min(source) AS source FROM old_links GROUP BY digest) AS first
            ON first.digest = text WHERE digest_head(text) IS NOT NULL;
        INSERT INTO originals SELECT digests.id, \(queue), old_bodies.length, old_bodies.checksum, place, digests.digest
            FROM old_originals AS old JOIN old_bodies USING (digest)
            JOIN digests ON digests.head = digest_head(old.digest) AND digests.digest = digest_bytes(old.digest);
        INSERT INTO variants SELECT
            \(row("digests.id", "digest_head(key)")), \(queue), digest_bytes(key), digest_bytes(original),
            digest_bytes(old.digest), old.length, old_bodies.checksum, place, format, width, height, created, recipe
            FROM old_variants AS old JOIN old_bodies USING (digest)
            JOIN digests ON digests.head = digest_head(original) AND digests.digest = digest_bytes(original)
            WHERE digest_head(key) IS NOT NULL AND digest_head(old.digest) IS NOT NULL;
        INSERT INTO records SELECT old.id, \(queue), old.source, selecting, digests.id, length, status, request_time,
            response_time, fetch_milliseconds, stored, format, width, height, pages, alpha, orientation, scans,
            profile_bytes, fields, final_url, assigned_lifetime, lifetime_limit, digests.digest
            FROM old_records AS old
            JOIN digests ON digests.head = digest_head(old.digest) AND digests.digest = digest_bytes(old.digest);
        INSERT INTO links SELECT old.source, digests.id, digests.head, old.source IS NOT digests.source
            FROM old_links AS old
            JOIN digests ON digests.head = digest_head(old.digest) AND digests.digest = digest_bytes(old.digest);
        \(["originals", "variants", "records"].map(sum).joined())
        \(share)
        \(["bodies", "records", "originals", "variants", "links"].map { "DROP TABLE old_\($0);" }.joined())
        """

    private static let queue = "old.size, old.cost, old.uses, old.since, old.priority, old.touched"

    private static func sum(_ table: String) -> String {
        """
        UPDATE tiers SET entries = (SELECT count(*) FROM \(table)), bytes = (SELECT ifnull(sum(size), 0) FROM \(table))
            WHERE name = '\(table)';

        """
    }

    /// Times its length that an index takes beside itself at most while it is brought up: the log holds what is written, and
    /// later the index too.
    static let room = 2.5

    /// What to do about an index that could not be brought up, and is as it was.
    ///
    /// - Parameter bytes: its length.
    static func explained(_ error: StoreError, from version: Int, index bytes: Int) -> StoreError {
        let help: String
        switch error.code {
        case .full:
            let megabytes = Int(room * Double(bytes) / 1e6) + 1
            help = "takes \(megabytes) MB for a while: free them"
        case .unavailable: help = "takes a folder that may be written to: make it writable"
        default: return error
        }
        return StoreError(
            error.code,
            "\(error.message). The cache has version \(version), and making version \(DiskSchema.version) of it \(help), or "
                + "name another folder; nothing of it is lost", path: error.path)
    }
}
