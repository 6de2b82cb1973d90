/// The tables of the index (docs/entry-format.md describes every column).
enum DiskSchema {
    /// The version of the schema, incremented with every change to a table. An index with a higher version is refused.
    /// An index with a lower version is set aside.
    static let version = 2
    /// The `application_id` of our indexes, "ImPc".
    static let applicationID = 0x496D_5063
    /// The `application_id` ("IMPC") of indexes that were created before version 1. Such indexes are set aside.
    static let formerApplicationID = 0x494D_5043
    /// Files that belonged to an index that was created before version 1. These files are deleted when the index is set
    /// aside.
    static let formerFiles = [
        "bodies.pack", "holders", "uses", "ghosts.originals", "ghosts.variants", "ghosts.records",
    ]
    /// The page size of a new index in bytes.
    static let pageSize = 4096
    /// The page cache of the write connection in kilobytes.
    static let cachedKilobytes = 16_384
    /// The number of pages in the write-ahead log (WAL) at which it is checkpointed.
    static let logPages = 2_000
    /// The size in bytes of the largest WAL that a process that stored nothing leaves without a checkpoint. The next
    /// process that opens the index must replay it.
    static let keptLogBytes = 64 << 10

    static let statements = """
        CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO state VALUES ('generation', 1), ('floor', 0);
        CREATE TABLE tiers (
            name TEXT PRIMARY KEY, entries INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
            hits INTEGER NOT NULL DEFAULT 0, misses INTEGER NOT NULL DEFAULT 0, stale INTEGER NOT NULL DEFAULT 0,
            insertions INTEGER NOT NULL DEFAULT 0, evictions INTEGER NOT NULL DEFAULT 0,
            refused INTEGER NOT NULL DEFAULT 0, corrupt INTEGER NOT NULL DEFAULT 0,
            bytes_saved INTEGER NOT NULL DEFAULT 0, milliseconds_saved REAL NOT NULL DEFAULT 0,
            clock REAL NOT NULL DEFAULT 0, ghost_serial INTEGER NOT NULL DEFAULT 0,
            ghost_floor INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        INSERT INTO tiers (name) VALUES ('originals'), ('variants'), ('records');
        CREATE TABLE ghosts (
            tier INTEGER NOT NULL, hash INTEGER NOT NULL, serial INTEGER NOT NULL, PRIMARY KEY (tier, hash)) WITHOUT ROWID;
        CREATE TABLE purges (name TEXT PRIMARY KEY, generation INTEGER NOT NULL, time REAL NOT NULL) WITHOUT ROWID;
        CREATE INDEX purges_time ON purges (time);
        CREATE INDEX purges_generation ON purges (generation);
        CREATE TABLE bodies (
            id INTEGER PRIMARY KEY, digest BLOB NOT NULL, length INTEGER NOT NULL, checksum INTEGER NOT NULL,
            entries INTEGER NOT NULL, data BLOB);
        CREATE INDEX bodies_digest ON bodies (\(prefix("digest")));
        CREATE TABLE discarded (digest BLOB PRIMARY KEY) WITHOUT ROWID;
        CREATE TABLE originals (id INTEGER PRIMARY KEY, \(queueColumns));
        CREATE INDEX originals_queue ON originals (priority);
        CREATE TABLE variants (
            id INTEGER PRIMARY KEY, \(queueColumns), key BLOB NOT NULL, original BLOB NOT NULL, body INTEGER NOT NULL,
            digest BLOB NOT NULL, length INTEGER NOT NULL, media_type TEXT NOT NULL, width INTEGER NOT NULL,
            height INTEGER NOT NULL, created REAL NOT NULL, recipe TEXT NOT NULL);
        CREATE INDEX variants_key ON variants (\(prefix("key")));
        CREATE INDEX variants_original ON variants (\(prefix("original")));
        CREATE INDEX variants_queue ON variants (priority);
        CREATE TABLE records (
            id INTEGER PRIMARY KEY, \(queueColumns), source TEXT NOT NULL, selecting BLOB NOT NULL, digest BLOB NOT NULL,
            length INTEGER NOT NULL, status INTEGER NOT NULL, request_time REAL NOT NULL, response_time REAL NOT NULL,
            fetch_milliseconds REAL NOT NULL, stored REAL NOT NULL, media_type TEXT, width INTEGER, height INTEGER,
            details BLOB, fields BLOB NOT NULL, final_url TEXT, assigned_lifetime REAL, lifetime_limit REAL,
            validate_first INTEGER NOT NULL DEFAULT 0,
            provisional INTEGER NOT NULL DEFAULT 0);
        CREATE UNIQUE INDEX records_source ON records (source, selecting, provisional);
        CREATE INDEX records_digest ON records (\(prefix("digest")));
        CREATE INDEX records_queue ON records (priority);
        CREATE TABLE links (source TEXT NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (source, digest)) WITHOUT ROWID;
        CREATE INDEX links_digest ON links (\(prefix("digest")));
        CREATE TABLE tags (source TEXT NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (source, tag)) WITHOUT ROWID;
        CREATE INDEX tags_tag ON tags (tag);
        """

