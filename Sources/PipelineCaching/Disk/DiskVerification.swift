import Glibc

/// The findings of `verify`. A repair fixes all of them.
package struct VerifyReport: Sendable, Hashable {
    /// A kind of fault in one entry or file. The raw values are member names in the output of `pipectl cache verify
    /// --json`.
    package enum Fault: String, Sendable, CaseIterable {
        /// A body's length or checksum is wrong.
        case damagedBodies
        /// The file of a body is missing.
        case missingFiles
        /// No row refers to a body file.
        case orphanFiles
        /// An entry has no body, or a record cannot be decoded.
        case brokenEntries
    }

    /// The number of bodies that were read and compared with their checksums.
    package var bodiesChecked = 0
    package fileprivate(set) var faults: [Fault: Int] = [:]
    /// Whether the database is damaged, or its rows contradict each other. A repair creates an empty database.
    package fileprivate(set) var isIndexDamaged = false
    /// Whether faults were found and repaired.
    package fileprivate(set) var isRepaired = false

    package subscript(fault: Fault) -> Int { faults[fault] ?? 0 }

    /// Whether no faults were found.
    package var isClean: Bool { !isIndexDamaged && faults.isEmpty }
}

extension DiskStore {
    /// Reads every body, and compares index and folder in both directions. Locks the index for one body at a time, so
    /// other processes can continue. It also works on a read-only file system.
    ///
    /// - Parameter repair: whether to remove damaged entries, and to set the index aside if it is damaged as a whole.
    /// - Throws: `.unavailable` if `repair` is true and the folder is read-only.
    package func verify(repair: Bool = false) throws(StoreError) -> VerifyReport {
        var report = VerifyReport()
        if repair, try perform({ index throws(StoreError) in try index.connection.isReadOnly }) {
            throw StoreError(
                .unavailable,
                "the cache folder is read-only, so it cannot be repaired; make the folder writable, or verify "
                    + "without --repair", path: folder)
        }
        let isUnreadable = try perform { index throws(StoreError) in
            let isUnreadable = try index.isUnreadable()
            report.isIndexDamaged = isUnreadable ? true : try index.connection.contradictsItself()
            guard report.isIndexDamaged, repair else { return isUnreadable }
            // If the index is readable, keep its counters, and the purges that other tiers have not applied yet.
            if isUnreadable { try index.rebuild() } else { _ = try index.replace() }
            return isUnreadable
        }
        if isUnreadable, !repair { return report }
        // Leftovers of killed processes are not faults, because the next write deletes them anyway.
        try perform { index throws(StoreError) in
            _ = try index.connection
            index.reclaim()
            while index.isSweeping, index.sweep() {}
        }
        for tier in DiskTable.allCases { try verifyEntries(of: tier, repair, &report) }
        try verifyFiles(repair, &report)
        if repair { files.removeSetAside() }
        report.isRepaired = repair && !report.isClean
        return report
    }

    private func verifyEntries(of tier: DiskTable, _ repair: Bool, _ report: inout VerifyReport) throws(StoreError) {
        let rows = try perform { index throws(StoreError) in
            try index.connection.rows("SELECT id FROM \(tier.rawValue)") { $0.integer(0) }
        }
        if tier != .records { report.bodiesChecked += rows.count }
        for row in rows {
            let isSuspect = try perform { index throws(StoreError) in
                try fault(of: row, in: tier, on: index.connection) != nil
            }
            guard isSuspect, let fault = try confirmedFault(of: row, in: tier, removes: repair) else { continue }
            report.faults[fault, default: 0] += 1
        }
    }

    private func verifyFiles(_ repair: Bool, _ report: inout VerifyReport) throws(StoreError) {
        for prefix in BodyFiles.prefixes {
            for digest in files.bodies(in: prefix) where try isOrphan(digest, removes: repair) {
                report.faults[.orphanFiles, default: 0] += 1
            }
        }
    }

    private func isOrphan(_ digest: String, removes: Bool) throws(StoreError) -> Bool {
        try perform { index throws(StoreError) in
            if try index.connection.isNamed(digest) { return false }
            // Check again under the write lock, because a file that was renamed but is not committed yet is not
            // orphaned.
            return try index.maintain { connection throws(StoreError) in
                let isOrphan = try !connection.isNamed(digest) && files.isThere(digest)
                if isOrphan, removes { files.remove(digest) }
                return isOrphan
            }
        }
    }

