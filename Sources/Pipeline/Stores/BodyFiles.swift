import Glibc
import Synchronization

/// The files beside the index: large bodies, named by digest in one of 256 folders, and those being written.
///
/// A body file holds the body and nothing else. It is written to `temporary/` and renamed into `bodies/ab/`, so a
/// name in `bodies/` always means a whole file.
struct BodyFiles: Sendable {
    let folder: String

    private static let serial = Atomic<UInt64>(0)

    func path(_ digest: Digest) -> String { "\(folder)/bodies/\(digest.prefix(2))/\(digest)" }

    /// Writes a new temporary file, gone again when that fails.
    ///
    /// A file without a name on the same file system is taken over as it is, which moves no byte; any other is copied.
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
            failed = bytes.withUnsafeBytes { Self.write($0, to: file) }
        case .file(let spooled):
            let isRead = spooled.forEachPiece { piece in
                failed = Self.write(piece, to: file)
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

    /// Writes everything; 0, or the error's number.
    private static func write(_ data: UnsafeRawBufferPointer, to file: CInt) -> CInt {
        var at = 0
        while at < data.count {
            let count = Glibc.write(file, data.baseAddress?.advanced(by: at), data.count - at)
            if count < 0 {
                if errno == EINTR { continue }
                return errno
            }
            at += count
        }
        return 0
    }

    /// Gives a temporary file its lasting name.
    func publish(_ temporary: String, as digest: Digest) throws(StoreError) {
        let path = path(digest)
        if rename(temporary, path) == 0 { return }
        if errno == ENOENT {
            try Self.makeFolder("\(folder)/bodies")
            try Self.makeFolder("\(folder)/bodies/\(digest.prefix(2))")
            if rename(temporary, path) == 0 { return }
        }
        throw Self.failure("cannot publish a body", errno, path)
    }

    /// Whether a body file of this length is there; its content is not read.
    func holds(_ digest: Digest, length: Int) -> Bool {
        var info = stat()
        return lstat(path(digest), &info) == 0 && info.st_mode & S_IFMT == S_IFREG && Int(info.st_size) == length
    }

    /// The open file, for it to be read piece by piece; it stays whole for who has it when the entry is evicted. nil
    /// when it is missing, is no regular file, or has another length.
    func opened(_ digest: Digest, length: Int) throws(StoreError) -> SpooledBody? {
        let path = path(digest)
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT || errno == ELOOP || errno == ENOTDIR { return nil }
            throw Self.failure("cannot open a body", errno, path)
        }
        let opened = SpooledBody(descriptor: file, count: length)
        var info = stat()
        guard fstat(file, &info) == 0 else { throw Self.failure("cannot read a body", errno, path) }
        return info.st_mode & S_IFMT == S_IFREG && Int(info.st_size) == length ? opened : nil
    }

    /// The file's bytes; nil when it is missing, is no regular file, or has another length.
    func read(_ digest: Digest, length: Int) throws(StoreError) -> [UInt8]? {
        guard let opened = try opened(digest, length: length) else { return nil }
        defer { withExtendedLifetime(opened) {} }
        let file = opened.descriptor
        var failed: CInt = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
            while filled < length {
                let count = Glibc.read(file, buffer.baseAddress?.advanced(by: filled), length - filled)
                if count == 0 { return }
                if count < 0 {
                    if errno == EINTR { continue }
                    failed = errno
                    return
                }
                filled += count
            }
        }
        guard failed == 0 else { throw Self.failure("cannot read a body", failed, path(digest)) }
        return bytes.count == length ? bytes : nil
    }

    /// Deletes a body file. A file that is not there is fine.
    func remove(_ digest: Digest) { unlink(path(digest)) }

    /// Calls `visit` with the digest of every body file. Names that are not digests are nobody's business of ours.
    func forEachBody(_ visit: (Digest) throws(StoreError) -> Void) throws(StoreError) {
        for prefix in Self.names(in: "\(folder)/bodies") where prefix.utf8.count == 2 {
            for name in Self.names(in: "\(folder)/bodies/\(prefix)") where Self.isDigest(name) && name.hasPrefix(prefix)
            {
                try visit(name)
            }
        }
    }

    /// Paths of temporary files not written to for `seconds`: left behind by a killed process.
    func abandoned(after seconds: Int) -> [String] {
        let now = time(nil)
        return Self.names(in: "\(folder)/temporary").map { "\(folder)/temporary/\($0)" }.filter { path in
            var info = stat()
            return lstat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFREG && now - info.st_mtim.tv_sec >= seconds
        }
    }

    /// Removes the database that a rebuild set aside.
    func removeSetAside() {
        for suffix in ["", "-wal", "-shm"] { unlink("\(folder)/cache.sqlite.damaged\(suffix)") }
    }

    /// Creates a folder for this user alone; one that is there is left as it is.
    static func makeFolder(_ path: String) throws(StoreError) {
        if mkdir(path, 0o700) == 0 { return }
        let cause = errno
        var info = stat()
        if cause == EEXIST, stat(path, &info) == 0, info.st_mode & S_IFMT == S_IFDIR { return }
        throw failure("cannot create the folder", cause, path)
    }

    /// Creates a folder and those above it.
    static func makeFolders(_ path: String) throws(StoreError) {
        var info = stat()
        if stat(path, &info) == 0, info.st_mode & S_IFMT == S_IFDIR { return }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            try makeFolders(String(path[..<slash]))
        }
        if path.hasSuffix("/") { return }
        try makeFolder(path)
    }

    static func isDigest(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
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

    private static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
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
