/// Numbers of originals, which their entries are kept under, and the sources that have had them. All of it inside a write
/// transaction of the caller, except `original(_:)`.
///
/// `digests` is found by the beginning of a digest alone: whoever comes from a number has the digest beside it.
extension DiskIndex {
    /// An original as the rows of its entries name it.
    struct NumberedOriginal: Hashable {
        let number: Int
        /// What leads to its row of `digests`; nil where the row that should tell is damaged, and `verify` mends the rest.
        let head: Int?

        init(_ number: Int, _ digest: DigestKey?) {
            self.number = number
            head = digest?.head
        }
    }

    /// Rows of the variants of an original.
    static func variants(of original: Int) -> Range<Int> {
        let first = original << DiskSchema.variantBits
        return first..<max(first, first &+ 1 << DiskSchema.variantBits)
    }

    // MARK: Numbers

    /// That a row of `digests` has a number that an original may have: any bit of it may be a wrong one.
    static let isNumber = "digests.id BETWEEN 0 AND \(DiskSchema.lastOriginal)"

    private static let numberOf = SQLText(
        kept: "SELECT id, source IS ?3 FROM digests WHERE head = ?1 AND digest = ?2 AND \(isNumber)")

    /// The number of an original; nil while nothing is known of it.
    func original(_ digest: DigestKey) throws(StoreError) -> Int? {
        try connection.first(Self.numberOf, .integer(digest.head), .digest(digest)) { $0.integer(0) }
    }

    /// The number of an original, which it is given now where it has none, and which is linked with a source that has it.
    func numbered(_ digest: DigestKey, source: String) throws(StoreError) -> Int {
        let found = try connection.first(Self.numberOf, .integer(digest.head), .digest(digest), .text(source)) {
            (number: $0.integer(0), isFirst: $0.integer(1) != 0)
        }
        guard let found else { return try number(digest, source: source) }
        if !found.isFirst { try link(source, found.number, digest) }
        return found.number
    }

    /// Gives an original that has none a number.
    ///
    /// - Parameter source: the first that has it, where that is known.
    func number(_ digest: DigestKey, source: String?) throws(StoreError) -> Int {
        let connection = try connection
        var next = known.nextOriginal
        if next == nil { next = try connection.first(Self.nextOriginal) { $0.integer(0) } }
        let number = next ?? 1
        guard number <= DiskSchema.lastOriginal else {
            throw StoreError(.damaged, "the index is damaged: an original has the number \(number)", path: files.folder)
        }
        // What damage has left under a number that nothing has any more gives way.
        try connection.run(
            "INSERT OR REPLACE INTO digests (head, id, digest, source) VALUES (?1, ?2, ?3, ?4)", .integer(digest.head),
            .integer(number), .digest(digest), source.map { .text($0) } ?? .null)
        if let source {
            try connection.run(
                "INSERT OR REPLACE INTO links (source, original, head, further) VALUES (?1, ?2, ?3, 0)", .text(source),
                .integer(number), .integer(digest.head))
        }
        known.nextOriginal = number + 1
        return number
    }

    /// The first number above those of all entries, for which the ends of three tables are looked at. Numbers that cannot
    /// be are left out.
    private static let nextOriginal = SQLText(
        kept: """
            SELECT 1 + max( \
            ifnull((SELECT max(id) FROM originals WHERE id <= \(DiskSchema.lastOriginal)), 0), \
            ifnull((SELECT max(original) FROM records WHERE original <= \(DiskSchema.lastOriginal)), 0), \
            ifnull((SELECT max(id) FROM variants WHERE id < \((DiskSchema.lastOriginal + 1) << DiskSchema.variantBits)), 0) \
            >> \(DiskSchema.variantBits))
            """)

    // MARK: Links

    /// Links an original with a source that is not the first that `digests` names.
    func link(_ source: String, _ original: Int, _ digest: DigestKey) throws(StoreError) {
        try connection.run(
            "INSERT OR IGNORE INTO links (source, original, head, further) VALUES (?1, ?2, ?3, 1)", .text(source),
            .integer(original), .integer(digest.head))
    }

    /// Forgets that a source has had these originals, and others.
    func forgetLinks(of source: String, _ originals: [NumberedOriginal]) throws(StoreError) {
        let connection = try connection
        for original in originals {
            guard let head = original.head else { continue }
            try connection.run(
                "UPDATE digests SET source = NULL WHERE head = ?1 AND id = ?2 AND source = ?3", .integer(head),
                .integer(original.number), .text(source))
        }
        try connection.run("DELETE FROM links WHERE source = ?1", .text(source))
    }

    // MARK: Forgetting

    /// Deletes an original's body and links when no record speaks of it any more.
    func dropUnrecorded(_ original: NumberedOriginal) throws(StoreError) {
        if try isRecorded(original.number) { return }
        try removeRow(.originals, original.number)
        try forgetUnneeded(original)
    }

