import Glibc

/// What `verify` found; each number counts faults, and a repair fixes all of them.
package struct VerifyReport: Sendable, Hashable {
    /// Bodies read and compared with their checksum.
    package var bodiesChecked = 0
    /// Bodies whose length or checksum is wrong.
    package var damagedBodies = 0
    /// Rows whose body file is missing.
    package var missingFiles = 0
    /// Body files that no row names, and links or files of other users under the name of a body file.
    package var orphanFiles = 0
    /// Files in the store's folders under names it does not use; no faults, and a repair leaves them as they are.
    package var foreignFiles = 0
    /// Files of interrupted writes, untouched for ten minutes.
    package var abandonedFiles = 0
    /// Entries without a body, records that cannot be decoded, and links that are missing or that no entry needs.
    package var brokenEntries = 0
    /// Bodies whose number of entries is wrong.
    package var wrongReferences = 0
    /// Tiers whose sums of entries or bytes are wrong.
    package var wrongSums = 0
    /// The database itself is damaged; repairing starts an empty one.
    package var isIndexDamaged = false
    /// Whether there were faults and they were repaired.
    package var isRepaired = false

    package init() {}

    /// Whether nothing was wrong.
    package var isClean: Bool {
        !isIndexDamaged
            && damagedBodies + missingFiles + orphanFiles + abandonedFiles + brokenEntries + wrongReferences
                + wrongSums == 0
    }
}

extension DiskStore {
    /// Reads every body and compares index and folder in both directions. Other processes may continue meanwhile: the
    /// index is locked for one body at a time. Also works on a file system that is mounted read-only.
    ///
    /// - Throws: `.unavailable` if it is to repair a folder that is read-only.
    package func verify(repair: Bool = false) throws(StoreError) -> VerifyReport {
        var verification = DiskVerification(store: self, repairs: repair)
        try verification.run()
        return verification.report
    }
}

/// One run of `verify`.
private struct DiskVerification {
    let store: DiskStore
    let repairs: Bool
    var report = VerifyReport()

    mutating func run() throws(StoreError) {
        if repairs, try store.perform({ index throws(StoreError) in try index.connection.isReadOnly }) {
            throw StoreError(
                .unavailable,
                "the cache is read-only here, so nothing can be repaired: make its folder writable, or verify "
                    + "without repairing", path: store.folder)
        }
        let repairs = repairs
        report.isIndexDamaged = try store.perform { index throws(StoreError) in try index.isDamaged(repair: repairs) }
        if report.isIndexDamaged, !repairs { return }
        // Leftovers of killed processes are not faults; the next write deletes them anyway.
        try store.perform { index throws(StoreError) in
            _ = try index.connection
            index.reclaim()
            while index.isSweeping, index.sweep() {}
        }
        for tier in [DiskTable.originals, .variants] { try verifyBodies(of: tier) }
        try verifyFiles()
        let rows = try store.perform { index throws(StoreError) in
            guard repairs else {
                return try index.maintain { connection throws(StoreError) in try connection.wrongRows() }
            }
            return try index.write { transaction throws(StoreError) in
                let found = try transaction.connection.wrongRows()
                try transaction.repair(found)
                return found
            }
        }
        report.brokenEntries = rows.broken.values.reduce(rows.links) { $0 + $1.count }
        report.wrongReferences = rows.references
        report.wrongSums = rows.sums.count
        report.isRepaired = repairs && !report.isClean
    }

    private mutating func verifyBodies(of tier: DiskTable) throws(StoreError) {
        var after = Int.min
        while true {
            let start = after
            let page = try store.perform { index throws(StoreError) in
                try index.connection.bodies(of: tier, after: start, limit: 256)
            }
            guard let last = page.last else { return }
            after = last.row
            for entry in page {
                report.bodiesChecked += 1
                let located = try store.perform { index throws(StoreError) in
                    try index.connection.located(entry.row, of: tier, entry.digest)
                }
                // It was removed or replaced after the page was read.
                guard let located else { continue }
                if try store.whole(located, longest: store.configuration.inlineLimit) != nil { continue }
                let isMissing = located.body.isFile && access(store.files.path(entry.digest.text), F_OK) != 0
                guard try store.confirmDamage(located, tier: tier, removes: repairs) else { continue }
                if isMissing { report.missingFiles += 1 } else { report.damagedBodies += 1 }
            }
        }
    }

    private mutating func verifyFiles() throws(StoreError) {
        let files = store.files
        let foreign = files.foreign()
        report.foreignFiles = foreign.others
        report.orphanFiles = foreign.false.count
        if repairs {
            for path in foreign.false { BodyFiles.delete(path) }
            store.notes.note(.originals) { $0.corrupt += foreign.false.count }
        }
        for prefix in BodyFiles.prefixes {
            for digest in files.bodies(in: prefix) where !foreign.false.contains(files.path(digest)) {
                let repairs = repairs
                let isOrphan = try store.perform { index throws(StoreError) in
                    if try index.connection.isNamed(digest) { return false }
                    // Checked again under the write lock: a file renamed in but not committed yet is not orphaned.
                    return try index.maintain { connection throws(StoreError) in
                        let isOrphan = try !connection.isNamed(digest) && files.isThere(digest)
                        if isOrphan, repairs { files.remove(digest) }
                        return isOrphan
                    }
                }
                if isOrphan { report.orphanFiles += 1 }
            }
        }
        let abandoned = files.abandoned(after: store.configuration.graceSeconds)
        report.abandonedFiles = abandoned.count
        if repairs {
            for path in abandoned { unlink(path) }
            files.removeSetAside()
        }
    }
}

