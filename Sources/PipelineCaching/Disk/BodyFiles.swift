import PipelineSupport
import Glibc
import Synchronization

/// The files next to the index: large bodies, named by digest in one of 256 folders, and those being written.
///
/// A body file holds the body and nothing else. It is written to `temporary/` and renamed into `bodies/ab/`, so a name
/// in `bodies/` always refers to a complete file.
struct BodyFiles: Sendable {
    let folder: String

    private static let serial = Atomic<UInt64>(0)

    /// The space reserve.
    var reserve: ReserveFile { ReserveFile(folder: folder) }

    func path(_ digest: String) -> String { "\(folder)/bodies/\(digest.prefix(2))/\(digest)" }

    /// Writes a new temporary file; removes it again on failure.
    ///
    /// An unnamed file on the same file system is linked in place without copying; any other file is copied.
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
        switch body {
        case .bytes(let bytes):
            if !bytes.withUnsafeBytes({ FileIO.write($0, to: file) }) { failed = errno }
        case .file(let spooled):
            let isRead = spooled.forEachPiece { piece in
                if !FileIO.write(piece, to: file) { failed = errno }
                return failed == 0
            }
            if !isRead, failed == 0 { failed = EIO }
        }
        if failed == 0, sync, Glibc.fsync(file) != 0 { failed = errno }
        if Glibc.close(file) != 0, failed == 0 { failed = errno }
        guard failed == 0 else {
            unlink(path)
            throw Self.failure("cannot write a body", failed, path)
        }
        return path
    }

    // MARK: Intent files

    /// Creates an intent file: a body is about to be renamed to its final name, and its row is not committed yet. If
    /// the process is killed in between, the leftover body is found by this file instead of by a scan of all bodies.
    func intend(_ digest: String) throws(StoreError) -> String {
        while true {
            let serial = Self.serial.add(1, ordering: .relaxed).newValue
            let path = "\(folder)/temporary/\(digest).\(getpid())-\(serial)"
            let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            if file >= 0 {
                Glibc.close(file)
                return path
            }
            // A process in another container may have the same pid and own that intent file.
            guard errno == EEXIST else { throw Self.failure("cannot create an intent file", errno, path) }
        }
    }

    /// All intent files. For those listed under the write lock, the processes have committed or terminated.
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
            case EISDIR: rmdir(path)
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

    /// Whether there is a file of any kind under this body's name.
    func isThere(_ digest: String) -> Bool {
        var info = stat()
        return lstat(path(digest), &info) == 0
    }

    /// Whether there is a body file of this length; its content is not read.
    func holds(_ digest: String, length: Int) -> Bool {
        var info = stat()
        return lstat(path(digest), &info) == 0 && Self.isOurs(info) && Int(info.st_size) == length
    }

    /// Opens a body file for reading in pieces; its content stays intact even if the entry is evicted. nil if the file
    /// is missing, is not a regular file of this user (a link is not followed), or has another length.
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

    /// Whether it is a regular file of this user; the store writes no others.
    static func isOurs(_ info: stat) -> Bool { info.st_mode & S_IFMT == S_IFREG && info.st_uid == geteuid() }

    /// The file's bytes; nil if it is missing, is not a regular file of this user, has another length, or ends earlier.
    func read(_ digest: String, length: Int) throws(StoreError) -> [UInt8]? {
        guard let opened = try opened(digest, length: length) else { return nil }
        defer { withExtendedLifetime(opened) {} }
        if let bytes = FileIO.bytes(length, of: opened.descriptor) { return bytes }
        guard errno == 0 else { throw Self.failure("cannot read a body", errno, path(digest)) }
        return nil
    }

    /// Deletes whatever has the name of this body file. A missing file is fine.
    func remove(_ digest: String) { Self.delete(path(digest)) }

    /// Deletes a file, a link (not its target), or an empty folder.
    static func delete(_ path: String) {
        if unlink(path) != 0, errno == EISDIR { rmdir(path) }
    }

    /// The names of the folders in `bodies/`.
    static let prefixes = (0..<256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }

    /// Whether there is a folder `bodies/`.
    var hasBodies: Bool { access("\(folder)/bodies", F_OK) == 0 }

    /// Digests of the body files in the folder of this prefix.
    func bodies(in prefix: String) -> [String] {
        Self.names(in: "\(folder)/bodies/\(prefix)").filter { DigestKey($0) != nil && $0.hasPrefix(prefix) }
    }

    /// Whether a name is that of a body being written: `<pid>-<n>-<random>`.
    private static func isTemporary(_ name: String) -> Bool {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 3 && Int(parts[0]) != nil && Int(parts[1]) != nil && UInt64(parts[2], radix: 36) != nil
    }

    /// Paths of temporary files not written to for `seconds`: left behind by a killed process.
    func abandoned(after seconds: Int) -> [String] {
        let now = time(nil)
        return Self.names(in: "\(folder)/temporary").filter(Self.isTemporary).map { "\(folder)/temporary/\($0)" }
            .filter { path in
                var info = stat()
                return lstat(path, &info) == 0 && now - info.st_mtim.tv_sec >= seconds
            }
    }

    /// Deletes the files that belonged to an index from before version 1.
    func removeFormer() { for name in DiskSchema.formerFiles { Self.delete("\(folder)/\(name)") } }

    /// Deletes the database that a rebuild set aside.
    func removeSetAside() {
        for suffix in ["", "-wal", "-shm"] { unlink("\(folder)/cache.sqlite.damaged\(suffix)") }
    }

    // MARK: Folders

    /// Creates the cache folder or takes over an existing one; makes an empty folder or a cache private to its owner.
    ///
    /// - Throws: `.unavailable`, changing nothing, if it belongs to another user, or holds files and is not a cache.
    func claim() throws(StoreError) {
        if case .foreign(let name) = try FolderContent(folder) {
            throw StoreError(
                .unavailable,
                "this folder is not a cache and contains other files, such as `\(name.prefix(80))`: name an empty "
                    + "folder, or one that does not exist yet", path: folder)
        }
        try Self.makeFolders(folder)
        var info = stat()
        guard stat(folder, &info) == 0 else { throw Self.failure("cannot access the folder", errno, folder) }
        guard info.st_uid == geteuid() else {
            throw StoreError(
                .unavailable,
                "the folder belongs to user \(info.st_uid), this program runs as \(geteuid()): name another folder, or "
                    + "run as its owner", path: folder)
        }
        guard info.st_mode & 0o077 != 0 else { return }
        guard chmod(folder, 0o700) == 0 else {
            throw Self.failure("cannot restrict the folder to its owner", errno, folder)
        }
    }

    /// Deletes what stands in place of the store's folders and is not a folder, such as a link.
    ///
    /// - Returns: the number of deletions.
    func removeFalseFolders() -> Int {
        var removed = 0
        for path in ["\(folder)/bodies", "\(folder)/temporary"] {
            var info = stat()
            guard lstat(path, &info) == 0, info.st_mode & S_IFMT != S_IFDIR else { continue }
            unlink(path)
            removed += 1
        }
        return removed
    }

    /// Whether all files of the database that exist belong to this user; makes them inaccessible to others.
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

    /// Foreign files in the store's folders: paths that have the name of a body but are not one (links, files of other
    /// users), and the number of files with other names.
    func foreign() -> (false: [String], others: Int) {
        let bodies = "\(folder)/bodies"
        let known = Set(Self.prefixes)
        var found: [String] = []
        var others = Self.names(in: "\(folder)/temporary").count { !Self.isTemporary($0) && !Self.isIntent($0) }
        for prefix in Self.names(in: bodies) {
            var info = stat()
            guard lstat("\(bodies)/\(prefix)", &info) == 0 else { continue }
            guard known.contains(prefix), info.st_mode & S_IFMT == S_IFDIR else {
                if known.contains(prefix) { found.append("\(bodies)/\(prefix)") } else { others += 1 }
                continue
            }
            for name in Self.names(in: "\(bodies)/\(prefix)") {
                let path = "\(bodies)/\(prefix)/\(name)"
                guard lstat(path, &info) == 0 else { continue }
                if DigestKey(name) == nil {
                    others += 1
                } else if !name.hasPrefix(prefix) || !Self.isOurs(info) {
                    found.append(path)
                }
            }
        }
        return (found, others)
    }

    /// Creates a folder that only this user can access; leaves an existing one as it is.
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
                "this is a dangling link, not a folder: name another folder, or delete the link",
                path: path)
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw StoreError(
                .unavailable, "this is a file, not a folder: name another folder, or move the file away", path: path)
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

    /// The names of what a folder contains.
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
