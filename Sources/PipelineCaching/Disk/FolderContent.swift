import Glibc

/// What a folder given as a cache contains, judged by names, kinds and sizes of files; nothing is written. The index is
/// read only through SQLite, because closing the file of a cache in use would release SQLite's locks on it.
package enum FolderContent: Sendable, Hashable {
    case missing
    /// A file, a path below a file, or a dangling link.
    case notAFolder
    /// Nothing but `lost+found`, as at the root of a new file system.
    case empty
    /// Only some of the files that a new cache starts with: its creation was interrupted.
    case unfinished
    /// A cache, whatever other files it contains.
    case cache
    /// Not a cache; contains at least this file, whose name may be one that a cache uses.
    case foreign(String)

    /// The files that a cache has before it has its tables.
    private static let firstFiles: Set<String> = [
        "cache.sqlite", "cache.sqlite-wal", "cache.sqlite-shm", "cache.sqlite-journal", "rebuild.lock",
    ]
    private static let files = firstFiles.union([
        "cache.sqlite.damaged", "cache.sqlite.damaged-wal", "cache.sqlite.damaged-shm", "generation", "flights.lock",
        "reserve", "cache.libraries", "cache.purge-place",
    ]).union(DiskSchema.formerFiles)
    private static let folders: Set<String> = ["bodies", "temporary", "batches"]

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
        self = Self.judged(own, foreign, folder)
    }

    private static func judged(_ own: Set<String>, _ foreign: String?, _ folder: String) -> FolderContent {
        func size(_ name: String) -> Int? {
            var info = stat()
            return own.contains(name) && lstat("\(folder)/\(name)", &info) == 0 ? Int(info.st_size) : nil
        }
        // Every cache has these from its creation on. One of them may have been lost since; one alone proves nothing.
        let isLocked = size("rebuild.lock") == 0
        let hasGeneration = size("generation") == GenerationPage.length
        let hasIndex = size("cache.sqlite") ?? 0 > 0
        if isLocked && (hasGeneration || hasIndex) || hasGeneration && hasIndex { return .cache }
        if hasIndex, isIndex("\(folder)/cache.sqlite") { return .cache }
        if let foreign { return .foreign(foreign) }
        guard let first = own.min() else { return .empty }
        if isLocked, own.contains("bodies") { return .cache }
        // An interrupted creation leaves only empty files; another program's file of that name has content.
        let isBegun = own.isSubset(of: firstFiles) && (isLocked || own.allSatisfy { size($0) == 0 })
        return isBegun ? .unfinished : .foreign(first)
    }

    /// Whether a file is an SQLite database with the application id of our indexes, which is at offset 68 of the header
    /// (https://www.sqlite.org/fileformat.html#the_database_header).
    private static func isIndex(_ path: String) -> Bool {
        guard let header = SQLiteConnection.header(of: path) else { return false }
        let application = header[68..<72].reduce(0) { $0 << 8 | Int($1) }
        return application == DiskSchema.applicationID || application == DiskSchema.formerApplicationID
    }

    /// Whether a name is one of the cache's. A folder in place of a file, or a file in place of a folder, is not.
    private static func isOwn(_ name: String, in folder: String) -> Bool {
        let isFile = files.contains(name)
        guard isFile || folders.contains(name) else { return false }
        var info = stat()
        guard lstat("\(folder)/\(name)", &info) == 0 else { return false }
        return (info.st_mode & S_IFMT == S_IFDIR) != isFile
    }
}
