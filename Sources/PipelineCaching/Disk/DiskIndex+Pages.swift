import Glibc

/// Unused pages of the database, and their return to the file system.
extension DiskIndex {
    /// Returns the number of unused pages in the database, and the number of all pages.
    func pages() throws(StoreError) -> (unused: Int, all: Int) {
        try connection.first("SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count") {
            ($0.count(0), $0.count(1))
        } ?? (0, 0)
    }

    /// Returns whether the database file has not yet been truncated to the pages that a vacuum left.
    func isLongerThanItsPages() throws(StoreError) -> Bool {
        var info = stat()
        let all = try pages().all
        return stat(path, &info) == 0 && Int(info.st_size) > all * DiskSchema.pageSize
    }

    /// The limits on the unused pages that are kept for later stores: one in `unusedShare` pages, but at most
    /// `maxUnused` pages. SQLite searches the list of unused pages for each page that it returns to the file system,
    /// so the list must stay short.
    private static let (unusedShare, maxUnused) = (6, 4_096)
    /// The number of pages that one transaction returns to the file system.
    private static let pagesAtOnce = 512

    /// If there are too many unused pages, returns some of them to the file system in a separate transaction.
    ///
    /// - Parameter completely: whether to return even the unused pages that would be kept otherwise.
    /// - Returns: whether there were too many unused pages.
    func returnPages(completely: Bool) throws(StoreError) -> Bool {
        let (unused, all) = try pages()
        guard unused > (completely ? 0 : min(all / Self.unusedShare, Self.maxUnused)) else { return false }
        try maintain { connection throws(StoreError) in
            _ = try connection.rows("PRAGMA incremental_vacuum(\(Self.pagesAtOnce))") { _ in }
        }
        shortenLog(try connection)
        return true
    }
}
