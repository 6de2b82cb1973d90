import HTTPCaching

extension DiskStore {
    /// Records that a look-up found stale records.
    package func noteStale() { notes.note(.records) { $0.stale += 1 } }

    /// Returns the records of a source, newest first. There is one record for each selection that the source's `Vary`
    /// has led to.
    package func records(source: String) throws(StoreError) -> [OriginalRecord] {
        let found = try lookUp(missing: .records) { view throws(StoreError) -> [OriginalRecord]? in
            var records: [OriginalRecord] = []
            for row in try view.connection.recordRows("WHERE source = ?1 ORDER BY response_time DESC", [.text(source)])
            {
                if let record = row.listed?.record {
                    records.append(record)
                    view.notes.use(.records, row: row.id)
                } else {
                    try view.removeDamaged(.records, row: row.id)
                }
            }
            if records.isEmpty { return nil }
            view.notes.note(.records) { $0.hits += 1 }
            return records
        }
        return found ?? []
    }

    /// Stores a record and its body, replacing the record with the same source and selecting fields.
    ///
    /// - Parameters:
    ///   - body: the bytes with the digest `record.digest`, or nil to store only the record. A body larger than the
    ///     budget is refused and counted, and only the record is stored.
    ///   - generation: `generationNow()` when the work began.
    /// - Returns: false if the source or the digest was purged in the meantime, or if the record was refused.
    @discardableResult
    package func storeOriginal(
        _ record: OriginalRecord, body: [UInt8]?, generation: UInt64
    ) throws(StoreError) -> Bool {
        try storeOriginal(record, content: body.map(EntryBody.bytes), generation: generation)
    }

    /// Stores an original with a body that may be a file. A file is never completely read into memory.
    package func storeOriginal(
        _ record: OriginalRecord, content body: EntryBody?, generation: UInt64
    ) throws(StoreError) -> Bool {
        guard body == nil || body?.count == record.length else {
            throw StoreError(
                .invalid, "the original has \(body?.count ?? 0) bytes, but its record says \(record.length)")
        }
        return try storing(record.digest, body, tier: .originals) { transaction, incoming throws(StoreError) in
            guard
                try transaction.mayStore(
                    [record.source, record.digest], source: record.source, generation: generation),
                try transaction.replace(record)
            else { return false }
            if let content = incoming.content { try transaction.addOriginal(record, content, incoming) }
            return true
        }
    }

    /// Replaces the header fields and times of a record after a 304 response, and keeps its body.
    ///
    /// - Parameter generation: `generationNow()` when the work began.
    /// - Returns: false if the record was removed, or if the source was purged in the meantime.
    @discardableResult
    package func freshen(_ record: OriginalRecord, generation: UInt64 = .max) throws(StoreError) -> Bool {
        try perform { index throws(StoreError) in
            try index.write { transaction throws(StoreError) in
                guard try transaction.mayStore([record.source], source: record.source, generation: generation),
                    try transaction.connection.record(of: record.source, record.selection) != nil
                else { return false }
                return try transaction.replace(record)
            }
        }
    }

    /// Returns the bytes of an original. Returns nil if they are not stored or were damaged.
    package func originalBody(digest: String) throws(StoreError) -> [UInt8]? {
        guard case .bytes(let bytes)? = try originalBody(digest: digest, longest: .max) else { return nil }
        return bytes
    }

    /// Returns the body of an original like the function above, except that a body longer than `longest` bytes is
    /// returned as an open file. The file is verified but not read into memory.
    package func originalBody(digest: String, longest: Int) throws(StoreError) -> EntryBody? {
        guard let key = DigestKey(digest) else { return nil }
        let found = try found(in: .originals, longest: longest) {
            view throws(StoreError) -> (entry: Void, located: UncheckedEntry)? in
            let found = try view.connection.first(
                """
                SELECT id, cost, data, \(IndexTransaction.bodyColumns) FROM bodies JOIN originals USING (id) \
                WHERE \(DiskSchema.equal("digest", "?1"))
                """, .digest(key)
            ) {
                UncheckedEntry(
                    row: $0.integer(0), digest: key, cost: $0.real(1), body: IndexTransaction.StoredBody($0, at: 3),
                    bytes: $0.blob(2))
            }
            return found.map { ((), $0) }
        }
        return found?.body
    }

    /// Returns whether the body of an original is stored. Counts no access and does not read the body.
    package func holdsOriginal(digest: String) throws(StoreError) -> Bool {
        guard let key = DigestKey(digest) else { return false }
        return try lookUp { view throws(StoreError) in
            try view.connection.first(
                "SELECT 1 FROM bodies JOIN originals USING (id) WHERE \(DiskSchema.equal("digest", "?1"))", .digest(key)
            ) { _ in true }
        } ?? false
    }

    /// Removes one record, and its body if no other record refers to the same bytes.
    @discardableResult
    package func removeRecord(source: String, selection: OriginalRecord.Selection) throws(StoreError) -> Bool {
        try perform { index throws(StoreError) in
            guard try index.connection.record(of: source, selection) != nil else { return false }
            return try index.write { transaction throws(StoreError) in
                guard let row = try transaction.connection.record(of: source, selection) else { return false }
                try transaction.removeRow(.records, row)
                return true
            }
        }
    }
}

extension SQLiteConnection {
    /// Returns the row of a source's record with this selection.
    fileprivate func record(
        of source: String, _ selection: OriginalRecord.Selection
    ) throws(StoreError) -> Int? {
        try first(
            "SELECT id FROM records WHERE source = ?1 AND selecting = ?2 AND provisional = ?3", .text(source),
            .blob(EntryCoding.encode(selection.fields)), .integer(selection.isProvisional ? 1 : 0)
        ) { $0.integer(0) }
    }
}
