extension DiskStore {
    /// Returns the current purge generation, which must be passed to later stores. A purge in the meantime invalidates
    /// these stores.
    package func generationNow() throws(StoreError) -> UInt64 {
        try lookUp { view throws(StoreError) in try view.connection.generation() } ?? 1
    }

    /// The last generation that any process announced, or 0 if the file cannot be read. This does not read the index.
    /// While a purge commits, it may be ahead of `generationNow()`.
    package var generationHint: UInt64? { generationPage.value }

    /// Returns the purges that any process has made since the given generation.
    package func purges(since generation: UInt64) throws(StoreError) -> PurgeLog {
        let log = try lookUp { view throws(StoreError) in try view.connection.purges(since: generation) }
        let now = log?.mark.rawValue ?? 0
        if generationHint != now { try perform { index throws(StoreError) in index.shareGeneration() } }
        return log ?? PurgeLog(mark: PurgeMark(now), names: nil)
    }

    /// Removes a source's records, their bodies, and all variants of every digest that the source has had, even if a
    /// different source has the same bytes. A body stays if a record of a different source refers to it.
    ///
    /// - Parameters:
    ///   - digests: additional originals that are known to belong to the source and for which no record exists.
    ///   - mode: whether to remove the source, to remove only its variants, or to make it stale.
    package func purge(
        source: String, digests: Set<String> = [], mode: PurgeMode = .hard
    ) throws(StoreError) -> PurgeResult {
        try purge(sources: [source], digests: digests, mode: mode)
    }

    /// Purges several sources, in transactions of 64 sources.
    package func purge(
        sources: some Collection<String>, digests: Set<String> = [], mode: PurgeMode = .hard
    ) throws(StoreError) -> PurgeResult {
        var (result, left, partial) = (PurgeResult(), Array(sources)[...], Set<String>())
        // If there is not enough space for the complete transaction, smaller transactions remove variants first.
        while !left.isEmpty {
            let step = try removeSome(digests.union(partial), mode, announces: true) { _, limit in
                Array(left.prefix(limit))
            }
            guard let step else { break }
            result.add(step.removed)
            partial = step.done.isEmpty ? step.removed.digests : []
            left = left.dropFirst(step.done.count)
            if !left.isEmpty { yieldToOthers() }
        }
        shrink()
        return result
    }

