import Glibc
import PipelineFetching
import PipelineSupport
import Synchronization

/// Writes files atomically: a reader never sees half of one.
///
/// If the target is absent or a regular file, bytes go to a temporary file beside it that is renamed over it; a
/// symbolic link to a regular file is followed, so the link stays. Devices, FIFOs and sockets are written directly.
enum AtomicOutput {
    /// Whether a file name is that of a temporary file of this program; a killed process leaves it behind.
    static func isTemporary(_ name: String) -> Bool { name.hasPrefix(".pipectl-") && name.hasSuffix(".tmp") }

    /// Writes the bytes and returns whether anything was written: false if the file already held exactly these.
    ///
    /// - Parameters:
    ///   - makeFolders: whether to create missing parent folders.
    ///   - refusal: called before a regular file with different bytes is replaced; returns why it must not be, or nil.
    @discardableResult
    static func write(
        _ bytes: [UInt8], to path: String, makeFolders: Bool = false, refusal: (String) -> String? = { _ in nil }
    ) throws(FileError) -> Bool {
        switch try destination(path) {
        case .straight:
            let file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY)
            guard file >= 0 else { throw FileError("write", path) }
            defer { close(file) }
            try write(bytes, toDescriptor: file, named: path)
            return true
        case .file(let real, let existing):
            if let existing, existing == bytes.count, holds(bytes, at: real) { return false }
            if existing != nil, let reason = refusal(real) { throw FileError("write", path, reason) }
            let output = try AtomicFile(path: real, makeFolders: makeFolders && existing == nil)
            try output.write(bytes)
            try output.commit()
            return true
        }
    }

    /// Writes a regular file below an open folder, without following links. Devices and FIFOs are refused.
    ///
    /// - Throws: `LocalFile.Failure` if the file's folder is refused, `FileError` if the file cannot be written.
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

    /// Writes all bytes to an open descriptor, waiting if it would block.
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

    enum Destination: Equatable {
        case straight
        /// The path to rename to, and the size of the file there.
        case file(path: String, existing: Int?)
    }

    static func destination(_ path: String) throws(FileError) -> Destination {
        guard !path.isEmpty, !path.utf8.contains(0) else { throw FileError("write", path, "not a file name") }
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT {
                guard path.last != "/" else { throw FileError("write", path, "expected a file name, not a folder") }
                return .file(path: path, existing: nil)
            }
            throw FileError("write", path)
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: throw FileError("write", path, "it is a folder")
        case S_IFREG:
            var link = stat()
            if lstat(path, &link) == 0, link.st_mode & S_IFMT == S_IFLNK {
                // `/dev/stdout` is such a link if stdout is redirected to a file; renaming over it would replace the
                // link.
                guard let real = resolved(path) else { return .straight }
                return .file(path: real, existing: Int(status.st_size))
            }
            return .file(path: path, existing: Int(status.st_size))
        default: return .straight
        }
    }

    /// The absolute path without symbolic links; nil if there is nothing at `path`.
    static func resolved(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    /// Whether the file holds exactly these bytes; false if it cannot be read.
    private static func holds(_ bytes: [UInt8], at path: String, in folder: Int32 = AT_FDCWD) -> Bool {
        let file = openat(folder, path, O_RDONLY | O_CLOEXEC | (folder == AT_FDCWD ? 0 : O_NOFOLLOW | O_NONBLOCK))
        guard file >= 0 else { return false }
        defer { close(file) }
        return stride(from: 0, to: bytes.count, by: 65_536).allSatisfy { start in
            let part = bytes[start..<min(start + 65_536, bytes.count)]
            return FileIO.bytes(part.count, of: file, at: start).map { part.elementsEqual($0) } ?? false
        }
    }

    /// Whether names in a folder are the same file if they differ in case alone, as on exFAT and many SMB shares. Creates
    /// a temporary file to find out; false if that fails.
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

/// A file written piece by piece under a temporary name and renamed at the end.
struct AtomicFile: ~Copyable {
    let path: String
    /// The open folder that the path is relative to, or `AT_FDCWD`.
    private let folder: Int32
    private let temporary: String
    private var file: Int32
    private static let counter = Atomic<Int>(0)
    /// Another machine may write to the same folder, with the same process ID.
    private static let process = "\(getpid())-" + String(UInt64.random(in: .min ... .max), radix: 16)

    init(path: String, in place: Int32 = AT_FDCWD, makeFolders: Bool = false) throws(FileError) {
        let folder = path.splitAtLastSlash?.folder
        let number = Self.counter.wrappingAdd(1, ordering: .relaxed).newValue
        let name = (folder.map { $0 + "/" } ?? "") + ".pipectl-\(Self.process)-\(number).tmp"
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        var file = openat(place, name, flags, 0o666)
        if file < 0, errno == ENOENT, makeFolders, let folder, !folder.isEmpty {
            try AtomicOutput.makeFolder(folder)
            file = openat(place, name, flags, 0o666)
        }
        if file < 0, errno == EEXIST {
            // Left behind by a killed process that had the same process ID.
            unlinkat(place, name, 0)
            file = openat(place, name, flags, 0o666)
        }
        guard file >= 0 else { throw FileError("write", path) }
        var status = stat()
        if fstatat(place, path, &status, 0) == 0 { _ = fchmod(file, status.st_mode & 0o777) }
        self.path = path
        self.folder = place
        self.temporary = name
        self.file = file
    }

    func write(_ bytes: [UInt8]) throws(FileError) {
        try AtomicOutput.write(bytes, toDescriptor: file, named: path)
    }

    /// Renames the file to its final path.
    consuming func commit() throws(FileError) {
        let closed = close(file)
        if closed == 0, renameat(folder, temporary, folder, path) == 0 {
            file = -1
            return
        }
        let failure = errno
        unlinkat(folder, temporary, 0)
        file = -1
        throw FileError("write", path, errno: failure)
    }

    /// Deletes the temporary file, unless it was renamed.
    deinit {
        guard file >= 0 else { return }
        close(file)
        unlinkat(folder, temporary, 0)
    }
}
