import Glibc

/// What `verify` found; each number counts faults, and all of them are mended when it repaired.
public struct VerifyReport: Sendable, Hashable {
    /// Bodies read and compared with their checksum.
    public var bodiesChecked = 0
    /// Bodies whose length or checksum is wrong.
    public var damagedBodies = 0
    /// Rows whose body file is not there.
    public var missingFiles = 0
    /// Body files that no row names, and what has the name of one and is none: links, files of other users.
    public var orphanFiles = 0
    /// Files among ours under names that are not ours. They are no fault, and repairing leaves them as they are.
    public var foreignFiles = 0
    /// Files of interrupted writes, untouched for ten minutes.
    public var abandonedFiles = 0
    /// Entries that their original does not lead to, records that cannot be decoded, and originals and links that no entry
    /// needs, or that say something else than their entries.
    public var brokenEntries = 0
    /// Slots of small bodies that overlap, that nothing names and nothing counts as free, or of which it is not known which
    /// entries share them.
    public var wrongSlots = 0
    /// Tiers whose sums of entries or bytes are wrong.
    public var wrongSums = 0
    /// The database itself is damaged; repairing starts an empty one.
    public var isIndexDamaged = false
    /// Whether there were faults, and they were mended.
    public var isRepaired = false

    public init() {}

    /// Whether nothing was wrong.
    public var isClean: Bool {
        !isIndexDamaged
            && damagedBodies + missingFiles + orphanFiles + abandonedFiles + brokenEntries + wrongSlots + wrongSums == 0
    }
}

extension DiskStore {
    /// Reads every body and compares index and folder in both directions. Other processes may go on meanwhile: the
    /// index is locked for one body at a time. Works on a file system that is mounted for reading alone, too.
    ///
    /// - Throws: `.unavailable` when it is to repair what it may only read.
    public func verify(repair: Bool = false) throws(StoreError) -> VerifyReport {
        var report = VerifyReport()
        let isReadOnly = try perform { index throws(StoreError) in try index.connection.isReadOnly }
        if repair, isReadOnly {
            throw StoreError(
                .unavailable,
                "the cache may only be read here, so that nothing can be mended: make its folder writable, or "
                    + "verify without repairing", path: folder)
        }
        report.isIndexDamaged = try perform { index throws(StoreError) in try index.isDamaged(repair: repair) }
        if report.isIndexDamaged, !repair { return report }
        // What has been left by the killed and is deleted by the next to write anyway is no fault.
        try perform { index throws(StoreError) in
            _ = try index.connection
            index.reclaim()
            while index.isSweeping, index.sweep() {}
        }
        try verifyBodies(&report, repair: repair)
        try verifyFiles(&report, repair: repair)
        try perform { index throws(StoreError) in
            let connection = try index.connection
            let part =
                try repair
                ? index.write { _ throws(StoreError) in try index.verifyRows(repair: true) }
                : connection.write { () throws(StoreError) in try index.verifyRows(repair: false) }
            report.brokenEntries = part.brokenEntries
            report.wrongSlots = part.wrongSlots
            report.wrongSums = part.wrongSums
        }
        report.isRepaired = repair && !report.isClean
        return report
    }

    private func verifyBodies(_ report: inout VerifyReport, repair: Bool) throws(StoreError) {
        for tier in [DiskTier.originals, .variants] {
            let query: SQLText = """
                SELECT id, digest, length, checksum, place FROM \(tier.rawValue) WHERE id > ?1 ORDER BY id LIMIT 256
                """
            var after = -1
            while true {
                let start = after
                let page = try perform { index throws(StoreError) in
                    try index.connection.rows(query, .integer(start)) {
                        (id: $0.integer(0), digest: $0.digestKey(1), body: DiskIndex.StoredBody($0, at: 2))
                    }
                }
                guard let last = page.last else { break }
                after = last.id
                for row in page {
                    guard let digest = row.digest else { continue }
                    try verify(digest, row.body, of: tier, row.id, &report, repair: repair)
                }
            }
        }
    }