extension DiskIndex {
    /// Whether SQLite finds its own structure damaged; repairing sets the database aside and starts an empty one.
    fileprivate func isDamaged(repair: Bool) throws(StoreError) -> Bool {
        var isDamaged = false
        do throws(StoreError) {
            let found = try connection.first("PRAGMA quick_check(1)") { $0.text(0) } ?? ""
            isDamaged = found != "ok"
            // quick_check reports read errors as text, in several forms that damage has too.
            if isDamaged, try !connection.isReadable {
                throw StoreError(.io, "the index cannot be read: \(found.prefix(200))", path: path)
            }
        } catch {
            guard error.code == .damaged else { throw error }
            isDamaged = true
        }
        if isDamaged, repair { try rebuild() }
        return isDamaged
    }
}

/// Rows that are inconsistent.
private struct WrongRows: Sendable {
    /// Rows of each tier that no look-up can return.
    var broken: [DiskTable: [Int]] = [:]
    /// Links that are missing, or that no entry needs.
    var links = 0
    /// Bodies whose number of entries is wrong.
    var references = 0
    /// Tiers whose sums are wrong.
    var sums: [DiskTable] = []
}

extension SQLiteConnection {
    fileprivate func bodies(
        of tier: DiskTable, after start: Int, limit: Int
    ) throws(StoreError) -> [(row: Int, digest: DigestKey)] {
        let query =
            tier == .originals
            ? "SELECT id, digest FROM originals JOIN bodies USING (id) WHERE id > ?1 ORDER BY id LIMIT ?2"
            : "SELECT id, digest FROM variants WHERE id > ?1 ORDER BY id LIMIT ?2"
        return try rows(query, .integer(start), .integer(limit)) { (row: $0.integer(0), digest: $0.digestKey(1)) }
            .compactMap { row in row.digest.map { (row.row, $0) } }
    }

    /// No entry is charged that much, and sums of such sizes would overflow.
    private static let isSizeWrong = "size NOT BETWEEN 1 AND 1 << 44"
    private static let missingLinks = "SELECT source, digest FROM records EXCEPT SELECT source, digest FROM links"
    private static let unneededLinks = """
        digest NOT IN (SELECT digest FROM records) AND digest NOT IN (SELECT original FROM variants)
        """
    /// Bodies whose stored number of entries is wrong.
    private static let references = """
        SELECT id, ifnull(count, 0) AS count FROM bodies LEFT JOIN (SELECT body, count(*) AS count FROM \
        (SELECT body FROM variants UNION ALL SELECT id FROM originals) GROUP BY body) ON body = id \
        WHERE entries <> ifnull(count, 0)
        """

    fileprivate func wrongRows() throws(StoreError) -> WrongRows {
        var wrong = WrongRows()
        wrong.broken[.originals] = try rows(
            """
            SELECT originals.id FROM originals LEFT JOIN bodies USING (id) \
            WHERE digest IS NULL OR length(digest) <> 32 OR \(Self.isSizeWrong)
            """
        ) { $0.integer(0) }
        wrong.broken[.variants] = try rows(
            """
            SELECT variants.id FROM variants LEFT JOIN bodies ON bodies.id = body AND bodies.digest = variants.digest \
            WHERE bodies.id IS NULL OR length(key) <> 32 OR length(original) <> 32 \
            OR \(Self.isSizeWrong)
            """
        ) { $0.integer(0) }
        wrong.broken[.records] =
            try recordRows("", []).filter { $0.listed == nil }.map(\.id)
            + rows("SELECT id FROM records WHERE \(Self.isSizeWrong)") { $0.integer(0) }
        let links = try first(
            """
            SELECT (SELECT count(*) FROM (\(Self.missingLinks))) + (SELECT count(*) FROM links WHERE \(Self.unneededLinks)), \
            (SELECT count(*) FROM (\(Self.references)))
            """
        ) { (links: $0.count(0), references: $0.count(1)) }
        wrong.links = links?.links ?? 0
        wrong.references = links?.references ?? 0
        for tier in DiskTable.allCases {
            let isWrong = try first(
                """
                SELECT 1 FROM tiers WHERE name = ?1 AND (entries, bytes) <> \
                (SELECT count(*), CAST(total(size) AS INTEGER) FROM \(tier.rawValue))
                """, .text(tier.rawValue)
            ) { _ in true }
            if isWrong == true { wrong.sums.append(tier) }
        }
        return wrong
    }

    /// Corrects links and numbers of entries; removes bodies without an entry.
    fileprivate func repairLinksAndReferences() throws(StoreError) {
        try run("INSERT INTO links (source, digest) \(Self.missingLinks)")
        try run("DELETE FROM links WHERE \(Self.unneededLinks)")
        for body in try rows(Self.references, read: { (id: $0.integer(0), count: $0.integer(1)) }) {
            try run("UPDATE bodies SET entries = ?2 WHERE id = ?1", .integer(body.id), .integer(body.count))
        }
        try run("INSERT OR IGNORE INTO discarded SELECT digest FROM bodies WHERE entries = 0 AND data IS NULL")
        try run("DELETE FROM bodies WHERE entries = 0")
    }
}

extension IndexTransaction {
    fileprivate func repair(_ wrong: WrongRows) throws(StoreError) {
        for (tier, rows) in wrong.broken {
            for row in rows { try connection.run("DELETE FROM \(tier.rawValue) WHERE id = ?1", .integer(row)) }
        }
        try connection.repairLinksAndReferences()
        for tier in DiskTable.allCases { try takeSums(of: tier) }
    }
}
