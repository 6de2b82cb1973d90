/// Which entries have the same body. All of it inside a write transaction of the caller, except `body(of:)`.
///
/// A file has the digest as its name, and the rows that name it are found by an index of those rows alone. A slot belongs
/// to its row; where several rows name one, `shared` has all of them. That equal bytes are there is learnt from `holders`,
/// a file beside the index that may have forgotten it: then they are stored once more.
extension DiskIndex {
    /// An entry with a body: a row of `originals` or `variants`.
    struct Holder: Hashable {
        let tier: DiskTier
        let row: Int

        init(_ tier: DiskTier, _ row: Int) {
            self.tier = tier
            self.row = row
        }

        /// As `shared` and `holders` have it.
        init(number: Int) {
            tier = number & 1 == 0 ? .variants : .originals
            row = number >> 1
        }

        var number: Int { row << 1 | (tier == .originals ? 1 : 0) }
    }

    /// The body of an entry; nil when there is no such entry, or it has other bytes.
    func body(of holder: Holder, _ digest: DigestKey) throws(StoreError) -> StoredBody? {
        try connection.first(holder.tier.body, .integer(holder.row)) {
            $0.digestKey(0) == digest ? StoredBody($0, at: 1) : nil
        } ?? nil
    }

    /// An entry that has these bytes, as far as is known, and where they are: in a slot or in a file, whichever ones of this
    /// length are put into.
    func holder(of digest: DigestKey, length: Int) throws(StoreError) -> (holder: Holder, body: StoredBody)? {
        let holder =
            length <= configuration.inlineLimit
            ? holders.number(of: digest.ghost, buckets: holders.buckets).map { Holder(number: $0) }
            : try filed(digest)
        guard let holder, let body = try body(of: holder, digest) else { return nil }
        return (holder, body)
    }

    /// An entry whose body is the file of this digest.
    func filed(_ digest: DigestKey) throws(StoreError) -> Holder? {
        let variant = try connection.first(
            "SELECT id FROM variants WHERE digest = ?1 AND place IS NULL LIMIT 1", .digest(digest)
        ) { Holder(.variants, $0.integer(0)) }
        if let variant { return variant }
        return try connection.first(
            Self.originalInFile, .integer(digest.head), .digest(digest)
        ) { Holder(.originals, $0.integer(0)) }
    }

    private static let originalInFile = SQLText(
        kept: """
            SELECT id FROM digests CROSS JOIN originals USING (id) WHERE head = ?1 AND originals.digest = ?2 \
            AND place IS NULL
            """)

    /// Notes that a row, which has been written, has this body.
    ///
    /// - Parameter other: the entry that had it before.
    func hold(_ digest: DigestKey, _ body: StoredBody, by holder: Holder, with other: Holder?) throws(StoreError) {
        // A file is found by its name, and one of no bytes takes no slot.
        guard let place = body.place, body.length > 0 else { return }
        if let other, other != holder {
            for holder in [other, holder] {
                try connection.run(
                    "INSERT OR IGNORE INTO shared VALUES (?1, ?2)", .integer(place), .integer(holder.number))
            }
        }
        var buckets = holders.buckets
        if buckets == 0 {
            holders.begin()
            buckets = KeyFile.leastBuckets
        }
        // Half full at most, so that a bucket hardly ever forgets an entry that is still there.
        while states.variants.entries + states.originals.entries > 4 * buckets, buckets < KeyFile.mostBuckets {
            holders.double(from: buckets)
            buckets *= 2
        }
        holders.insert(digest.ghost, number: holder.number, buckets: buckets)
    }

    /// Gives up the body of an entry whose row is deleted; with the last one that has it the body goes.
    func release(_ digest: DigestKey, _ body: StoredBody, of holder: Holder) throws(StoreError) {
        guard let place = body.place else {
            if try filed(digest) == nil { try discard(digest.text) }
            return
        }
        if body.length == 0 { return }
        let wasShared = try connection.run(
            "DELETE FROM shared WHERE place = ?1 AND entry = ?2", .integer(place), .integer(holder.number))
        if wasShared > 0 {
            let others = try connection.rows("SELECT entry FROM shared WHERE place = ?1 LIMIT 2", .integer(place)) {
                $0.integer(0)
            }
            if others.count == 1 { try connection.run("DELETE FROM shared WHERE place = ?1", .integer(place)) }
            if !others.isEmpty { return }
        }
        free(place, bytes: body.length)
    }

    /// Every entry that has the body of one.
    private func sharers(of holder: Holder, _ digest: DigestKey, _ body: StoredBody) throws(StoreError) -> Set<Holder> {
        var holders: Set = [holder]
        if let place = body.place {
            let others = try connection.rows("SELECT entry FROM shared WHERE place = ?1", .integer(place)) {
                Holder(number: $0.integer(0))
            }
            // Not what a damaged table says.
            for other in others where try self.body(of: other, digest)?.place == place { holders.insert(other) }
        } else {
            holders.formUnion(try self.holders(ofFile: digest))
        }
        return holders
    }

    /// Every entry whose body is the file of this digest.
    func holders(ofFile digest: DigestKey) throws(StoreError) -> [Holder] {
        try connection.rows("SELECT id FROM variants WHERE digest = ?1 AND place IS NULL", .digest(digest)) {
            Holder(.variants, $0.integer(0))
        }
            + connection.rows(
                Self.originalInFile, .integer(digest.head), .digest(digest)
            ) { Holder(.originals, $0.integer(0)) }
    }

    /// Whether a body is damaged, asked while nobody else writes: where it lay, another's may have been for a moment.
    ///
    /// - Parameters:
    ///   - removes: whether it is deleted then, with every entry made of it.
    ///   - isWhole: reads it once more.
    func confirmDamage(
        of holder: Holder, _ digest: DigestKey, _ body: StoredBody, removes: Bool,
        isWhole: () throws(StoreError) -> Bool
    ) throws(StoreError) -> Bool {
        func isDamaged() throws(StoreError) -> Bool {
            guard try self.body(of: holder, digest) == body else { return false }
            return try !isWhole()
        }
        guard removes else { return try connection.write { () throws(StoreError) in try isDamaged() } }
        let isRemoved = try write { _ throws(StoreError) in
            guard try isDamaged() else { return false }
            try removeEntries(holder, digest, body)
            return true
        }
        if isRemoved { note(holder.tier) { $0.corrupt += 1 } }
        return isRemoved
    }

    /// Deletes every entry with a body.
    func removeEntries(_ holder: Holder, _ digest: DigestKey, _ body: StoredBody) throws(StoreError) {
        for holder in try sharers(of: holder, digest, body) {
            try removeRow(holder.tier, holder.row)
            if holder.tier == .originals { try forgetUnneeded(NumberedOriginal(holder.row, digest)) }
        }
    }

    /// How many rows of `shared` are missing or wrong.
    func wrongSharers(repair: Bool) throws(StoreError) -> Int {
        let connection = try connection
        let wrong = try connection.first(
            """
            SELECT (SELECT count(*) FROM (\(DiskSchema.sharers) EXCEPT SELECT place, entry FROM shared)) \
            + (SELECT count(*) FROM (SELECT place, entry FROM shared EXCEPT \(DiskSchema.sharers)))
            """
        ) { $0.count(0) }
        if repair, wrong != 0 {
            try connection.run("DELETE FROM shared")
            try connection.run("INSERT INTO shared \(DiskSchema.sharers)")
        }
        return wrong ?? 0
    }
}
