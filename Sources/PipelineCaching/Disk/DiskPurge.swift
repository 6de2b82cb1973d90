extension DiskStore {
    /// The current purge generation, to be passed to later stores: a purge in between makes them void.
    package func generationNow() throws(StoreError) -> UInt64 {
        try lookUp { view throws(StoreError) in try view.connection.generation() } ?? 1
    }

    /// The generation that any process announced last, read without the index; 0 if the folder cannot tell. It may be
    /// ahead of `generationNow()` while a purge commits.
    package var generationHint: UInt64? { generationPage.value }

    /// What was purged since a generation, by any process.
    package func purges(since generation: UInt64) throws(StoreError) -> PurgeLog {
        let log = try lookUp { view throws(StoreError) in try view.connection.purges(since: generation) }
        let now = log?.mark.rawValue ?? 0
        if generationHint != now { try perform { index throws(StoreError) in index.shareGeneration() } }
        return log ?? PurgeLog(mark: PurgeMark(now), names: nil)
    }

    /// Removes a source's records, their bodies, and all variants of every digest the source has had, even if another
    /// source has the same bytes. A body stays if another source's record names it.
    ///
    /// - Parameters:
    ///   - digests: further originals known to belong to the source, although no record says so.
    ///   - mode: whether the source is removed, or only its variants, or only made stale.
    package func purge(
        source: String, digests: Set<String> = [], mode: PurgeMode = .hard
    ) throws(StoreError) -> PurgeResult {
        try purge(sources: [source], digests: digests, mode: mode)
    }

    /// The same for several sources, in transactions of 64.
    package func purge(
        sources: some Collection<String>, digests: Set<String> = [], mode: PurgeMode = .hard
    ) throws(StoreError) -> PurgeResult {
        var (result, left, partial) = (PurgeResult(), Array(sources)[...], Set<String>())
        // If there is no room for all of it, smaller ones remove variants first.
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

    /// Removes every source of a selection like `purge(source:)`, in transactions of 64 sources. The time it takes
    /// depends on what it removes, not on what else is stored.
    ///
    /// Voids in-flight work on the selection, and on variants whose source is not known. Work that begins and is stored
    /// while this runs may be removed or stay.
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
                // The next text in sort order.
                if let last = step.done.last { from = last + "\0" }
                yieldToOthers()
            }
        }
        // Repeated for what other processes have loaded into memory in the meantime.
        result.mark = PurgeMark(try remember(selection, result.digests))
        shrink()
        return result
    }

    /// Removes everything, without needing free space, and invalidates all in-flight work. Event counters stay.
    ///
    /// - Returns: what was removed, without sources and digests.
    @discardableResult
    package func clear() throws(StoreError) -> PurgeResult {
        // The space reserve is room for the new index.
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

    /// Puts every record in doubt, because purges of this folder may have been missed, and voids all work in flight.
    ///
    /// - Returns: the generation from which on it is.
    package func doubtAll() throws(StoreError) -> UInt64 {
        // First: what is stored from now on is newer.
        let generation = try deleting { index, _ throws(StoreError) in
            try index.write { transaction throws(StoreError) in try transaction.voidWorkBegun() }
        }
        var row: Int? = Int.min
        while let last = row {
            row = try deleting { index, limit throws(StoreError) in
                try index.write { transaction throws(StoreError) in try transaction.doubt(after: last, limit: limit) }
            }
            yieldToOthers()
        }
        return generation
    }

    /// The number of sources removed in one transaction.
    private static let sourcesAtOnce = 64
    /// The number of variants of one source removed in one transaction if space is short.
    private static let variantsWhenShort = 16

    /// Removes some sources in one transaction; nil if there are none.
    ///
    /// - Parameters:
    ///   - more: further originals of these sources.
    ///   - announces: whether to remember the purge by its names, once nothing of the source is left.
    ///   - sources: returns the sources to remove; is passed the maximum number.
    /// - Returns: what was removed, how many sources had anything, and those of which nothing is left.
    private func removeSome(
        _ more: Set<String>, _ mode: PurgeMode, announces: Bool,
        _ sources: (SQLiteConnection, Int) throws(StoreError) -> [String]
    ) throws(StoreError) -> (removed: PurgeResult, done: [String])? {
        try deleting(atMost: Self.sourcesAtOnce) { index, limit throws(StoreError) in
            try index.write { transaction throws(StoreError) -> (removed: PurgeResult, done: [String])? in
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
                    // Work on an original that stays goes on.
                    let names = mode == .variantsOnly ? removed.digests : removed.digests.union(done)
                    try transaction.remember(names, generation)
                }
                return (removed, done)
            }
        }
    }

    /// Starts the next generation with a purge of a selection and of digests; of everything if there are too many.
    private func remember(_ selection: SourceSelection, _ digests: Set<String>) throws(StoreError) -> UInt64 {
        try deleting { index, _ throws(StoreError) in
            try index.write { transaction throws(StoreError) in
                if digests.count > PurgeLog.limit { return try transaction.voidWorkBegun() }
                let generation = try transaction.nextGeneration()
                try transaction.remember(digests + selection.prefixes.map { PurgeLog.prefixMark + $0 }, generation)
                return generation
            }
        }
    }
}

