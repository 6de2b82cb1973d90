import Glibc
import Variants

@testable import Pipeline

/// An index as version 4 of the format made it, and those before.
struct OlderIndex {
    private let folder: CacheFolder

    private static let queue = """
        size INTEGER NOT NULL, cost REAL NOT NULL, uses INTEGER NOT NULL, since REAL NOT NULL,
        priority REAL NOT NULL, touched REAL NOT NULL
        """

    private static let tables = """
        PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL;
        CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO state VALUES ('generation', 1), ('floor', 0);
        CREATE TABLE tiers (
            name TEXT PRIMARY KEY, entries INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
            hits INTEGER NOT NULL DEFAULT 0, misses INTEGER NOT NULL DEFAULT 0, insertions INTEGER NOT NULL DEFAULT 0,
            evictions INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0,
            corrupt INTEGER NOT NULL DEFAULT 0, clock REAL NOT NULL DEFAULT 0, ghosts INTEGER NOT NULL DEFAULT 0,
            stale INTEGER NOT NULL DEFAULT 0, bytes_saved INTEGER NOT NULL DEFAULT 0,
            milliseconds_saved REAL NOT NULL DEFAULT 0) WITHOUT ROWID;
        INSERT INTO tiers (name) VALUES ('originals'), ('variants'), ('records');
        CREATE TABLE bodies (
            id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, length INTEGER NOT NULL, checksum INTEGER NOT NULL,
            refs INTEGER NOT NULL, data BLOB);
        CREATE TABLE records (
            id INTEGER PRIMARY KEY, \(queue), source TEXT NOT NULL, selecting BLOB NOT NULL,
            digest TEXT NOT NULL, length INTEGER NOT NULL, status INTEGER NOT NULL, request_time REAL NOT NULL,
            response_time REAL NOT NULL, fetch_milliseconds REAL NOT NULL, stored REAL NOT NULL, format TEXT,
            width INTEGER, height INTEGER, pages INTEGER, alpha INTEGER, orientation INTEGER, scans INTEGER,
            profile_bytes INTEGER, fields BLOB NOT NULL, final_url TEXT, assigned_lifetime REAL, lifetime_limit REAL,
            UNIQUE (source, selecting));
        CREATE INDEX records_queue ON records (priority);
        CREATE INDEX records_digest ON records (digest);
        CREATE TABLE originals (id INTEGER PRIMARY KEY, \(queue), digest TEXT NOT NULL UNIQUE);
        CREATE INDEX originals_queue ON originals (priority);
        CREATE TABLE variants (
            id INTEGER PRIMARY KEY, \(queue), key TEXT NOT NULL UNIQUE, original TEXT NOT NULL,
            digest TEXT NOT NULL, length INTEGER NOT NULL, format TEXT NOT NULL, width INTEGER NOT NULL,
            height INTEGER NOT NULL, created REAL NOT NULL, recipe TEXT NOT NULL);
        CREATE INDEX variants_queue ON variants (priority);
        CREATE INDEX variants_original ON variants (original);
        CREATE INDEX variants_digest ON variants (digest);
        CREATE TABLE links (source TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (source, digest)) WITHOUT ROWID;
        CREATE INDEX links_digest ON links (digest);
        CREATE TABLE purges (name TEXT PRIMARY KEY, generation INTEGER NOT NULL, time REAL NOT NULL) WITHOUT ROWID;
        CREATE INDEX purges_time ON purges (time);
        CREATE TABLE discarded (digest TEXT PRIMARY KEY) WITHOUT ROWID;
        CREATE TABLE ghosts (
            tier TEXT NOT NULL, number INTEGER NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (tier, number)) WITHOUT ROWID;
        CREATE INDEX ghosts_hash ON ghosts (tier, hash);
        PRAGMA application_id=\(DiskSchema.applicationID); PRAGMA user_version=4;
        """

