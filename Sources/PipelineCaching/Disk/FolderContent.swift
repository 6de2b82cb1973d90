import Glibc

/// The kind of content in a folder that was given as a cache. It is determined from the names, kinds and sizes of
/// files, without writing. The index is read only through SQLite, because closing a file of a cache that is in use
/// would release SQLite's locks on it.
package enum FolderContent: Sendable, Hashable {
    case missing
    /// A file, a path below a file, or a dangling link.
    case notAFolder
    /// An empty folder. It may contain `lost+found`, like the root of a new file system.
    case empty
    /// Some of the files that a new cache starts with. Its creation was interrupted.
    case unfinished
    /// A cache, which may contain other files as well.
    case cache
    /// A folder that is not a cache, because it contains at least this file. The file may have the name of a file of a
    /// cache.
    case foreign(String)

    /// The files that a cache has before its tables exist.
    private static let firstFiles: Set<String> = [
        "cache.sqlite", "cache.sqlite-wal", "cache.sqlite-shm", "cache.sqlite-journal", "rebuild.lock",
    ]
    private static let files = firstFiles.union([
        "cache.sqlite.damaged", "cache.sqlite.damaged-wal", "cache.sqlite.damaged-shm", "generation", "flights.lock",
        "reserve", "cache.libraries", "cache.purge-place",
    ]).union(DiskSchema.formerFiles)
    private static let folders: Set<String> = ["bodies", "temporary", "batches"]

    /// Determines the content of a folder.
    ///
    /// - Throws: `.unavailable` if the folder cannot be read.
    package init(_ folder: String) throws(StoreError) {
        var info = stat()
        guard stat(folder, &info) == 0 else {
            let cause = errno
            guard cause == ENOENT || cause == ENOTDIR else {
                throw BodyFiles.failure("cannot access the folder", cause, folder)
            }
            self = cause == ENOTDIR || lstat(folder, &info) == 0 ? .notAFolder : .missing
            return
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            self = .notAFolder
            return
        }
        var own: Set<String> = []
        var foreign: String?
        for name in try BodyFiles.entries(of: folder) where name != "lost+found" {
            if Self.isOwn(name, in: folder) { own.insert(name) } else { foreign = foreign ?? name }
        }
        self = Self.classified(own, foreign, folder)
    }

    private static func classified(_ own: Set<String>, _ foreign: String?, _ folder: String) -> FolderContent {
        func size(_ name: String) -> Int? {
            var info = stat()
            return own.contains(name) && lstat("\(folder)/\(name)", &info) == 0 ? Int(info.st_size) : nil
        }
        // Every cache has these files from its creation. One of them may have been lost since then, and a single one
        // proves nothing.
        let isLocked = size("rebuild.lock") == 0
        let hasGeneration = size("generation") == GenerationPage.length
        let hasIndex = size("cache.sqlite") ?? 0 > 0
        if isLocked && (hasGeneration || hasIndex) || hasGeneration && hasIndex { return .cache }
        if hasIndex, isIndex("\(folder)/cache.sqlite") { return .cache }
        if let foreign { return .foreign(foreign) }
        guard let first = own.min() else { return .empty }
        if isLocked, own.contains("bodies") { return .cache }
        // An interrupted creation leaves only empty files. A different program's file with the same name has content.
        let isBegun = own.isSubset(of: firstFiles) && (isLocked || own.allSatisfy { size($0) == 0 })
        return isBegun ? .unfinished : .foreign(first)
    }

    /// Returns whether a file is an SQLite database with the application ID of our indexes, which is at offset 68 of
    /// the header (https://www.sqlite.org/fileformat.html#the_database_header).
    private static func isIndex(_ path: String) -> Bool {
        guard let header = SQLiteConnection.header(of: path) else { return false }
        let application = header[68..<72].reduce(0) { $0 << 8 | Int($1) }
        return application == DiskSchema.applicationID || application == DiskSchema.formerApplicationID
    }

    /// Returns whether a name belongs to a cache. A folder with the name of a file, or a file with the name of a
    /// folder, does not.
    private static func isOwn(_ name: String, in folder: String) -> Bool {
        let isFile = files.contains(name)
        guard isFile || folders.contains(name) else { return false }
        var info = stat()
        guard lstat("\(folder)/\(name)", &info) == 0 else { return false }
        return (info.st_mode & S_IFMT == S_IFDIR) != isFile
    }
}
