import Glibc

/// What lies in a folder that is named as a cache, judged by names and kinds of files alone: nothing is opened, since
/// closing a database file would drop SQLite's locks on it, and nothing is written.
package enum FolderContent: Sendable, Hashable {
    case missing
    /// A file, something below a file, or a link that leads nowhere.
    case notAFolder
    /// Nothing but `lost+found`, as at the root of a new file system.
    case empty
    /// Some files that a cache begins with, and no others: its creation was interrupted.
    case unfinished
    /// A cache, whatever else somebody has put there.
    case cache
    /// No cache, and at least this file.
    case foreign(String)

    /// Files and folders that a cache has, beside those that begin with `cache.sqlite` or `ghosts.`.
    private static let files: Set<String> = [
        "bodies.pack", "rebuild.lock", "generation", "flights.lock", "holders", "uses", "reserve",
    ]
    private static let folders: Set<String> = ["bodies", "temporary"]

    /// - Throws: `.unavailable` if the folder cannot be read.
    package init(_ folder: String) throws(StoreError) {
        var info = stat()
        guard stat(folder, &info) == 0 else {
            let cause = errno
            guard cause == ENOENT || cause == ENOTDIR else {
                throw BodyFiles.failure("cannot look at the folder", cause, folder)
            }
            self = cause == ENOTDIR || lstat(folder, &info) == 0 ? .notAFolder : .missing
            return
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            self = .notAFolder
            return
        }
        guard let stream = opendir(folder) else { throw BodyFiles.failure("cannot read the folder", errno, folder) }
        defer { closedir(stream) }
        var own: Set<String> = []
        var foreign: String?
        while let item = readdir(stream) {
            let name = withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if [".", "..", "lost+found"].contains(name) { continue }
            if Self.isOwn(name, in: folder) { own.insert(name) } else { foreign = foreign ?? name }
        }
        self = Self.judged(own, foreign, folder)
    }

    private static func judged(_ own: Set<String>, _ foreign: String?, _ folder: String) -> FolderContent {
        func size(_ name: String) -> Int? {
            var info = stat()
            return own.contains(name) && lstat("\(folder)/\(name)", &info) == 0 ? Int(info.st_size) : nil
        }
        // Every cache has these two from its creation on. Either may have been lost since, together with other files.
        let isLocked = size("rebuild.lock") == 0
        let hasGeneration = size("generation") == GenerationPage.length
        let hasIndex = size("cache.sqlite") ?? 0 > 0
        if isLocked && (hasGeneration || hasIndex) || hasGeneration && hasIndex { return .cache }
        if let foreign { return .foreign(foreign) }
        if own.isEmpty { return .empty }
        return hasIndex || own.contains("bodies") && isLocked ? .cache : .unfinished
    }

    /// Whether a name is one of the cache's. A folder or a file in the place of the other is not.
    private static func isOwn(_ name: String, in folder: String) -> Bool {
        let isFile = files.contains(name) || name.hasPrefix("cache.sqlite") || name.hasPrefix("ghosts.")
        guard isFile || folders.contains(name) else { return false }
        var info = stat()
        guard lstat("\(folder)/\(name)", &info) == 0 else { return false }
        return (info.st_mode & S_IFMT == S_IFDIR) != isFile
    }
}
