import Glibc
import PipelineFetching
import PipelineSupport
import Synchronization

/// Writes files atomically, so that readers never see incomplete files.
///
/// If the target is absent or a regular file, the bytes are written to a temporary file in the same folder, which is
/// then renamed to the target. A symbolic link to a regular file is followed, so the link is kept. Devices, FIFOs and
/// sockets are written directly.
enum AtomicOutput {
    /// Whether a file name is the name of a temporary file of this program. A killed process leaves such files behind.
    static func isTemporary(_ name: String) -> Bool { name.hasPrefix(".pipectl-") && name.hasSuffix(".tmp") }

    /// Writes the bytes. Returns false if the file already contained exactly these bytes.
    ///
    /// - Parameters:
    ///   - makeFolders: Whether to create missing parent folders. Defaults to false.
    ///   - refusal: A closure that is called before a regular file with different bytes is replaced. It returns the
    ///     reason why the file must not be replaced, or nil if it may be.
    @discardableResult
    static func write(
        _ bytes: [UInt8], to path: String, makeFolders: Bool = false, refusal: (String) -> String? = { _ in nil }
    ) throws(FileError) -> Bool {
        guard let (real, length) = try destination(path) else {
            let file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY)
            guard file >= 0 else { throw FileError("write", path) }
            defer { close(file) }
            try write(bytes, toDescriptor: file, named: path)
            return true
        }
        if length == bytes.count, holds(bytes, at: real) { return false }
        if length != nil, let reason = refusal(real) { throw FileError("write", path, reason) }
        let output = try AtomicFile(path: real, makeFolders: makeFolders && length == nil)
        try output.write(bytes)
        try output.commit()
        return true
    }

    /// Writes a regular file in an open folder or its subfolders, without following links. Devices and FIFOs are
    /// refused.
    ///
    /// - Throws: `LocalFile.Failure` if the file's folder is refused, or `FileError` if the file cannot be written.
    static func write(
        _ bytes: [UInt8], to path: String, below bounds: OpenFolder, refusal: (String) -> String?
    ) throws -> Bool {
        let (folder, name) = try bounds.makeFolder(of: path)
        defer { close(folder) }
        var status = stat()
        if fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw FileError("write", path, "it exists and is not a regular file")
            }
            if status.st_size == bytes.count, holds(bytes, at: name, in: folder) { return false }
            if let reason = refusal(path) { throw FileError("write", path, reason) }
        } else if errno != ENOENT {
            throw FileError("write", path)
        }
        let output = try AtomicFile(path: name, in: folder)
        try output.write(bytes)
        try output.commit()
        return true
    }

    /// Writes all bytes to an open descriptor. Waits if writing would block.
    static func write(_ bytes: [UInt8], toDescriptor file: Int32, named name: String) throws(FileError) {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                uninterrupted { Glibc.write(file, bytes.baseAddress! + offset, bytes.count - offset) }
            }
            if count >= 0 {
                offset += count
            } else if errno == EAGAIN {
                var waiting = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
                _ = poll(&waiting, 1, 1000)
            } else {
                throw FileError("write", name)
            }
        }
    }

    /// Returns the path to rename to and the size of the file there. Returns nil if the target is written directly.
    private static func destination(_ path: String) throws(FileError) -> (path: String, length: Int?)? {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw FileError("write", path, "this path does not end in a file name")
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT {
                guard path.last != "/" else { throw FileError("write", path, "expected a file name, not a folder") }
                return (path, nil)
            }
            throw FileError("write", path)
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: throw FileError("write", path, "it is a folder")
        case S_IFREG:
            var link = stat()
            if lstat(path, &link) == 0, link.st_mode & S_IFMT == S_IFLNK {
                // If stdout is redirected to a file, `/dev/stdout` is such a link. Renaming to it would replace the
                // link.
                return resolved(path).map { ($0, Int(status.st_size)) }
            }
            return (path, Int(status.st_size))
        default: return nil
        }
    }

    /// Returns the absolute path without symbolic links, or nil if `path` does not exist.
    static func resolved(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    /// Whether the file contains exactly these bytes. False if the file cannot be read.
    private static func holds(_ bytes: [UInt8], at path: String, in folder: Int32 = AT_FDCWD) -> Bool {
        let file = openat(folder, path, O_RDONLY | O_CLOEXEC | (folder == AT_FDCWD ? 0 : O_NOFOLLOW | O_NONBLOCK))
        guard file >= 0 else { return false }
        defer { close(file) }
        return stride(from: 0, to: bytes.count, by: 65_536).allSatisfy { start in
            let part = bytes[start..<min(start + 65_536, bytes.count)]
            return FileIO.bytes(part.count, of: file, at: start).map { part.elementsEqual($0) } ?? false
        }
    }

    /// Whether file names in a folder are case-insensitive, as on exFAT and many SMB shares. Creates a temporary file
    /// to find out. Returns false if that fails.
    static func foldsCase(_ folder: String) -> Bool {
        let name = ".pipectl-\(getpid())-\(String(UInt64.random(in: .min ... .max), radix: 16))-case.tmp"
        let file = open("\(folder)/\(name)", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { return false }
        close(file)
        defer { unlink("\(folder)/\(name)") }
        return access("\(folder)/\(name.uppercased())", F_OK) == 0
    }

    /// Creates the folder and its missing parents.
    static func makeFolder(_ path: String) throws(FileError) {
        if path.isEmpty || mkdir(path, 0o777) == 0 { return }
        if errno == ENOENT, let folder = path.splitAtLastSlash?.folder, !folder.isEmpty {
            try makeFolder(folder)
            if mkdir(path, 0o777) == 0 { return }
        }
        let failure = errno
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { return }
        throw FileError(
            "write", path, failure == EEXIST ? "it exists and is not a folder" : String(cString: strerror(failure)))
    }
}

/// A file that is written in chunks under a temporary name and renamed at the end.
final class AtomicFile {
    let path: String
    /// The open folder that the path is relative to, or `AT_FDCWD`.
    private let folder: Int32
    private let temporary: String
    private var file: Int32
    private static let counter = Atomic<Int>(0)
    /// The part of temporary names that identifies this process. It includes a random number, because a process with
    /// the same ID on another machine may write to the same folder.
    private static let process = "\(getpid())-" + String(UInt64.random(in: .min ... .max), radix: 16)

    init(path: String, in place: Int32 = AT_FDCWD, makeFolders: Bool = false) throws(FileError) {
        var status = stat()
        let exists = fstatat(place, path, &status, 0) == 0
        // The rename would replace a device with a file.
        guard !exists || [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else {
            throw FileError("write", path, "it exists and is not a regular file")
        }
        let folder = path.splitAtLastSlash?.folder
        let number = Self.counter.wrappingAdd(1, ordering: .relaxed).newValue
        let name = (folder.map { $0 + "/" } ?? "") + ".pipectl-\(Self.process)-\(number).tmp"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        var file = openat(place, name, flags, 0o666)
        if file < 0, errno == ENOENT, makeFolders, let folder, !folder.isEmpty {
            try AtomicOutput.makeFolder(folder)
            file = openat(place, name, flags, 0o666)
        }
        guard file >= 0 else { throw FileError("write", path) }
        if exists { _ = fchmod(file, status.st_mode & 0o777) }
        self.path = path
        self.folder = place
        self.temporary = name
        self.file = file
    }

    func write(_ bytes: [UInt8]) throws(FileError) {
        try AtomicOutput.write(bytes, toDescriptor: file, named: path)
    }

    /// Renames the file to its final path.
    func commit() throws(FileError) {
        let closed = close(file)
        file = -1
        if closed == 0, renameat(folder, temporary, folder, path) == 0 { return }
        let failure = errno
        unlinkat(folder, temporary, 0)
        throw FileError("write", path, errno: failure)
    }

    /// Deletes the temporary file, unless it was renamed.
    deinit {
        guard file >= 0 else { return }
        close(file)
        unlinkat(folder, temporary, 0)
    }
}
