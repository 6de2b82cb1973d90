/// Uses of entries: noted in memory, written to a file in steps, and made part of a row when it comes to the front of its
/// queue or another takes its place.
extension DiskIndex {
    /// What is not in the file yet.
    struct NotedUses {
        var byRow: [UsesFile.Key: UsesFile.Note] = [:]
        /// Rows whose uses are being written, in steps: sorted, the next one last.
        fileprivate var due: [UsesFile.Key] = []
        /// Uses noted since the last step, when the first of those that wait was noted, and when the next step is due.
        fileprivate var countSinceStep = 0
        fileprivate var since = 0.0
        fileprivate var nextStep = 0.0
        /// Uses that the transaction under way has made part of rows.
        var settled: [UsesFile.Key: UsesFile.Use] = [:]
    }

    /// Rows whose uses are written at once: it holds up who looks something up for so long.
    private static let rowsInStep = 512
    /// Seconds after which uses and counts are written however few they are.
    private static let longestNote = 30.0
    /// Milliseconds to wait for another process that writes uses, where nothing comes after.
    private static let patience = 200
    /// Times `touchBatch` rows whose uses are kept while they cannot be written.
    private static let mostBatches = 4

    /// Notes a use of a row, to be written once there are many, or some time has passed: neighbours are written together,
    /// and the more there are the more neighbours.
    ///
    /// - Parameters:
    ///   - written: `touched` of the row.
    ///   - now: when it was used; nil: now.
    func touch(_ tier: DiskTier, row: Int, written: Double, now: Double? = nil) {
        let now = now ?? Self.now()
        let use = UsesFile.Use(since: sinceOfUse(tier, now: now), now: now)
        let note = UsesFile.Note(use: use, written: written)
        notedUses.byRow[UsesFile.Key(tier, row), default: UsesFile.Note()].add(note)
        notedUses.countSinceStep += 1
        if notedUses.since == 0 { notedUses.since = now }
        let isDue = notedUses.byRow.count >= configuration.touchBatch || now - notedUses.since > Self.longestNote
        if notedUses.due.isEmpty, isDue {
            makeUsesDue()
            notedUses.nextStep = now
        }
        if !notedUses.due.isEmpty, notedUses.countSinceStep >= Self.rowsInStep || now >= notedUses.nextStep {
            notedUses.countSinceStep = 0
            notedUses.nextStep = now + 1
            if !writeUses(of: Self.rowsInStep, now: now),
                notedUses.byRow.count > Self.mostBatches * configuration.touchBatch
            {
                notedUses.byRow = [:]
                notedUses.due = []
            }
        }
        if countedSince == 0 { countedSince = now }
        // A full disk must not turn a hit into an error: the counts wait, as they do while a transaction is under way.
        if now - countedSince > Self.longestNote, !isWriting {
            countedSince = now
            try? write { _ in }
        }
    }

    /// The policy's clock as a use now gives it to an entry: no use has a later one.
    private func sinceOfUse(_ tier: DiskTier, now: Double) -> Double {
        var entry = EvictionEntry(size: 1, cost: 1)
        policies[tier].touch(&entry, uses: 1, now: now)
        return entry.since
    }

    /// Takes up all rows that have been used so far, in the order they lie in the file, the next one last.
    private func makeUsesDue() {
        uses.forget()
        let buckets = max(uses.buckets, BucketFile.leastBuckets)
        notedUses.due = notedUses.byRow.keys.map { (key: $0, bucket: $0.bucket(of: buckets)) }
            .sorted { $0.bucket > $1.bucket }.map(\.key)
        notedUses.since = 0
    }

    /// Writes the uses of the next rows that are due.
    /// - Returns: false where not all of them could be written: the next step tries again.
    private func writeUses(of rows: Int, now: Double, waiting: Int = 0) -> Bool {
        // Not there: the row went meanwhile.
        let notes = notedUses.due.suffix(rows).reversed().compactMap { key in
            notedUses.byRow[key].map { (key: key, note: $0) }
        }
        let entries = DiskTier.allCases.reduce(0) { $0 + states[$1].entries }
        let written = uses.add(notes, entries: entries, now: now, waiting: waiting)
        for (key, _) in notes[..<written] { notedUses.byRow[key] = nil }
        guard written == notes.count else { return false }
        notedUses.due.removeLast(min(rows, notedUses.due.count))
        return true
    }

    /// Writes what is noted. Uses that cannot be written stay in memory.
    func flush() throws(StoreError) {
        makeUsesDue()
        _ = writeUses(of: notedUses.due.count, now: Self.now(), waiting: Self.patience)
        if notes > 0 { try write { _ in } }
    }

    // MARK: Asking

    /// Uses of a row since it was written, by whatever process; nil when there are none.
    ///
    /// - Parameter written: `touched` of the row.
    func use(of tier: DiskTier, _ row: Int, written: Double) -> UsesFile.Use? {
        let key = UsesFile.Key(tier, row)
        // Part of the row by now.
        if notedUses.settled[key] != nil { return nil }
        let now = Self.now()
        var all = UsesFile.Use()
        // Who evicts asks many times: a look in each transaction does.
        if var found = uses.use(of: key, now: now, looks: !isWriting), found.time >= written {
            // Data from outside.
            found.since = min(found.since, sinceOfUse(tier, now: now))
            found.time = min(found.time, now + 1)
            all.add(found)
        }
        if let noted = notedUses.byRow[key]?.use, noted.time >= written { all.add(noted) }
        return all.uses == 0 ? nil : all
    }

    /// The same for the transaction under way to make them part of a row: nobody counts them again once it has committed.
    func settle(_ tier: DiskTier, _ row: Int, written: Double) -> UsesFile.Use? {
        let found = use(of: tier, row, written: written)
        if let found { notedUses.settled[UsesFile.Key(tier, row)] = found }
        return found
    }

    /// Forgets uses that rows have, now that the transaction has committed.
    func forgetSettled() {
        for key in notedUses.settled.keys { notedUses.byRow[key] = nil }
        uses.take(notedUses.settled, now: Self.now())
    }

    /// Makes `last_use` and `all_uses` known to the statements of a connection, of a row's number and columns.
    func addUseFunctions(to connection: SQLiteConnection) {
        connection.addFunction("last_use", arguments: 3) { [unowned self] values in
            let touched = values.real(2)
            let found = values.tier(0).flatMap { self.use(of: $0, values.integer(1), written: touched) }
            return .real(max(touched, found?.time ?? touched))
        }
        connection.addFunction("all_uses", arguments: 4) { [unowned self] values in
            let found = values.tier(0).flatMap { self.use(of: $0, values.integer(1), written: values.real(2)) }
            return .integer(min(255, max(0, values.integer(3)) + Int(found?.uses ?? 0)))
        }
    }
}

extension SQLiteArguments {
    fileprivate func tier(_ position: Int) -> DiskTier? { DiskTier.allCases.first { $0.number == integer(position) } }
}