extension PurgeLog {
    /// Begins the name of a purge by prefix in the index. No source begins so.
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
        // A set of strings has one of two names that differ in bytes alone.
        guard names.count <= PurgeLog.limit, known.count == names.count else {
            return PurgeLog(mark: PurgeMark(now), names: nil)
        }
        let prefixes = known.filter { $0.hasPrefix(PurgeLog.prefixMark) }
        return PurgeLog(
            mark: PurgeMark(now), names: known.subtracting(prefixes),
            selections: prefixes.isEmpty
                ? [] : [SourceSelection(prefixes: prefixes.sorted().map { String($0.dropFirst()) })])
    }

    /// Stored names from `from` up to, but not including, `below`, sorted.
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
    /// Removes what is stored of a source; a body that another source's record names stays.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of variants removed; once it is reached, nothing else is removed.
    ///   - keepsOriginals: whether only variants are removed.
    /// - Returns: every digest the source has had, and whether nothing of the source is left.
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
    /// - Returns: how many there are.
    fileprivate func makeStale(_ source: String) throws(StoreError) -> Int {
        try connection.rows(
            "UPDATE records SET validate_first = max(validate_first, 1) WHERE source = ?1 RETURNING id", .text(source)
        ) { $0.integer(0) }.count
    }

    /// Puts records in doubt.
    ///
    /// - Parameter row: the last one that was.
    /// - Returns: the last of these; nil if there are no more.
    fileprivate func doubt(after row: Int, limit: Int) throws(StoreError) -> Int? {
        try connection.rows(
            """
            UPDATE records SET validate_first = 2 \
            WHERE id IN (SELECT id FROM records WHERE id > ?1 ORDER BY id LIMIT ?2) RETURNING id
            """, .integer(row), .integer(limit)
        ) { $0.integer(0) }.max()
    }

    /// How many records, bodies and variants there are.
    fileprivate var entries: Int { tiers.originals.entries + tiers.variants.entries + tiers.records.entries }

    /// Runs `body` and tells what it removed, by the sums of the tiers, with the digests it returns.
    func counting(_ body: () throws(StoreError) -> Set<String>) throws(StoreError) -> PurgeResult {
        let before = tiers
        var result = PurgeResult()
        result.digests = try body()
        func removed(_ path: KeyPath<PerTier<TierState>, TierState>) -> (entries: Int, bytes: Int) {
            (
                before[keyPath: path].entries - tiers[keyPath: path].entries,
                before[keyPath: path].bytes - tiers[keyPath: path].bytes
            )
        }
        result.records = removed(\.records).entries
        result.originals = removed(\.originals).entries
        result.variants = removed(\.variants).entries
        result.bytes = removed(\.originals).bytes + removed(\.variants).bytes
        return result
    }
}