    /// Removes every source of a selection in the way that `purge(source:)` does, in transactions of 64 sources. The
    /// time depends only on the number of removed entries.
    ///
    /// Invalidates work in progress on the selection, and on variants with an unknown source. Work that begins and is
    /// stored during the call may be removed or stay.
    package func purge(_ selection: SourceSelection, mode: PurgeMode = .hard) throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        _ = try remember(selection, [])
        for range in selection.ranges {
            var from = range.from
            func sources(_ connection: SQLiteConnection, _ limit: Int) throws(StoreError) -> [String] {
                try connection.sources(from: from, below: range.below, limit: limit)
            }
            while let step = try removeSome([], mode, announces: false, sources) {
                result.add(step.removed)
                // This is the next string in sort order.
                if let last = step.done.last { from = last + "\0" }
                yieldToOthers()
            }
        }
        // Record the purge again, for entries that other processes have loaded into memory in the meantime.
        result.mark = PurgeMark(try remember(selection, result.digests))
        shrink()
        return result
    }

    /// Removes everything without needing free space, and invalidates all work in progress. Event counters stay.
    ///
    /// - Returns: what was removed. `sources` and `digests` are not set.
    @discardableResult
    package func clear() throws(StoreError) -> PurgeResult {
        // Release the space reserve to make room for the new index.
        _ = files.reserve.giveUp()
        let (held, generation) = try perform { index throws(StoreError) in
            let held = try index.replace()
            return (held, try index.connection.generation())
        }
        while try perform({ index throws(StoreError) in index.isSweeping && index.sweep() }) { yieldToOthers() }
        files.removeSetAside()
        files.reserve.fill()
        var result = PurgeResult()
        result.records = held.records.entries
        result.originals = held.originals.entries
        result.variants = held.variants.entries
        result.bytes = held.originals.bytes + held.variants.bytes
        result.mark = PurgeMark(generation)
        return result
    }

    /// Marks every record so that it is validated before its next use, because purges of this folder may have been
    /// missed. Invalidates all work in progress.
    ///
    /// - Returns: the generation. Work that began before this generation is invalid.
    package func markAllForValidation() throws(StoreError) -> UInt64 {
        // This comes first, so that everything stored from now on is newer.
        let generation = try deleting { transaction, _ throws(StoreError) in try transaction.voidWorkBegun() }
        var row: Int? = Int.min
        while let last = row {
            row = try deleting { transaction, limit throws(StoreError) in
                try transaction.markForValidation(after: last, limit: limit)
            }
            yieldToOthers()
        }
        return generation
    }

    /// The number of sources that are removed per transaction.
    private static let sourcesAtOnce = 64
    /// The number of variants of one source that are removed per transaction if there is little space.
    private static let variantsWhenShort = 16

    /// Removes some sources in one transaction. Returns nil if none are left.
    ///
    /// - Parameters:
    ///   - more: additional originals of these sources.
    ///   - announces: whether to record the purge by name once all entries of a source have been removed.
    ///   - sources: returns the sources to remove, given the maximum number to return.
    /// - Returns: the removed entries, the number of sources that had entries, and the sources that have no entries
    ///   now.
    private func removeSome(
        _ more: Set<String>, _ mode: PurgeMode, announces: Bool,
        _ sources: (SQLiteConnection, Int) throws(StoreError) -> [String]
    ) throws(StoreError) -> (removed: PurgeResult, done: [String])? {
        try deleting(atMost: Self.sourcesAtOnce) {
            transaction, limit throws(StoreError) -> (removed: PurgeResult, done: [String])? in
            let sources = try sources(transaction.connection, limit)
            guard !sources.isEmpty else { return nil }
            let variants = limit < Self.sourcesAtOnce ? Self.variantsWhenShort : .max
            var done: [String] = []
            var (count, marked) = (0, 0)
            var removed = try transaction.counting { () throws(StoreError) in
                var digests: Set<String> = []
                for source in sources {
                    if mode == .soft {
                        let records = try transaction.makeStale(source)
                        marked += records
                        count += records > 0 ? 1 : 0
                        done.append(source)
                        continue
                    }
                    let entries = transaction.entries
                    let found = try transaction.remove(
                        source, more, variants: variants, keepsOriginals: mode == .variantsOnly)
                    digests.formUnion(found.digests)
                    // The next transaction removes the rest.
                    guard found.isWhole else { break }
                    count += transaction.entries < entries ? 1 : 0
                    done.append(source)
                }
                return digests
            }
            removed.sources = count
            removed.records += marked
            if announces, !done.isEmpty {
                let generation = try transaction.nextGeneration()
                removed.mark = PurgeMark(generation)
                // If the originals stay, work that uses them remains valid.
                let names = mode == .variantsOnly ? removed.digests : removed.digests.union(done)
                try transaction.remember(names, generation)
            }
            return (removed, done)
        }
    }

    /// Starts the next generation with a purge of a selection and digests. If there are too many digests, it is a purge
    /// of everything.
    private func remember(_ selection: SourceSelection, _ digests: Set<String>) throws(StoreError) -> UInt64 {
        try deleting { transaction, _ throws(StoreError) in
            if digests.count > PurgeLog.limit { return try transaction.voidWorkBegun() }
            let generation = try transaction.nextGeneration()
            try transaction.remember(digests + selection.prefixes.map { PurgeLog.prefixMark + $0 }, generation)
            return generation
        }
    }
}

extension PurgeLog {
    /// The first character of the name of a purge by prefix in the index. No source begins with it.
    static let prefixMark = "\u{1}"
}

extension PurgeResult {
    package mutating func add(_ other: PurgeResult) {
        sources += other.sources
        records += other.records
        originals += other.originals
        variants += other.variants
        bytes += other.bytes
        digests.formUnion(other.digests)
        mark = max(mark, other.mark)
        unconfirmed += other.unconfirmed.filter { !unconfirmed.contains($0) }
        unconfirmedSelections += other.unconfirmedSelections
    }
}

extension SQLiteConnection {
    fileprivate func purges(since generation: UInt64) throws(StoreError) -> PurgeLog {
        let now = try self.generation()
        if now == generation { return PurgeLog(mark: PurgeMark(now), names: []) }
        let floor = try first("SELECT value FROM state WHERE name = 'floor'") { $0.generation(0) } ?? 0
        guard now > generation, generation >= floor else { return PurgeLog(mark: PurgeMark(now), names: nil) }
        let names = try rows(
            "SELECT name FROM purges WHERE generation > ?1 LIMIT ?2", .integer(Int(generation)),
            .integer(PurgeLog.limit + 1)
        ) { $0.text(0) }
        let known = Set(names)
        // A set of strings contains only one of two names that differ only in their bytes.
        guard names.count <= PurgeLog.limit, known.count == names.count else {
            return PurgeLog(mark: PurgeMark(now), names: nil)
        }
        let prefixes = known.filter { $0.hasPrefix(PurgeLog.prefixMark) }
        return PurgeLog(
            mark: PurgeMark(now), names: known.subtracting(prefixes),
            selections: prefixes.isEmpty
                ? [] : [SourceSelection(prefixes: prefixes.sorted().map { String($0.dropFirst()) })])
    }