    /// Reads one body. One that several entries have is read for each of them.
    private func verify(
        _ digest: DigestKey, _ body: DiskIndex.StoredBody, of tier: DiskTier, _ id: Int, _ report: inout VerifyReport,
        repair: Bool
    ) throws(StoreError) {
        report.bodiesChecked += 1
        let located = Located(row: id, digest: digest, cost: 0, body: body)
        if try whole(located, longest: configuration.inlineLimit) != nil { return }
        let isMissing = body.place == nil && access(files.path(digest.text), F_OK) != 0
        // Evicted or replaced since the row was read: nothing is wrong.
        guard try confirmDamage(located, tier: tier, removes: repair) else { return }
        if isMissing { report.missingFiles += 1 } else { report.damagedBodies += 1 }
    }

    private func verifyFiles(_ report: inout VerifyReport, repair: Bool) throws(StoreError) {
        let foreign = files.foreign()
        report.foreignFiles = foreign.others
        report.orphanFiles = foreign.false.count
        if repair, !foreign.false.isEmpty {
            for path in foreign.false { BodyFiles.delete(path) }
            try perform { index throws(StoreError) in index.note(.originals) { $0.corrupt += foreign.false.count } }
        }
        for prefix in BodyFiles.prefixes {
            for digest in files.bodies(in: prefix) where !foreign.false.contains(files.path(digest)) {
                let isOrphan = try perform { index throws(StoreError) in
                    if try index.isNamed(digest) { return false }
                    // Once more under the write lock: a file renamed in and not committed yet is no orphan.
                    return try index.connection.write { () throws(StoreError) in
                        let isOrphan = try !index.isNamed(digest) && files.isThere(digest)
                        if isOrphan, repair { files.remove(digest) }
                        return isOrphan
                    }
                }
                if isOrphan { report.orphanFiles += 1 }
            }
        }
        let abandoned = files.abandoned(after: configuration.graceSeconds)
        report.abandonedFiles = abandoned.count
        if repair {
            for path in abandoned { unlink(path) }
            files.removeSetAside()
        }
    }
}

extension DiskIndex {
    /// Whether SQLite finds its own structure damaged; repairing sets the database aside and starts anew.
    fileprivate func isDamaged(repair: Bool) throws(StoreError) -> Bool {
        var isDamaged = false
        do throws(StoreError) {
            let found = try connection.first("PRAGMA quick_check(1)") { $0.text(0) } ?? ""
            isDamaged = found != "ok"
            // quick_check reports read errors as text ("error code=266"). SQLITE_IOERR is a disk error, except a short read
            // (522), which means that the file was truncated.
            let codes = found.split(separator: "=").dropFirst().compactMap { Int($0.prefix { $0.isNumber }) }
            if codes.contains(where: { $0 & 0xFF == 10 && $0 >> 8 != 2 }) {
                throw StoreError(.io, "the index cannot be read: \(found.prefix(200))", path: path)
            }
        } catch {
            guard error.code == .damaged else { throw error }
            isDamaged = true
        }
        if isDamaged, repair { try rebuild() }
        return isDamaged
    }

    /// Compares entries, references and sums with each other. Inside a write transaction.
    fileprivate func verifyRows(repair: Bool) throws(StoreError) -> VerifyReport {
        var report = VerifyReport()
        report.brokenEntries += try wrongOriginals(repair: repair)
        let records = try connection.recordRows("WHERE ?1 = 0", .integer(0)).filter { $0.record == nil }
        report.brokenEntries += records.count
        if repair { for row in records { try removeRow(.records, row.id) } }
        report.wrongSlots = try wrongSlots(repair: repair) + wrongSharers(repair: repair)
        try verifySums(&report, repair: repair)
        return report
    }

    private func verifySums(_ report: inout VerifyReport, repair: Bool) throws(StoreError) {
        let connection = try connection
        if isWriting { try writeTiers(connection, withNotes: false) }
        for tier in DiskTier.allCases {
            let sums = "(SELECT count(*), CAST(total(size) AS INTEGER) FROM \(tier.rawValue))"
            let wrong = try connection.first(
                "SELECT 1 FROM tiers WHERE name = ?1 AND (entries, bytes) <> \(sums)", .text(tier.rawValue)
            ) { _ in true }
            guard wrong != nil else { continue }
            report.wrongSums += 1
            guard repair else { continue }
            try connection.run(
                "UPDATE tiers SET (entries, bytes) = \(sums) WHERE name = ?1", .text(tier.rawValue))
        }
        try readTiers(connection)
    }
}
