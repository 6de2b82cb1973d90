/// The version of an index.
extension DiskIndex {
    /// Checks the version of the database. Returns whether the database is still empty.
    func checkVersion(_ connection: SQLiteConnection) throws(StoreError) -> Bool {
        // Use one statement, because another process may be creating the tables, and separate reads would be
        // inconsistent.
        let found = try connection.first(
            """
            SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) \
            FROM pragma_user_version, pragma_application_id
            """
        ) { (version: $0.integer(0), application: $0.integer(1), tables: $0.integer(2)) }
        let (version, application) = (found?.version ?? 0, found?.application ?? 0)
        if version == 0, application == 0, found?.tables == 0 { return true }
        let isFormer = application == DiskSchema.formerApplicationID
        guard isFormer || application == DiskSchema.applicationID else {
            throw StoreError(
                .unavailable, "this database belongs to another program; use a different folder", path: path)
        }
        guard isFormer || version <= DiskSchema.version else {
            throw StoreError(
                .newerVersion,
                "the cache has version \(version), but this program supports only versions up to \(DiskSchema.version); "
                    + "update the program or use a different folder", path: path)
        }
        guard !isFormer, version == DiskSchema.version else {
            // There is no migration, because the cache fills again.
            throw StoreError(.damaged, "an older version of this program wrote the index", path: path)
        }
        return false
    }
}