    /// What takes an index back to the version before each.
    private static let steps: [Int: String] = [
        4: """
        DROP INDEX purges_time; ALTER TABLE tiers DROP COLUMN stale; ALTER TABLE tiers DROP COLUMN bytes_saved;
        ALTER TABLE tiers DROP COLUMN milliseconds_saved;
        """,
        3: "DROP TABLE ghosts; ALTER TABLE tiers DROP COLUMN clock; ALTER TABLE tiers DROP COLUMN ghosts;",
        2: """
        ALTER TABLE records DROP COLUMN final_url; ALTER TABLE records DROP COLUMN assigned_lifetime;
        ALTER TABLE records DROP COLUMN lifetime_limit;
        """,
    ]

    /// Makes an empty one of version 4.
    init(_ folder: CacheFolder) throws {
        self.folder = folder
        mkdir(folder.path, 0o700)
        try folder.sql(Self.tables)
    }

    /// Takes it back to a version before.
    func lower(to version: Int) throws {
        for number in stride(from: 4, to: version, by: -1) { try folder.sql(Self.steps[number] ?? "") }
        try folder.sql("PRAGMA user_version = \(version)")
    }

    /// Makes an index of today one of version 7, which found originals by an index on their digests, and links by another on
    /// the originals.
    static func takeBackToSeven(_ folder: CacheFolder) throws {
        try folder.sql(
            """
            DROP INDEX links_further;
            ALTER TABLE digests RENAME TO today_digests; ALTER TABLE links RENAME TO today_links;
            CREATE TABLE digests (id INTEGER PRIMARY KEY, head INTEGER NOT NULL, digest BLOB NOT NULL);
            CREATE INDEX digests_head ON digests (head);
            CREATE TABLE links (source TEXT NOT NULL, original INTEGER NOT NULL, PRIMARY KEY (source, original))
                WITHOUT ROWID;
            CREATE INDEX links_original ON links (original);
            INSERT INTO digests SELECT id, head, digest FROM today_digests;
            INSERT INTO links SELECT source, original FROM today_links;
            DROP TABLE today_digests; DROP TABLE today_links;
            ALTER TABLE originals DROP COLUMN digest; ALTER TABLE records DROP COLUMN digest;
            PRAGMA user_version = 7;
            """)
    }

    /// Makes an index of today one of version 6, which had an index on the digests of all bodies.
    static func takeBackToSix(_ folder: CacheFolder) throws {
        try takeBackToSeven(folder)
        try folder.sql(
            """
            DROP INDEX variants_queue; DROP INDEX variants_file; DROP TABLE shared;
            ALTER TABLE variants RENAME TO today;
            CREATE TABLE variants (
                id INTEGER PRIMARY KEY, \(queue), key BLOB NOT NULL, original BLOB NOT NULL,
                digest_head INTEGER NOT NULL, digest BLOB NOT NULL, length INTEGER NOT NULL, checksum INTEGER NOT NULL,
                place INTEGER, format TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
                created REAL NOT NULL, recipe TEXT NOT NULL);
            INSERT INTO variants SELECT
                id, size, cost, uses, since, priority, touched, key, original, digest_head(lower(hex(digest))), digest,
                length, checksum, place, format, width, height, created, recipe FROM today;
            CREATE INDEX variants_queue ON variants (priority);
            CREATE INDEX variants_digest ON variants (digest_head);
            DROP TABLE today; PRAGMA user_version = 6;
            """)
        unlink("\(folder.path)/holders")
    }