    /// Forgets an original and which sources it belonged to once neither a record nor a variant needs it.
    func forgetUnneeded(_ original: NumberedOriginal) throws(StoreError) {
        let connection = try connection
        let number = original.number
        let variants = Self.variants(of: number)
        let isNeeded = try connection.first(
            """
            SELECT EXISTS (SELECT 1 FROM variants WHERE id >= ?1 AND id < ?2) \
            OR EXISTS (SELECT 1 FROM records WHERE original = ?3)
            """, .integer(variants.lowerBound), .integer(variants.upperBound), .integer(number)
        ) { $0.integer(0) != 0 }
        if isNeeded == true { return }
        if let head = original.head {
            try connection.run(
                """
                DELETE FROM links WHERE source = (SELECT source FROM digests WHERE head = ?1 AND id = ?2) \
                AND original = ?2
                """, .integer(head), .integer(number))
            try connection.run("DELETE FROM digests WHERE head = ?1 AND id = ?2", .integer(head), .integer(number))
        }
        try connection.run("DELETE FROM links WHERE original = ?1 AND further", .integer(number))
        forgotten += 1
    }

    private func isRecorded(_ original: Int) throws(StoreError) -> Bool {
        try connection.first("SELECT 1 FROM records WHERE original = ?1 LIMIT 1", .integer(original)) { _ in true }
            ?? false
    }

    // MARK: Verifying

    /// How many rows say something of originals that others do not: numbers, digests and links are kept in several places.
    ///
    /// - Parameter repair: removes what nothing else bears out, entries among it, and mends links.
    func wrongOriginals(repair: Bool) throws(StoreError) -> Int {
        let connection = try connection
        connection.addDigestFunctions()
        var wrong = 0
        for condition in Self.wrongNumbers {
            let found = try connection.rows("SELECT head, id FROM digests WHERE \(condition)") {
                (head: $0.integer(0), number: $0.integer(1))
            }
            wrong += found.count
            guard repair else { continue }
            for row in found {
                try connection.run(
                    "DELETE FROM digests WHERE head = ?1 AND id = ?2", .integer(row.head), .integer(row.number))
            }
        }
        for (tier, number, digest) in Self.naming {
            let lost = try connection.rows(
                """
                SELECT entries.id FROM \(tier.rawValue) AS entries LEFT JOIN digests \
                ON digests.head = digest_head(entries.\(digest)) AND digests.id = \(number) \
                WHERE digests.digest IS NOT entries.\(digest)
                """
            ) { $0.integer(0) }
            wrong += lost.count
            if repair { for id in lost { try removeRow(tier, id) } }
        }
        return try wrong + wrongLinks(repair: repair)
    }

    /// Which rows of `digests` are wrong, in the order in which they are removed: those that nothing finds, that no entry
    /// bears out, and of two with one number or one digest one.
    private static let wrongNumbers = [
        "head IS NOT digest_head(digest) OR NOT \(isNumber)",
        """
        NOT EXISTS (SELECT 1 FROM records WHERE original = digests.id AND records.digest = digests.digest) \
        AND NOT EXISTS (SELECT 1 FROM variants WHERE original = digests.digest \
        AND variants.id >= digests.id << \(DiskSchema.variantBits) \
        AND variants.id < (digests.id + 1) << \(DiskSchema.variantBits))
        """,
        """
        (head, id) IN (SELECT head, id FROM (SELECT head, id, row_number() OVER (PARTITION BY id ORDER BY head) AS nth \
        FROM digests) WHERE nth > 1)
        """,
        """
        (head, id) IN (SELECT head, id FROM (SELECT head, id, row_number() OVER (PARTITION BY digest ORDER BY id) AS nth \
        FROM digests) WHERE nth > 1)
        """,
    ]

    /// Where each tier has the number and the digest of an original.
    private static let naming: [(tier: DiskTier, number: String, digest: String)] = [
        (.originals, "entries.id", "digest"), (.variants, "entries.id >> \(DiskSchema.variantBits)", "original"),
        (.records, "entries.original", "digest"),
    ]

    private func wrongLinks(repair: Bool) throws(StoreError) -> Int {
        let connection = try connection
        let source = "(SELECT digests.source FROM digests WHERE digests.head = links.head AND id = original)"
        let isNothing = "NOT EXISTS (SELECT 1 FROM digests WHERE digests.head = links.head AND id = original)"
        let isFalse = "(further <> 0) <> (links.source IS NOT \(source))"
        let isMissing = """
            source IS NOT NULL AND NOT EXISTS \
            (SELECT 1 FROM links WHERE links.source = digests.source AND original = id AND links.head = digests.head)
            """
        let wrong = try connection.first(
            """
            SELECT (SELECT count(*) FROM links WHERE \(isNothing)) \
            + (SELECT count(*) FROM links WHERE NOT (\(isNothing)) AND \(isFalse)) \
            + (SELECT count(*) FROM digests WHERE \(isMissing))
            """
        ) { $0.count(0) }
        if repair, wrong != 0 {
            try connection.run("DELETE FROM links WHERE \(isNothing)")
            try connection.run(
                "INSERT OR REPLACE INTO links SELECT source, id, head, 0 FROM digests WHERE \(isMissing)")
            try connection.run("UPDATE links SET further = links.source IS NOT \(source)")
        }
        return wrong ?? 0
    }
}
