/// The tables of the index (docs/entry-format.md describes every column).
enum DiskSchema {
    /// Raised with every change of a table; an index with a higher number is refused.
    static let version = 4
    /// "IMPC": tells our index from another program's database.
    static let applicationID = 0x494D_5043
    /// Bytes of a page of a new index: two file operations each time it is written, whatever its size, so that a usual
    /// thumbnail should need few of them (`Benchmarks/run-stores`). One that is there keeps the size it was made with.
    static let pageSize = 8192
    /// Pages kept in memory by each process, taken as they are used: the inner pages of the indexes for some million
    /// entries.
    static let cachedKilobytes = 16_384

    static let statements = """
        CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO state VALUES ('generation', 1), ('floor', 0);
        CREATE TABLE tiers (
            name TEXT PRIMARY KEY, entries INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
            hits INTEGER NOT NULL DEFAULT 0, misses INTEGER NOT NULL DEFAULT 0, insertions INTEGER NOT NULL DEFAULT 0,
            evictions INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0,
            corrupt INTEGER NOT NULL DEFAULT 0, \(policyColumns), \(savingColumns)) WITHOUT ROWID;
        INSERT INTO tiers (name) VALUES ('originals'), ('variants'), ('records');
        CREATE TABLE bodies (
            id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, length INTEGER NOT NULL, checksum INTEGER NOT NULL,
            refs INTEGER NOT NULL, data BLOB);
        CREATE TABLE records (
            id INTEGER PRIMARY KEY, \(queueColumns), source TEXT NOT NULL, selecting BLOB NOT NULL,
            digest TEXT NOT NULL, length INTEGER NOT NULL, status INTEGER NOT NULL, request_time REAL NOT NULL,
            response_time REAL NOT NULL, fetch_milliseconds REAL NOT NULL, stored REAL NOT NULL, format TEXT,
            width INTEGER, height INTEGER, pages INTEGER, alpha INTEGER, orientation INTEGER, scans INTEGER,
            profile_bytes INTEGER, fields BLOB NOT NULL, final_url TEXT, assigned_lifetime REAL, lifetime_limit REAL,
            UNIQUE (source, selecting));
        CREATE INDEX records_queue ON records (priority);
        CREATE INDEX records_digest ON records (digest);
        CREATE TABLE originals (id INTEGER PRIMARY KEY, \(queueColumns), digest TEXT NOT NULL UNIQUE);
        CREATE INDEX originals_queue ON originals (priority);
        CREATE TABLE variants (
            id INTEGER PRIMARY KEY, \(queueColumns), key TEXT NOT NULL UNIQUE, original TEXT NOT NULL,
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
        \(ghosts)
        """

    /// What makes an index of the version before each into one of that version.
    static let migrations: [Int: String] = [
        2: """
        ALTER TABLE records ADD COLUMN final_url TEXT;
        ALTER TABLE records ADD COLUMN assigned_lifetime REAL;
        ALTER TABLE records ADD COLUMN lifetime_limit REAL;
        """,
        // Priorities were times of use; the clock of GDSF-P begins at 0.
        3: """
        ALTER TABLE tiers ADD COLUMN clock REAL NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN ghosts INTEGER NOT NULL DEFAULT 0;
        \(ghosts)
        \(["records", "originals", "variants"].map(requeue).joined())
        """,
        4: """
        ALTER TABLE tiers ADD COLUMN stale INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN bytes_saved INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE tiers ADD COLUMN milliseconds_saved REAL NOT NULL DEFAULT 0;
        CREATE INDEX purges_time ON purges (time);
        """,
    ]

    private static func requeue(_ table: String) -> String {
        """
        UPDATE \(table) SET since = 0, priority = iif(uses <= 1, 0.5, uses) * (max(0, cost) / max(1, size));

        """
    }

    /// What the policy of a tier knows beside the entries.
    private static let policyColumns = "clock REAL NOT NULL DEFAULT 0, ghosts INTEGER NOT NULL DEFAULT 0"

    /// What hits have spared, and those that did not suffice.
    private static let savingColumns = """
        stale INTEGER NOT NULL DEFAULT 0, bytes_saved INTEGER NOT NULL DEFAULT 0, \
        milliseconds_saved REAL NOT NULL DEFAULT 0
        """

    /// The keys evicted last, by tier and number.
    private static let ghosts = """
        CREATE TABLE ghosts (
            tier TEXT NOT NULL, number INTEGER NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (tier, number)) WITHOUT ROWID;
        CREATE INDEX ghosts_hash ON ghosts (tier, hash);
        """

    /// What eviction needs of an entry, the same in every tier; `touched` is Unix time whatever the policy's clock.
    private static let queueColumns = """
        size INTEGER NOT NULL, cost REAL NOT NULL, uses INTEGER NOT NULL, since REAL NOT NULL, \
        priority REAL NOT NULL, touched REAL NOT NULL
        """
}

/// The kinds of entries that are counted, budgeted and evicted apart; raw values name tables and rows of `tiers`.
enum DiskTier: String, CaseIterable {
    case originals, variants, records

    /// Bytes charged for a record beside its strings, and the least that anything with a body is charged.
    static let overhead = 512

    /// Bytes charged for an entry with a body: those of the body, so that budgets mean what they say and the policy
    /// weighs what it saves. Rows and indexes come on top; without a least charge they alone could fill a disk.
    static func charge(body bytes: Int) -> Int { max(bytes, overhead) }

    /// What tells an entry's key, in one or two columns of the tier's table.
    var keyColumns: String {
        switch self {
        case .originals: "digest, NULL"
        case .variants: "key, NULL"
        case .records: "source, selecting"
        }
    }
}

/// What a key is remembered by after its entry was evicted: 64-bit FNV-1a, the same in every process. A collision costs
/// no more than a place in the queue.
struct GhostKey: Sendable, Hashable {
    let hash: Int

    init(_ key: String, _ selecting: [UInt8] = []) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in key.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for byte in selecting { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        self.hash = Int(bitPattern: UInt(hash))
    }
}
