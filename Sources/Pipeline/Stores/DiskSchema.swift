/// The tables of the index (docs/entry-format.md describes every column).
enum DiskSchema {
    /// Raised with every change of a table. An index with a higher number is refused; one with a lower is set aside.
    static let version = 8
    /// "IMPC": tells our index from another program's database.
    static let applicationID = 0x494D_5043
    /// Bytes of a page of a new index: an entry changes pages here and there, each written as a whole
    /// (`Benchmarks/run-stores`). One that is there keeps the size it was made with.
    static let pageSize = 4096
    /// Pages kept in memory by each process, taken as they are used: the inner pages of the indexes for some million
    /// entries.
    static let cachedKilobytes = 16_384
    /// Pages in the log before they are moved into the index, where one that was changed often is written once.
    static let logPages = 2_000
    /// Bytes of a log that stays when the last process closes it, if that has stored nothing: who opens the index next reads
    /// it all.
    static let keptLogBytes = 64 << 10
    /// Variants of one original are numbered within so many bits, below the number of the original: they lie together,
    /// and need no index to be found by it.
    static let variantBits = 20
    /// The largest number of an original: those of its variants are numbers of rows too.
    static let lastOriginal = 1 << (62 - variantBits) - 1
    /// Those whose keys begin alike share a bucket of so many numbers, so that a key is found without an index too.
    static let bucket = 16

    static let statements = """
        CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
        INSERT INTO state VALUES ('generation', 1), ('floor', 0);
        CREATE TABLE tiers (
            name TEXT PRIMARY KEY, entries INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0,
            hits INTEGER NOT NULL DEFAULT 0, misses INTEGER NOT NULL DEFAULT 0, insertions INTEGER NOT NULL DEFAULT 0,
            evictions INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0,
            corrupt INTEGER NOT NULL DEFAULT 0, clock REAL NOT NULL DEFAULT 0, ghosts INTEGER NOT NULL DEFAULT 0,
            stale INTEGER NOT NULL DEFAULT 0, bytes_saved INTEGER NOT NULL DEFAULT 0,
            milliseconds_saved REAL NOT NULL DEFAULT 0, ghost_floor INTEGER NOT NULL DEFAULT 0,
            ghost_buckets INTEGER NOT NULL DEFAULT 0, pack INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
        INSERT INTO tiers (name) VALUES ('originals'), ('variants'), ('records');
        CREATE TABLE purges (name TEXT PRIMARY KEY, generation INTEGER NOT NULL, time REAL NOT NULL) WITHOUT ROWID;
        CREATE INDEX purges_time ON purges (time);
        CREATE TABLE discarded (digest TEXT PRIMARY KEY) WITHOUT ROWID;
        CREATE INDEX purges_generation ON purges (generation);
        \(digests)
        CREATE TABLE originals (id INTEGER PRIMARY KEY, \(queueColumns), \(bodyColumns), \(digestColumn));
        CREATE INDEX originals_queue ON originals (priority);
        \(variants)
        CREATE TABLE records (
            id INTEGER PRIMARY KEY, \(queueColumns), source TEXT NOT NULL, selecting BLOB NOT NULL,
            original INTEGER NOT NULL, length INTEGER NOT NULL, status INTEGER NOT NULL, request_time REAL NOT NULL,
            response_time REAL NOT NULL, fetch_milliseconds REAL NOT NULL, stored REAL NOT NULL, format TEXT,
            width INTEGER, height INTEGER, pages INTEGER, alpha INTEGER, orientation INTEGER, scans INTEGER,
            profile_bytes INTEGER, fields BLOB NOT NULL, final_url TEXT, assigned_lifetime REAL, lifetime_limit REAL,
            \(digestColumn), UNIQUE (source, selecting));
        CREATE INDEX records_queue ON records (priority);
        CREATE INDEX records_original ON records (original);
        CREATE TABLE free (place INTEGER PRIMARY KEY, units INTEGER NOT NULL, hollow INTEGER NOT NULL);
        CREATE INDEX free_units ON free (units);
        """

    /// Which number an original has, found by its digest alone, and which sources have had it: a row of each is all that a
    /// new original changes there. Rows that name it by its number have its digest too. The first source stands beside the
    /// number and leads to its link; an index leads to those of others, which are few.
    static let digests = """
        CREATE TABLE digests (
            head INTEGER NOT NULL, id INTEGER NOT NULL, digest BLOB NOT NULL, source TEXT, PRIMARY KEY (head, id))
            WITHOUT ROWID;
        CREATE TABLE links (
            source TEXT NOT NULL, original INTEGER NOT NULL, head INTEGER NOT NULL, further INTEGER NOT NULL,
            PRIMARY KEY (source, original)) WITHOUT ROWID;
        CREATE INDEX links_further ON links (original) WHERE further;
        """

    static let variants = """
        CREATE TABLE variants (
            id INTEGER PRIMARY KEY, \(queueColumns), key BLOB NOT NULL, original BLOB NOT NULL,
            digest BLOB NOT NULL, \(bodyColumns), format TEXT NOT NULL, width INTEGER NOT NULL,
            height INTEGER NOT NULL, created REAL NOT NULL, recipe TEXT NOT NULL);
        CREATE INDEX variants_queue ON variants (priority);
        \(sharing)
        """