    /// Returns an expression for the first eight bytes of a digest or key. Its index contains only these bytes, which
    /// takes a quarter of the space.
    private static func prefix(_ column: String) -> String { "substr(\(column), 1, 8)" }

    /// Returns an SQL condition that a digest or key equals a value, written so that SQLite uses its index.
    static func equal(_ column: String, _ value: String) -> String {
        "(\(prefix(column)) = \(prefix(value)) AND \(column) = \(value))"
    }

    /// Returns an SQL condition that a digest or key lies between two values, written so that SQLite uses its index.
    static func between(_ column: String, _ first: String, _ last: String) -> String {
        "(\(prefix(column)) BETWEEN \(prefix(first)) AND \(prefix(last)) AND \(column) BETWEEN \(first) AND \(last))"
    }

    /// The columns needed for eviction, which are the same in every tier.
    private static let queueColumns = """
        size INTEGER NOT NULL, cost REAL NOT NULL, accesses INTEGER NOT NULL, clock REAL NOT NULL, \
        priority REAL NOT NULL, last_access REAL NOT NULL
        """

    /// The tables that are read to distinguish an intact index from a damaged one.
    static let tables = ["state", "tiers", "bodies", "originals", "variants", "records", "links"]
}

/// The kinds of entries, which are counted, budgeted and evicted separately. The raw values are names of tables and of
/// rows in `tiers`.
enum DiskTable: String, CaseIterable {
    case originals, variants, records

    /// The bytes charged for a record in addition to its strings, and the minimum charge for an entry with a body.
    static let overhead = 512

    /// Returns the bytes charged for an entry with a body. This is the size of the body, so that budgets limit the size
    /// of bodies and the policy compares them. Rows and indexes are not charged, but without a minimum charge they
    /// could fill a disk.
    static func charge(body bytes: Int) -> Int { max(bytes, overhead) }

    /// The tier's number in `ghosts`.
    var number: Int {
        switch self {
        case .originals: 0
        case .variants: 1
        case .records: 2
        }
    }

    var sql: Statements { Self.statements[self] }

    private static let statements = PerTier { Statements($0) }

    /// The SQL statements for the table of a tier, composed once.
    struct Statements: Sendable {
        /// Selects the front of the eviction queue, as `IndexTransaction.RemovedRow` reads it.
        let front: String
        /// Selects one row with the same columns.
        let row: String
        let delete: String
        /// Changes a row's position in its queue.
        let requeue: String
        /// Adds accesses to a row.
        let access: String

        init(_ tier: DiskTable) {
            let table = tier.rawValue
            let columns =
                switch tier {
                case .originals: "entry.id, digest FROM originals AS entry LEFT JOIN bodies ON bodies.id = entry.id"
                case .variants: "body, key, original FROM variants AS entry"
                case .records: "source, selecting, digest FROM records AS entry"
                }
            let leaving = "SELECT entry.id, size, cost, accesses, clock, priority, \(columns)"
            front = "\(leaving) ORDER BY priority LIMIT 1"
            row = "\(leaving) WHERE entry.id = ?1"
            delete = "DELETE FROM \(table) WHERE id = ?1"
            requeue = """
                UPDATE \(table) SET priority = ?2, accesses = ?3, clock = ?4, last_access = max(last_access, ?5) WHERE id = ?1
                """
            access = """
                UPDATE \(table) SET accesses = min(255, accesses + ?2), clock = max(clock, ?3), \
                last_access = max(last_access, ?4) WHERE id = ?1
                """
        }
    }
}

/// One value per tier.
struct PerTier<Value> {
    private var values: [Value]

    init(_ make: (DiskTable) throws -> Value) rethrows { values = try DiskTable.allCases.map(make) }

    subscript(tier: DiskTable) -> Value {
        get { values[tier.number] }
        _modify { yield &values[tier.number] }
    }

    var originals: Value { self[.originals] }
    var variants: Value { self[.variants] }
    var records: Value { self[.records] }
}

extension PerTier: Sendable where Value: Sendable {}

/// The hash that identifies a ghost entry: the first eight bytes of a digest, or the 64-bit FNV-1a hash of a source and
/// its selecting fields. It is the same in every process. A collision only affects a position in the eviction queue.
struct GhostKey: Sendable, Hashable {
    let hash: Int

    init(_ digest: DigestKey) { hash = digest.prefix }

    init(text: String, selecting: [UInt8] = []) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for byte in selecting { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        self.hash = Int(bitPattern: UInt(hash))
    }
}
