/// Indexes of older versions, which become ones of this when they are opened.
extension DiskIndex {
    /// Brings the tables of an older version up to this one, in one transaction. Processes of that version find them gone, and
    /// store and read nothing until they are ended.
    ///
    /// - Throws: where it may not be written, or there is no room: the index is as it was then.
    func migrate(_ connection: SQLiteConnection) throws(StoreError) {
        let version = try Self.version(connection)
        if version >= DiskSchema.version { return }
        do throws(StoreError) {
            let lock = try FolderLock(path: "\(files.folder)/rebuild.lock")
            defer { lock.unlock() }
            try bringUp(connection)
        } catch {
            // Gives back what it has taken, which nothing else needs.
            try? connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            throw DiskMigration.explained(error, from: version, index: Self.size(path))
        }
        // What the tables before have left. Where that fails it is used by what is stored next.
        try? connection.execute("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private static func version(_ connection: SQLiteConnection) throws(StoreError) -> Int {
        try connection.first("PRAGMA user_version") { $0.integer(0) } ?? 0
    }

    /// The same for who holds the folder lock; nothing is done where another process has been first.
    ///
    /// - Throws: `.damaged` where the tables are not those of the version that the index says it has.
    func bringUp(_ connection: SQLiteConnection) throws(StoreError) {
        if try Self.version(connection) >= DiskSchema.version { return }
        connection.addDigestFunctions()
        try connection.write { () throws(StoreError) in
            let version = try Self.version(connection)
            if version >= DiskSchema.version { return }
            for next in DiskMigration.versions(from: version) {
                if let statements = DiskMigration.statements[next] {
                    try connection.execute(statements, ofTables: "version \(version)")
                }
                if next == 5 { try takeBodiesOut(of: connection) }
            }
            try connection.execute("PRAGMA user_version=\(DiskSchema.version)")
        }
    }

    /// Moves the bodies of an index of version 4 into the pack, and fills the tables of version 5.
    private func takeBodiesOut(of connection: SQLiteConnection) throws(StoreError) {
        pack.discard()
        var end = 0
        try DiskMigration.moveBodies(connection) { bytes throws(StoreError) in
            let place = end
            try pack.write([(place, bytes)])
            end += PackFile.units(bytes.count)
            return place
        }
        try connection.execute(DiskMigration.fillTables)
        try connection.run("UPDATE tiers SET pack = ?1 WHERE name = 'variants'", .integer(end))
    }
}