    /// How it is known which rows have the same body: by the digest where that is a file, by its slot where several have
    /// one. An index on the digests of all would cost each entry a page that no other changes (`Benchmarks/run-stores`).
    static let sharing = """
        CREATE INDEX variants_file ON variants (digest) WHERE place IS NULL;
        CREATE TABLE shared (place INTEGER NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (place, entry)) WITHOUT ROWID;
        """

    /// What `shared` has to hold by the rows that name slots.
    static let sharers = """
        SELECT place, entry FROM (SELECT place, entry, count(*) OVER (PARTITION BY place) AS sharers FROM (
            SELECT place, id << 1 AS entry FROM variants WHERE place IS NOT NULL AND length > 0
            UNION ALL SELECT place, id << 1 | 1 FROM originals WHERE place IS NOT NULL AND length > 0)) WHERE sharers > 1
        """

    /// What eviction needs of an entry, the same in every tier; `touched` is Unix time whatever the policy's clock.
    static let queueColumns = """
        size INTEGER NOT NULL, cost REAL NOT NULL, uses INTEGER NOT NULL, since REAL NOT NULL, \
        priority REAL NOT NULL, touched REAL NOT NULL
        """

    /// Where a body is: a slot of the pack, or without a place a file of its own.
    private static let bodyColumns = "length INTEGER NOT NULL, checksum INTEGER NOT NULL, place INTEGER"

    /// The digest of the original that a row is of, beside its number.
    static let digestColumn = "digest BLOB NOT NULL DEFAULT x''"
}

/// The kinds of entries that are counted, budgeted and evicted apart; raw values name tables and rows of `tiers`.
enum DiskTier: String, CaseIterable {
    case originals, variants, records

    /// Bytes charged for a record beside its strings, and the least that anything with a body is charged.
    static let overhead = 512

    /// Bytes charged for an entry with a body: those of the body, so that budgets mean what they say and the policy
    /// weighs what it saves. Rows and indexes come on top; without a least charge they alone could fill a disk.
    static func charge(body bytes: Int) -> Int { max(bytes, overhead) }

    /// The front of its queue, as `DiskIndex.Leaving` reads it.
    var front: SQLText { statements.front }

    /// One row, in the same columns.
    var row: SQLText { statements.row }

    /// Deletes a row.
    var delete: SQLText { statements.delete }

    /// Digest, length, checksum and place of a row's body; nothing of a record.
    var body: SQLText { statements.body }

    /// Gives a row another place in its queue, and uses.
    var requeue: SQLText { statements.requeue }

    /// What tells its rows from others' in `UsesFile`.
    var number: Int {
        switch self {
        case .originals: 0
        case .variants: 1
        case .records: 2
        }
    }

    /// When a row was last used, and how often, in SQL: its columns are what they were when it was written.
    var lastUse: String { "last_use(\(number), id, touched)" }
    var allUses: String { "all_uses(\(number), id, touched, uses)" }

    private struct Statements {
        let front, row, delete, requeue, body: SQLText

        init(_ table: String, _ columns: String) {
            let select = "SELECT id, size, cost, uses, since, priority, touched, \(columns) FROM \(table)"
            front = SQLText(kept: "\(select) ORDER BY priority LIMIT 1")
            row = SQLText(kept: "\(select) WHERE id = ?1")
            delete = SQLText(kept: "DELETE FROM \(table) WHERE id = ?1")
            body = SQLText(kept: "SELECT \(columns) FROM \(table) WHERE id = ?1")
            requeue = SQLText(
                kept: "UPDATE \(table) SET priority = ?2, uses = ?3, since = ?4, touched = ?5 WHERE id = ?1")
        }
    }

    private static let ofOriginals = Statements("originals", "digest, length, checksum, place")
    private static let ofVariants = Statements("variants", "digest, length, checksum, place, key, original")
    private static let ofRecords = Statements("records", "original, source, selecting, digest")

    private var statements: Statements {
        switch self {
        case .originals: Self.ofOriginals
        case .variants: Self.ofVariants
        case .records: Self.ofRecords
        }
    }
}

/// One of something for each tier.
struct PerTier<Value> {
    var originals: Value
    var variants: Value
    var records: Value

    init(_ make: (DiskTier) throws -> Value) rethrows {
        originals = try make(.originals)
        variants = try make(.variants)
        records = try make(.records)
    }

    subscript(tier: DiskTier) -> Value {
        get {
            switch tier {
            case .originals: originals
            case .variants: variants
            case .records: records
            }
        }
        _modify {
            switch tier {
            case .originals: yield &originals
            case .variants: yield &variants
            case .records: yield &records
            }
        }
    }
}

extension PerTier: Sendable where Value: Sendable {}

/// What a key is remembered by after its entry was evicted: the beginning of a digest, 64-bit FNV-1a of a source and what
/// selects among its responses; the same in every process. A collision costs no more than a place in the queue.
struct GhostKey: Sendable, Hashable {
    let hash: Int

    init(_ digest: DigestKey) { hash = digest.ghost }

    init(text: String, selecting: [UInt8] = []) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for byte in selecting { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        self.hash = Int(bitPattern: UInt(hash))
    }
}