    /// Returns the fault of an entry and the ID of a damaged body. Returns nil if the entry is intact or no longer
    /// exists.
    private func fault(
        of row: Int, in tier: DiskTable, on connection: SQLiteConnection
    ) throws(StoreError) -> (kind: VerifyReport.Fault, body: Int?)? {
        if tier == .records {
            let found = try connection.recordRows("WHERE id = ?1", [.integer(row)])
            return found.contains { $0.listed == nil } ? (.brokenEntries, nil) : nil
        }
        guard let found = try connection.located(row, of: tier) else { return nil }
        guard let located = found else { return (.brokenEntries, nil) }
        if try whole(located, longest: configuration.inlineLimit) != nil { return nil }
        let isMissing = located.body.isFile && !files.isThere(located.digest.text)
        return (isMissing ? .missingFiles : .damagedBodies, located.body.id)
    }

    /// Returns the fault of an entry after reading it again under the write lock, because another process may have
    /// evicted or replaced it.
    ///
    /// - Parameter removes: whether to remove a damaged entry.
    func confirmedFault(
        of row: Int, in tier: DiskTable, removes: Bool
    ) throws(StoreError) -> VerifyReport.Fault? {
        let confirmed = try perform { index throws(StoreError) -> VerifyReport.Fault? in
            guard removes else {
                return try index.maintain { connection throws(StoreError) in
                    try fault(of: row, in: tier, on: connection)?.kind
                }
            }
            return try index.write { transaction throws(StoreError) in
                guard let found = try fault(of: row, in: tier, on: transaction.connection) else { return nil }
                try transaction.removeRow(tier, row)
                if let body = found.body { try transaction.markDamaged(body) }
                return found.kind
            }
        }
        if confirmed != nil, removes { notes.note(tier) { $0.corrupt += 1 } }
        return confirmed
    }
}

extension DiskIndex {
    /// Returns whether SQLite reports damage in the database's own structure.
    fileprivate func isUnreadable() throws(StoreError) -> Bool {
        do throws(StoreError) {
            let found = try connection.first("PRAGMA quick_check(1)") { $0.text(0) } ?? ""
            if found == "ok" { return false }
            // `quick_check` reports read errors as text in several forms, which damage can have too.
            if try connection.isReadable { return true }
            throw StoreError(.io, "the index cannot be read: \(found.prefix(200))", path: path)
        } catch {
            guard error.code == .damaged else { throw error }
            return true
        }
    }
}

extension SQLiteConnection {
    /// Queries for missing and unneeded links, for bodies with a wrong entry count and for tiers with wrong sums.
    private static let contradictions =
        [
            "SELECT source, digest FROM records EXCEPT SELECT source, digest FROM links",
            """
            SELECT 1 FROM links \
            WHERE digest NOT IN (SELECT digest FROM records) AND digest NOT IN (SELECT original FROM variants)
            """,
            """
            SELECT 1 FROM bodies LEFT JOIN (SELECT body, count(*) AS count FROM \
            (SELECT body FROM variants UNION ALL SELECT id FROM originals) GROUP BY body) ON body = id \
            WHERE entries <> ifnull(count, 0)
            """,
        ]
        + DiskTable.allCases.map {
            """
            SELECT 1 FROM tiers WHERE name = '\($0.rawValue)' AND (entries, bytes) <> \
            (SELECT count(*), CAST(total(size) AS INTEGER) FROM \($0.rawValue))
            """
        }

    /// Returns whether the rows of the index contradict each other. Uses one statement, so that no other process writes
    /// in between.
    fileprivate func contradictsItself() throws(StoreError) -> Bool {
        let conditions = Self.contradictions.map { "EXISTS (\($0))" }
        return try first("SELECT \(conditions.joined(separator: " OR "))") { $0.integer(0) != 0 } ?? false
    }

    /// Returns the body of a row. Returns nil if the row is missing, and `.some(nil)` if it has no body.
    fileprivate func located(_ row: Int, of tier: DiskTable) throws(StoreError) -> DiskStore.UncheckedEntry?? {
        let table =
            tier == .originals
            ? "originals AS entry LEFT JOIN bodies ON bodies.id = entry.id"
            : """
            variants AS entry LEFT JOIN bodies ON bodies.id = body AND bodies.digest = entry.digest \
            AND length(key) = 32 AND length(original) = 32
            """
        return try first(
            "SELECT cost, bodies.digest, data, \(IndexTransaction.bodyColumns) FROM \(table) WHERE entry.id = ?1",
            .integer(row)
        ) { found in
            found.digestKey(1).map { digest in
                DiskStore.UncheckedEntry(
                    row: row, digest: digest, cost: found.real(0), body: IndexTransaction.StoredBody(found, at: 3),
                    bytes: found.blob(2))
            }
        }
    }
}