    /// Returns the stored names from `from` up to, but not including, `below`, in sort order.
    func sources(from: String, below: [UInt8], limit: Int) throws(StoreError) -> [String] {
        try rows(
            """
            SELECT source FROM links WHERE source >= ?1 AND source < CAST(?2 AS TEXT) \
            UNION SELECT source FROM records WHERE source >= ?1 AND source < CAST(?2 AS TEXT) ORDER BY 1 LIMIT ?3
            """, .text(from), .blob(below), .integer(limit)
        ) { $0.text(0) }
    }
}

extension IndexTransaction {
    /// Removes the entries of a source. A body that a record of a different source refers to stays.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of variants to remove. The call stops when it is reached.
    ///   - keepsOriginals: whether to remove only variants.
    /// - Returns: every digest that the source has had, and whether all of its entries have been removed.
    fileprivate func remove(
        _ source: String, _ more: Set<String> = [], variants limit: Int, keepsOriginals: Bool
    ) throws(StoreError) -> (digests: Set<String>, isWhole: Bool) {
        let linked = try connection.rows(
            "SELECT digest FROM links WHERE source = ?1 UNION SELECT digest FROM records WHERE source = ?1",
            .text(source)
        ) { $0.digestKey(0) }
        let originals = Set(linked.compactMap(\.self)).union(more.compactMap { DigestKey($0) })
        let digests = Set(originals.map(\.text)).union(more)
        var left = limit
        for original in originals {
            let variants = try connection.rows(
                "SELECT id FROM variants WHERE \(DiskSchema.equal("original", "?1")) LIMIT ?2", .digest(original),
                .integer(left)
            ) { $0.integer(0) }
            for id in variants { try removeRow(.variants, id) }
            left -= variants.count
            if left == 0 { return (digests, false) }
        }
        if keepsOriginals { return (digests, true) }
        let records = try connection.rows("SELECT id FROM records WHERE source = ?1", .text(source)) { $0.integer(0) }
        for id in records { try removeRow(.records, id) }
        for original in originals { try removeUnrecorded(original) }
        for table in ["links", "tags"] { try connection.run("DELETE FROM \(table) WHERE source = ?1", .text(source)) }
        return (digests, true)
    }

    /// Makes the records of a source stale.
    ///
    /// - Returns: the number of records.
    fileprivate func makeStale(_ source: String) throws(StoreError) -> Int {
        try connection.rows(
            "UPDATE records SET validate_first = max(validate_first, 1) WHERE source = ?1 RETURNING id", .text(source)
        ) { $0.integer(0) }.count
    }

    /// Marks records so that they are validated before their next use.
    ///
    /// - Parameter row: the last record that an earlier call marked.
    /// - Returns: the last record that this call marked, or nil if there are no more records.
    fileprivate func markForValidation(after row: Int, limit: Int) throws(StoreError) -> Int? {
        try connection.rows(
            """
            UPDATE records SET validate_first = 2 \
            WHERE id IN (SELECT id FROM records WHERE id > ?1 ORDER BY id LIMIT ?2) RETURNING id
            """, .integer(row), .integer(limit)
        ) { $0.integer(0) }.max()
    }

    /// The number of records, bodies and variants.
    fileprivate var entries: Int { tiers.originals.entries + tiers.variants.entries + tiers.records.entries }

    /// Runs `body` and returns what it removed, computed from the sums of the tiers, together with the digests that it
    /// returned.
    func counting(_ body: () throws(StoreError) -> Set<String>) throws(StoreError) -> PurgeResult {
        let before = tiers
        var result = PurgeResult()
        result.digests = try body()
        let now = tiers
        result.records = before.records.entries - now.records.entries
        result.originals = before.originals.entries - now.originals.entries
        result.variants = before.variants.entries - now.variants.entries
        result.bytes = before.originals.bytes - now.originals.bytes + before.variants.bytes - now.variants.bytes
        return result
    }
}
