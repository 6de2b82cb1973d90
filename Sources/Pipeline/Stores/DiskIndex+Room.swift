import Glibc

/// A file system without room for what is to be deleted: what of the folder can be given back without writing to the index.
extension DiskIndex {
    /// Bytes by which the file of the index gets longer when its log is moved into it.
    func owed() throws(StoreError) -> Int {
        let pages = try connection.first("PRAGMA page_count") { $0.count(0) } ?? 0
        let pageSize = try connection.first("PRAGMA page_size") { $0.count(0) } ?? 0
        var info = stat()
        guard stat("\(files.folder)/cache.sqlite", &info) == 0 else { return 0 }
        return max(0, pages * pageSize - Int(info.st_size))
    }

    /// Moves the log into the index, so that what is written next begins it anew and needs no room. Not where the file
    /// system has too little room for what the index gets longer by it: that would go, and the log could not be begun anew.
    func beginLogAnew() {
        guard let connection = try? connection, let owed = try? owed(),
            let space = FileSystemSpace(holding: files.folder), owed <= space.free
        else { return }
        if connection.restartLog(waiting: 200) { logLimit = DiskSchema.logPages }
    }

    /// Gives back what is nobody's. The write lock keeps others from using it meanwhile; nothing is written, and what the
    /// index says of it is put right once there is room.
    func giveBack() {
        for path in files.abandoned(after: configuration.graceSeconds) { unlink(path) }
        files.removeSetAside()
        guard let connection = try? connection else { return }
        try? connection.write { () throws(StoreError) in
            for digest in try connection.rows("SELECT digest FROM discarded", read: { $0.text(0) }) {
                files.remove(digest)
            }
            let slots = try connection.rows("SELECT place, units FROM free WHERE hollow = 0") {
                (place: $0.count(0), units: $0.count(1))
            }
            for slot in slots { try pack.punch(slot.place, units: slot.units) }
            try pack.truncate(to: try readEnd())
        }
        if isSweeping { sweep() }
    }

    /// Files whose bodies are taken at once at most: each is longer than any in the pack.
    private static let filesAtOnce = 1_024
    /// Bytes by which the pack is cut at once.
    private static let cut = 1 << 20

    /// Takes away bodies before their rows, since no row can go first where there is no room to write that: files of entries
    /// worth least, else the end of the pack. Forgets which keys were evicted last, who has which bytes, and uses, too.
    ///
    /// - Returns: the rows that have lost their bodies, for the caller to remove. Until then they are misses.
    func takeBodies(bytes: Int) throws(StoreError) -> [Holder] {
        for tier in DiskTier.allCases { ghosts[tier].empty() }
        holders.empty()
        uses.empty()
        let connection = try connection
        return try connection.write { () throws(StoreError) in
            var rows: [Holder] = []
            var gained = 0
            for table in ["variants", "originals"] where gained < bytes {
                let found = try connection.rows(
                    """
                    SELECT digest, length FROM \(table) WHERE place IS NULL AND length > 0 \
                    ORDER BY priority LIMIT \(Self.filesAtOnce)
                    """
                ) { (digest: $0.digestKey(0), length: $0.count(1)) }
                for (digest, length) in found where gained < bytes {
                    guard let digest else { continue }
                    files.remove(digest.text)
                    gained += length
                    rows += try holders(ofFile: digest)
                }
            }
            guard gained < bytes else { return rows }
            let before = try pack.allocated()
            var end = try readEnd()
            while gained + before - (try pack.allocated()) < bytes, end > 0 {
                end = max(0, end - Self.cut / PackFile.unit)
                try pack.truncate(to: end)
            }
            for tier in [DiskTier.variants, .originals] {
                rows += try connection.rows(
                    """
                    SELECT id FROM \(tier.rawValue) WHERE place IS NOT NULL AND length > 0 \
                    AND place + (length + \(PackFile.unit - 1)) / \(PackFile.unit) > \(end)
                    """
                ) { Holder(tier, $0.integer(0)) }
            }
            return rows
        }
    }

    /// Counts what has gone since as evicted. Inside a write transaction.
    func countEvictions(since before: PerTier<TierState>) {
        for tier in DiskTier.allCases { states[tier].evictions += max(0, before[tier].entries - states[tier].entries) }
    }
}
