import Glibc

/// Deleting, also on a file system without a free byte: the index has to write what it deletes.
extension DiskStore {
    /// Entries that leave in one transaction; other processes get their turn in between.
    static let step = 512
    /// Entries that leave in one transaction where there is hardly any room for it.
    private static let shortStep = 16
    /// Unused pages that are given back in one transaction, likewise.
    private static let shortPages = 64
    /// Bytes of bodies that are taken before their rows at most, for the sake of one call.
    private static let mostTaken = 64 << 20

    /// Runs a transaction that only deletes. Where the file system has no room for its part of the log, once more in the room
    /// that is kept for it, and for fewer entries, whose own room is given back before the next. Where that does not suffice
    /// either, in the room of bodies that are taken from the folder before their rows.
    ///
    /// - Parameter body: is told how many of what it deletes it may take on at most: `limit`, or less where room is short.
    func deleting<Result: Sendable>(
        atMost limit: Int = step, _ body: (_ index: DiskIndex, _ limit: Int) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        do throws(StoreError) {
            return try perform { index throws(StoreError) in try body(index, limit) }
        } catch {
            guard error.code == .full else { throw error }
        }
        let less = max(1, limit * Self.shortStep / Self.step)
        let result = try files.reserve.lent(toLog: roomForLog()) { () throws(StoreError) in
            try perform { index throws(StoreError) in
                index.giveBack()
                index.beginLogAnew()
            }
            var wanted = ReserveFile.bytes
            var bare: [DiskIndex.Holder] = []
            while true {
                do throws(StoreError) {
                    return try perform { index throws(StoreError) in try body(index, less) }
                } catch {
                    guard error.code == .full else { throw error }
                    guard wanted <= Self.mostTaken, try takeBodies(wanted, &bare) else {
                        throw StoreError(
                            .full,
                            "the file system is full, and the cache has nothing left that would make room for "
                                + "deleting: free some, or delete the folder", path: folder)
                    }
                }
                wanted *= 4
            }
        }
        shrink()
        return result
    }

    /// How much of the room for deleting the log gets: all but what the index is still to get longer by. Where that is much
    /// nothing, since the log is begun anew then, which makes room in it.
    private func roomForLog() -> Int {
        let owed = try? perform { index throws(StoreError) in try index.owed() }
        guard let owed, owed <= ReserveFile.bytes / 2 else { return 0 }
        return ReserveFile.bytes - owed
    }

    /// Makes so much room out of bodies, beside what the index still has to get longer by, and removes their rows in it.
    ///
    /// - Parameter bare: rows that have lost their bodies and are still there.
    /// - Returns: false where there are no bodies, or as much room was there already.
    private func takeBodies(_ wanted: Int, _ bare: inout [DiskIndex.Holder]) throws(StoreError) -> Bool {
        let taken = try perform { index throws(StoreError) -> [DiskIndex.Holder] in
            guard let space = FileSystemSpace(holding: folder) else { return [] }
            let missing = try index.owed() + wanted - space.free
            let taken = missing > 0 ? try index.takeBodies(bytes: missing) : []
            index.beginLogAnew()
            return taken
        }
        guard !taken.isEmpty else { return false }
        bare += taken
        var mayTryAgain = true
        while !bare.isEmpty {
            let step = Array(bare.suffix(Self.shortStep))
            do throws(StoreError) {
                try perform { index throws(StoreError) in
                    try index.write { _ throws(StoreError) in
                        let before = try index.sums()
                        for entry in step { try index.removeRow(entry.tier, entry.row) }
                        index.countEvictions(since: before)
                    }
                }
            } catch {
                guard error.code == .full else { throw error }
                guard mayTryAgain else { break }
                mayTryAgain = false
                try perform { index throws(StoreError) in index.beginLogAnew() }
                continue
            }
            bare.removeLast(step.count)
            mayTryAgain = true
        }
        return true
    }

    /// Takes the room for deleting again, then gives pages of the index and slots of small bodies that nothing uses any more
    /// back to the file system, some at a time.
    ///
    /// - Parameter onlyLargeGaps: leaves free slots to what is stored next while they are a quarter of the file at most.
    func shrink(onlyLargeGaps: Bool = false) {
        files.reserve.take()
        // What stays is used by what is stored next, and the next call tries again.
        while true {
            let hasMore = givingBack { index, _ throws(StoreError) in
                if onlyLargeGaps, try index.freeShare() <= 0.25 { return false }
                return try index.shrinkPack(slots: Self.step)
            }
            guard hasMore == true else { break }
            yieldToOthers()
        }
        var hasShrunk = false
        while true {
            let hasMore = givingBack { index, pages throws(StoreError) in
                let unused = try index.unusedPages()
                if unused > 0 { try index.shrink(pages: pages) }
                hasShrunk = hasShrunk || unused > 0
                return unused > pages
            }
            guard hasMore == true else { break }
            yieldToOthers()
        }
        if hasShrunk { try? perform { index throws(StoreError) in try index.checkpoint() } }
        files.reserve.take()
    }

    /// A step of giving back, in the room that is kept for deleting where there is no other; nil where it failed.
    private func givingBack(_ step: (_ index: DiskIndex, _ pages: Int) throws(StoreError) -> Bool) -> Bool? {
        defer { files.reserve.take() }
        do throws(StoreError) {
            return try perform { index throws(StoreError) in try step(index, Self.step) }
        } catch {
            guard error.code == .full else { return nil }
        }
        return try? files.reserve.lent(toLog: roomForLog()) { () throws(StoreError) in
            try perform { index throws(StoreError) in
                index.beginLogAnew()
                return try step(index, Self.shortPages)
            }
        }
    }

    /// A moment between two transactions in a row: processes that wait for the index ask now and then, and who asks
    /// without pause would keep them out.
    func yieldToOthers() { usleep(1_000) }
}