    /// Makes an index of today one of version 5, which numbered the variants of an original as they came and had an index
    /// on their keys.
    static func takeBackToFive(_ folder: CacheFolder) throws {
        try takeBackToSix(folder)
        try folder.sql(
            """
            INSERT INTO state SELECT 'pack', pack FROM tiers WHERE name = 'variants';
            ALTER TABLE tiers DROP COLUMN pack;
            DROP INDEX variants_queue; DROP INDEX variants_digest;
            ALTER TABLE variants RENAME TO today;
            CREATE TABLE variants (
                id INTEGER PRIMARY KEY, \(queue), key_head INTEGER NOT NULL, key BLOB NOT NULL, original BLOB NOT NULL,
                digest_head INTEGER NOT NULL, digest BLOB NOT NULL, length INTEGER NOT NULL, checksum INTEGER NOT NULL,
                place INTEGER, format TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
                created REAL NOT NULL, recipe TEXT NOT NULL);
            INSERT INTO variants SELECT
                (id >> 20 << 20) + row_number() OVER (PARTITION BY id >> 20) - 1, size, cost, uses, since, priority, touched,
                digest_head(lower(hex(key))), key, original, digest_head, digest, length, checksum, place, format, width,
                height, created, recipe FROM today;
            CREATE INDEX variants_queue ON variants (priority);
            CREATE INDEX variants_key ON variants (key_head);
            CREATE INDEX variants_digest ON variants (digest_head);
            DROP TABLE today; PRAGMA user_version = 5;
            """)
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        "x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
    }

    /// Adds a body, or one more reference to it; beyond 64 KiB it is a file.
    private func hold(_ body: [UInt8]) throws {
        let isFile = body.count > 65_536
        if isFile {
            let prefix = "bodies/\(digest(body).prefix(2))"
            mkdir("\(folder.path)/bodies", 0o700)
            mkdir("\(folder.path)/\(prefix)", 0o700)
            folder.overwrite("\(prefix)/\(digest(body))", at: 0, with: body)
        }
        try folder.sql(
            """
            INSERT INTO bodies (digest, length, checksum, refs, data) VALUES ('\(digest(body))', \(body.count),
            \(CRC32C.checksum(body)), 1, \(isFile ? "NULL" : Self.hex(body)))
            ON CONFLICT (digest) DO UPDATE SET refs = refs + 1
            """)
    }

    private func count(_ tier: String, _ size: Int) throws {
        try folder.sql("UPDATE tiers SET entries = entries + 1, bytes = bytes + \(size) WHERE name = '\(tier)'")
    }

    mutating func add(_ entry: VariantEntry, _ body: [UInt8], uses: Int = 1) throws {
        try hold(body)
        let size = DiskTier.charge(body: body.count)
        try folder.sql(
            """
            INSERT INTO variants (size, cost, uses, since, priority, touched, key, original, digest, length, format,
            width, height, created, recipe) VALUES (\(size), \(entry.cost), \(uses), 0, 0.5, 1e9, '\(entry.key)',
            '\(entry.originalDigest)', '\(entry.digest)', \(entry.length), '\(entry.format.rawValue)', \(entry.width),
            \(entry.height), \(entry.created), '\(entry.recipe)')
            """)
        try count("variants", size)
    }

    mutating func add(_ record: OriginalRecord, _ body: [UInt8]?) throws {
        let fields = EntryCoding.encode(record.response.fields)
        let selecting = EntryCoding.encode(record.response.selecting)
        let size = DiskTier.overhead + record.source.utf8.count + fields.count + selecting.count
        try folder.sql(
            """
            INSERT INTO records (size, cost, uses, since, priority, touched, source, selecting, digest, length, status,
            request_time, response_time, fetch_milliseconds, stored, fields, format, width, height, pages, alpha,
            orientation, scans, profile_bytes) VALUES (\(size), 30, 1, 0, 0.5, 1e9, '\(record.source)', \(Self.hex(selecting)),
            '\(record.digest)', \(record.length), \(record.response.status), \(record.response.requestTime),
            \(record.response.responseTime), \(record.fetchMilliseconds), 1e9, \(Self.hex(fields)), 'png', 3, 4, 1, 1, 1, 1, 0);
            INSERT OR IGNORE INTO links VALUES ('\(record.source)', '\(record.digest)')
            """)
        try count("records", size)
        guard let body else { return }
        try hold(body)
        try folder.sql(
            """
            INSERT INTO originals (size, cost, uses, since, priority, touched, digest) VALUES
            (\(DiskTier.charge(body: body.count)), 109, 1, 0, 0.5, 1e9, '\(record.digest)')
            """)
        try count("originals", DiskTier.charge(body: body.count))
    }
}
