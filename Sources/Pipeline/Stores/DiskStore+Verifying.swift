import Glibc

/// What `verify` found; each number counts faults, and all of them are mended when it repaired.
public struct VerifyReport: Sendable, Hashable {
    /// Bodies read and compared with their checksum.
    public var bodiesChecked = 0
    /// Bodies whose length or checksum is wrong.
    public var damagedBodies = 0
    /// Rows whose body file is not there.
    public var missingFiles = 0
    /// Body files that no row names.
    public var orphanFiles = 0
    /// What lies among the bodies and can be none: other names, links, files of other users.
    public var foreignFiles = 0
    /// Files of interrupted writes, untouched for ten minutes.
    public var abandonedFiles = 0
    /// Entries whose body has no row, and records that cannot be decoded.
    public var brokenEntries = 0
    /// Bodies whose count of references is wrong.
    public var wrongReferences = 0
    /// Tiers whose sums of entries or bytes are wrong.
    public var wrongSums = 0
    /// The database itself is damaged; repairing starts an empty one.
    public var isIndexDamaged = false
    /// Whether the faults were mended.
    public var isRepaired = false

    public init() {}

    /// Whether nothing was wrong.
    public var isClean: Bool {
        !isIndexDamaged
            && damagedBodies + missingFiles + orphanFiles + foreignFiles + abandonedFiles + brokenEntries
                + wrongReferences
                + wrongSums == 0
    }
}

extension DiskStore {
    /// Reads every body and compares index and folder in both directions. Other processes may go on meanwhile: the
    /// index is locked for one body at a time.
    public func verify(repair: Bool = false) throws(StoreError) -> VerifyReport {
        var report = VerifyReport()
        report.isRepaired = repair
        report.isIndexDamaged = try perform { index throws(StoreError) in try index.isDamaged(repair: repair) }
        if report.isIndexDamaged, !repair { return report }
        // What has been left by the killed and is deleted by the next to write anyway is no fault.
        try perform { index throws(StoreError) in
            _ = try index.connection
            index.reclaim()
            while index.isSweeping, index.sweep() {}
        }
        try verifyBodies(&report)
        try verifyFiles(&report)
        try perform { index throws(StoreError) in
            let connection = try index.connection
            let part =
                try repair
                ? index.write { _ throws(StoreError) in try index.verifyRows(repair: true) }
                : connection.write { () throws(StoreError) in try index.verifyRows(repair: false) }
            report.brokenEntries = part.brokenEntries
            report.wrongReferences = part.wrongReferences
            report.wrongSums = part.wrongSums
        }
        return report
    }

    private func verifyBodies(_ report: inout VerifyReport) throws(StoreError) {
        var after = 0
        while true {
            let start = after
            let page = try perform { index throws(StoreError) in
                try index.connection.rows(
                    "SELECT id, digest FROM bodies WHERE id > ?1 ORDER BY id LIMIT 256", .integer(start)
                ) { (id: $0.integer(0), digest: $0.text(1)) }
            }
            guard let last = page.last else { return }
            after = last.id
            for row in page {
                guard let body = try perform({ index throws(StoreError) in try index.body(row.digest) }) else {
                    continue
                }
                var bytes = body.data
                if bytes == nil { bytes = try files.read(row.digest, length: body.length) }
                report.bodiesChecked += 1
                if let bytes, bytes.count == body.length, CRC32C.checksum(bytes) == body.checksum { continue }
                // Evicted since the row was read: nothing is wrong.
                let isThere = try perform { index throws(StoreError) in try index.body(row.digest) != nil }
                guard isThere else { continue }
                if bytes == nil, access(files.path(row.digest), F_OK) != 0 {
                    report.missingFiles += 1
                } else {
                    report.damagedBodies += 1
                }
                guard report.isRepaired else { continue }
                try perform { index throws(StoreError) in try index.removeDamaged(row.digest, seenIn: .originals) }
            }
        }
    }

    private func verifyFiles(_ report: inout VerifyReport) throws(StoreError) {
        let repair = report.isRepaired
        let foreign = files.foreign()
        report.foreignFiles = foreign.count
        if repair, !foreign.isEmpty {
            for path in foreign { BodyFiles.delete(path) }
            try perform { index throws(StoreError) in index.note(.originals) { $0.corrupt += foreign.count } }
        }
        for prefix in BodyFiles.prefixes {
            for digest in files.bodies(in: prefix) {
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
            isDamaged = try connection.first("PRAGMA quick_check(1)") { $0.text(0) } != "ok"
        } catch {
            guard error.code == .damaged else { throw error }
            isDamaged = true
        }
        if isDamaged, repair { try rebuild() }
        return isDamaged
    }

    /// Compares entries, references and sums with each other. Inside a write transaction.
    fileprivate func verifyRows(repair: Bool) throws(StoreError) -> VerifyReport {
        let connection = try connection
        var report = VerifyReport()
        for tier in [DiskTier.originals, .variants] {
            let broken = try connection.rows(
                "SELECT id FROM \(tier.rawValue) WHERE digest NOT IN (SELECT digest FROM bodies)"
            ) { $0.integer(0) }
            report.brokenEntries += broken.count
            if repair { for id in broken { try removeRow(tier, id) } }
        }
        let records = try recordRows("WHERE ?1 = 0", .integer(0)).filter { $0.record == nil }
        report.brokenEntries += records.count
        if repair { for row in records { try removeRow(.records, row.id) } }
        try verifyReferences(&report, repair: repair)
        try verifySums(&report, repair: repair)
        return report
    }

    private func verifyReferences(_ report: inout VerifyReport, repair: Bool) throws(StoreError) {
        let connection = try connection
        let counted = """
            (SELECT count(*) FROM originals WHERE originals.digest = bodies.digest) + \
            (SELECT count(*) FROM variants WHERE variants.digest = bodies.digest)
            """
        let wrong = try connection.rows("SELECT digest FROM bodies WHERE refs <> \(counted)") { $0.text(0) }
        report.wrongReferences = wrong.count
        guard repair else { return }
        for digest in wrong {
            try connection.run("UPDATE bodies SET refs = \(counted) + 1 WHERE digest = ?1", .text(digest))
            try releaseBody(digest)
        }
    }

    private func verifySums(_ report: inout VerifyReport, repair: Bool) throws(StoreError) {
        let connection = try connection
        for tier in DiskTier.allCases {
            let sums = "(SELECT count(*), ifnull(sum(size), 0) FROM \(tier.rawValue))"
            let wrong = try connection.first(
                "SELECT 1 FROM tiers WHERE name = ?1 AND (entries, bytes) <> \(sums)", .text(tier.rawValue)
            ) { _ in true }
            guard wrong != nil else { continue }
            report.wrongSums += 1
            guard repair else { continue }
            try connection.run(
                "UPDATE tiers SET (entries, bytes) = \(sums) WHERE name = ?1", .text(tier.rawValue))
        }
    }
}
