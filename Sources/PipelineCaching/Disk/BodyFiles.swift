import PipelineSupport
import Glibc
import Synchronization

/// The files next to the index: large bodies, named by digest in 256 folders, and bodies that are being written.
///
/// A body file contains only the body. It is written to `temporary/` and renamed into `bodies/ab/`, so a name in
/// `bodies/` always refers to a complete file.
struct BodyFiles: Sendable {
    let folder: String

    private static let serial = Atomic<UInt64>(0)

    /// The file that reserves space on the disk.
    var reserve: ReserveFile { ReserveFile(folder: folder) }

    func path(_ digest: String) -> String { "\(folder)/bodies/\(digest.prefix(2))/\(digest)" }

    /// Writes a new temporary file. If that fails, removes the file again.
    ///
    /// An unnamed file on the same file system is linked in place without copying. Any other file is copied.
    func writeTemporary(_ body: EntryBody, sync: Bool) throws(StoreError) -> String {
        let serial = Self.serial.add(1, ordering: .relaxed).newValue
        let path = "\(folder)/temporary/\(getpid())-\(serial)-\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        if case .file(let spooled) = body {
            var isLinked = spooled.link(at: path)
            if !isLinked, errno == ENOENT {
                try Self.makeFolder("\(folder)/temporary")
                isLinked = spooled.link(at: path)
            }
            if isLinked {
                guard !sync || Glibc.fsync(spooled.descriptor) == 0 else {
                    let cause = errno
                    unlink(path)
                    throw Self.failure("cannot write a body", cause, path)
                }
                return path
            }
        }
        var file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if file < 0, errno == ENOENT {
            try Self.makeFolder("\(folder)/temporary")
            file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        }
        guard file >= 0 else { throw Self.failure("cannot create a temporary file", errno, path) }
        var failed: CInt = 0
        let isRead = body.forEachPiece { piece in
            if !FileIO.write(piece, to: file) { failed = errno }
            return failed == 0
        }
        if !isRead, failed == 0 { failed = EIO }
        if failed == 0, sync, Glibc.fsync(file) != 0 { failed = errno }
        if Glibc.close(file) != 0, failed == 0 { failed = errno }
        guard failed == 0 else {
            unlink(path)
            throw Self.failure("cannot write a body", failed, path)
        }
        return path
    }

    // MARK: Intent files

    /// Creates an intent file, which shows that a body is about to be renamed to its final name while its row is not
    /// committed yet. If the process is killed before the commit, the leftover body can be found through this file,
    /// without a scan of all bodies.
    func createIntentFile(_ digest: String) throws(StoreError) -> String {
        while true {
            let serial = Self.serial.add(1, ordering: .relaxed).newValue
            let path = "\(folder)/temporary/\(digest).\(getpid())-\(serial)"
            let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            if file >= 0 {
                Glibc.close(file)
                return path
            }
            // A process in a different container may have the same PID and own that intent file.
            guard errno == EEXIST else { throw Self.failure("cannot create an intent file", errno, path) }
        }
    }

    /// Returns all intent files. If the caller holds the write lock, the processes that created them have committed or
    /// terminated.
    func intents() -> [(path: String, digest: String)] {
        Self.names(in: "\(folder)/temporary").compactMap { name in
            Self.isIntent(name) ? ("\(folder)/temporary/\(name)", String(name.prefix(64))) : nil
        }
    }

    private static func isIntent(_ name: String) -> Bool {
        name.utf8.count > 65 && name.utf8.dropFirst(64).first == 0x2E && DigestKey(String(name.prefix(64))) != nil
    }

    // MARK: Bodies

    /// Renames a temporary file to its final name.
    ///
    /// - Parameter sync: whether to wait until the name is on disk.
    func publish(_ temporary: String, as digest: String, sync: Bool) throws(StoreError) {
        let path = path(digest)
        let prefix = "\(folder)/bodies/\(digest.prefix(2))"
        if rename(temporary, path) != 0 {
            switch errno {
            case ENOENT:
                try Self.makeFolder("\(folder)/bodies", sync: sync)
                try Self.makeFolder(prefix, sync: sync)
            default: throw Self.failure("cannot publish a body", errno, path)
            }
            guard rename(temporary, path) == 0 else { throw Self.failure("cannot publish a body", errno, path) }
        }
        if sync { try Self.syncFolder(prefix) }
    }

    /// Waits until the names in a folder are on disk.
    static func syncFolder(_ path: String) throws(StoreError) {
        let file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw failure("cannot open a folder to sync it", errno, path) }
        defer { Glibc.close(file) }
        guard Glibc.fsync(file) == 0 else { throw failure("cannot sync a folder", errno, path) }
    }

    /// Returns whether any kind of file exists under this body's name.
    func isThere(_ digest: String) -> Bool {
        var info = stat()
        return lstat(path(digest), &info) == 0
    }

    /// Returns whether a body file of this length exists. Does not read its content.
    func holds(_ digest: String, length: Int) -> Bool {
        var info = stat()
        return lstat(path(digest), &info) == 0 && Self.isOurs(info) && Int(info.st_size) == length
    }

    /// Opens a body file for reading in pieces. The content stays intact even if the entry is evicted. Returns nil if
    /// the file is missing, is not a regular file of this user (links are not followed) or has a different length.
    func opened(_ digest: String, length: Int) throws(StoreError) -> SpooledBody? {
        let path = path(digest)
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT || errno == ELOOP || errno == ENOTDIR { return nil }
            throw Self.failure("cannot open a body", errno, path)
        }
        let opened = SpooledBody(descriptor: file, count: length)
        var info = stat()
        guard fstat(file, &info) == 0 else { throw Self.failure("cannot read a body", errno, path) }
        return Self.isOurs(info) && Int(info.st_size) == length ? opened : nil
    }

    /// Returns whether a file is a regular file of this user. The store writes no other files.
    static func isOurs(_ info: stat) -> Bool { info.st_mode & S_IFMT == S_IFREG && info.st_uid == geteuid() }

    /// Returns the file's bytes. Returns nil if the file is missing, is not a regular file of this user, has a
    /// different length or ends early.
    func read(_ digest: String, length: Int) throws(StoreError) -> [UInt8]? {
        guard let opened = try opened(digest, length: length) else { return nil }
        defer { withExtendedLifetime(opened) {} }
        if let bytes = FileIO.bytes(length, of: opened.descriptor) { return bytes }
        guard errno == 0 else { throw Self.failure("cannot read a body", errno, path(digest)) }
        return nil
    }

    /// Deletes a body file if it exists.
    func remove(_ digest: String) { unlink(path(digest)) }

    /// The names of the folders in `bodies/`.
    static let prefixes = (0..<256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }

    /// Whether the folder `bodies/` exists.
    var hasBodies: Bool { access("\(folder)/bodies", F_OK) == 0 }

    /// Returns the digests of the body files in the folder with this prefix.
    func bodies(in prefix: String) -> [String] {
        Self.names(in: "\(folder)/bodies/\(prefix)").filter { DigestKey($0) != nil && $0.hasPrefix(prefix) }
    }

    /// Returns whether a name belongs to a body that is being written: `<pid>-<n>-<random>`.
    private static func isTemporary(_ name: String) -> Bool {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 3 && Int(parts[0]) != nil && Int(parts[1]) != nil && UInt64(parts[2], radix: 36) != nil
    }

    /// Returns the paths of temporary files that have not been written to for `seconds`. They were left behind by a
    /// process that was killed.
    func abandoned(after seconds: Int) -> [String] {
        let now = time(nil)
        return Self.names(in: "\(folder)/temporary").filter(Self.isTemporary).map { "\(folder)/temporary/\($0)" }
            .filter { path in
                var info = stat()
                return lstat(path, &info) == 0 && now - info.st_mtim.tv_sec >= seconds
            }
    }

    /// Deletes the files that belonged to an index from before version 1.
    func removeFormer() { for name in DiskSchema.formerFiles { unlink("\(folder)/\(name)") } }

    /// Deletes the database that a rebuild set aside.
    func removeSetAside() {
        for suffix in ["", "-wal", "-shm"] { unlink("\(folder)/cache.sqlite.damaged\(suffix)") }
    }

    // MARK: Folders

    /// Creates the cache folder, or uses an existing folder that is empty or contains a cache. Makes the folder private
    /// to its owner.
    ///
    /// - Throws: `.unavailable`, without changing anything, if the folder belongs to a different user, or contains
    ///   files and is not a cache.
    func claim() throws(StoreError) {
        if case .foreign(let name) = try FolderContent(folder) {
            throw StoreError(
                .unavailable,
                "this folder is not a cache and contains other files, such as `\(name.prefix(80))`; use an empty "
                    + "folder, or a folder that does not exist yet", path: folder)
        }
        try Self.makeFolders(folder)
        var info = stat()
        guard stat(folder, &info) == 0 else { throw Self.failure("cannot access the folder", errno, folder) }
        guard info.st_uid == geteuid() else {
            throw StoreError(
                .unavailable,
                "the folder belongs to user \(info.st_uid), but this program runs as user \(geteuid()); use a different folder, or "
                    + "run the program as the owner", path: folder)
        }
        guard info.st_mode & 0o077 != 0 else { return }
        guard chmod(folder, 0o700) == 0 else {
            throw Self.failure("cannot restrict the folder to its owner", errno, folder)
        }
    }

    /// Returns whether all existing files of the database belong to this user. Makes them inaccessible to other users.
    func ownsDatabase() -> Bool {
        for suffix in ["", "-wal", "-shm"] {
            let path = "\(folder)/cache.sqlite\(suffix)"
            var info = stat()
            guard lstat(path, &info) == 0 else { continue }
            guard Self.isOurs(info) else { return false }
            if info.st_mode & 0o077 != 0 { chmod(path, 0o600) }
        }
        return true
    }

    /// Creates a folder that only this user can access. Does not change an existing folder.
    ///
    /// - Parameter sync: whether to wait until its name is on disk.
    static func makeFolder(_ path: String, sync: Bool = false) throws(StoreError) {
        if mkdir(path, 0o700) == 0 {
            if sync, let folder = path.splitAtLastSlash?.folder { try syncFolder(folder) }
            return
        }
        let cause = errno
        var info = stat()
        guard cause == EEXIST else { throw failure("cannot create the folder", cause, path) }
        guard stat(path, &info) == 0 else {
            throw StoreError(
                .unavailable,
                "this is a dangling symbolic link, not a folder; use a different folder, or delete the link",
                path: path)
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw StoreError(
                .unavailable, "this is a file, not a folder; use a different folder, or move the file", path: path)
        }
    }

    /// Creates a folder and its parents.
    static func makeFolders(_ path: String) throws(StoreError) {
        var info = stat()
        if stat(path, &info) == 0, info.st_mode & S_IFMT == S_IFDIR { return }
        if let folder = path.splitAtLastSlash?.folder, !folder.isEmpty { try makeFolders(folder) }
        if path.hasSuffix("/") { return }
        try makeFolder(path)
    }

    static func failure(_ what: String, _ cause: CInt, _ path: String) -> StoreError {
        let text = "\(what): \(String(cString: strerror(cause)))"
        return switch cause {
        case ENOSPC, EDQUOT: StoreError(.full, text, path: path)
        case EACCES, EPERM, ENOTDIR, ENOENT, EEXIST, EROFS, ELOOP, ENAMETOOLONG, EINVAL:
            StoreError(.unavailable, text, path: path)
        default: StoreError(.io, text, path: path)
        }
    }

    private static func names(in folder: String) -> [String] { (try? entries(of: folder)) ?? [] }

    /// Returns the names of a folder's entries.
    static func entries(of folder: String) throws(StoreError) -> [String] {
        guard let stream = opendir(folder) else { throw failure("cannot read the folder", errno, folder) }
        defer { closedir(stream) }
        var names: [String] = []
        while let item = readdir(stream) {
            let name = withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
