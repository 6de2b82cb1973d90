import CSandbox
import Glibc
import PipelineSupport
import Synchronization

/// A folder of files that are sources named `NAME:PATH`. Files are opened relative to the folder's descriptor, so
/// renames and links cannot lead out of the folder.
///
/// Each use checks that the path still leads to the open folder. If the path leads to a different folder (because a
/// link was switched, a folder was moved or a file system was mounted), the new folder is opened.
///
/// A path is percent-encoded in one canonical way, so that each file has exactly one name, without line breaks.
package final class OpenFolder: Sendable, Hashable {
    package struct Entry: Sendable {
        package var name: [UInt8]
        package var isFolder: Bool
    }

    /// The result of the last use of the path.
    private struct State {
        /// The open folder, or nil if the path does not exist.
        var root: Root?
        /// Why the folder cannot be opened, or nil once the reason has been logged.
        var notice: String?
    }

    package let name: String
    private let path: String
    private let followsLinks: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - name: the name before the colon.
    ///   - followsLinks: whether symbolic links may lead to other places within the folder.
    /// - Throws: an error if the folder cannot be opened or read, or if the kernel cannot confine paths.
    package init(_ name: String, at path: String, followsLinks: Bool) throws(LocalFile.Failure) {
        self.name = name
        self.path = path
        self.followsLinks = followsLinks
        state = Mutex(State(root: try Root(path)))
    }

    /// An open folder.
    private final class Root: Sendable {
        let descriptor: Int32
        private let device: dev_t
        private let inode: ino_t

        init(_ path: String) throws(LocalFile.Failure) {
            var status = stat()
            descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            let isOpen = descriptor >= 0 && fstat(descriptor, &status) == 0
            let problem = isOpen ? -csandbox_open_below(descriptor, ".", O_DIRECTORY, 0) : errno
            (device, inode) = (status.st_dev, status.st_ino)
            if isOpen, problem <= 0 { close(-problem) }
            guard problem > 0 else { return }
            throw LocalFile.Failure(
                isMissing: problem == ENOENT,
                message: problem == ENOSYS || isOpen && problem == EPERM
                    ? "\(path): serving a folder requires openat2, which needs Linux 5.6 or newer and, in a container, a seccomp profile that allows it"
                    : "\(path): \(String(cString: strerror(problem)))")
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        /// Returns whether a path leads to this folder.
        func isAt(_ path: String) -> Bool {
            var status = stat()
            return stat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode
        }
    }

    /// Returns the folder that the path leads to now.
    private func root(for path: String) throws(LocalFile.Failure) -> Root {
        if let root = state.withLock({ $0.root }), root.isAt(self.path) { return root }
        do throws(LocalFile.Failure) {
            let root = try Root(self.path)
            state.withLock { $0 = State(root: root) }
            return root
        } catch {
            let notice = "`\(name)`: \(error.message); requests fail until the folder exists again"
            state.withLock { if $0.root != nil { $0 = State(notice: notice) } }
            throw LocalFile.Failure(
                isMissing: false, message: "\(name):\(path): the folder `\(name)` does not exist at the moment")
        }
    }

    /// Returns why the folder is missing, for the log. Returns each reason only once, until the folder has been
    /// available again.
    package func takeNotice() -> String? {
        state.withLock { state in
            defer { state.notice = nil }
            return state.notice
        }
    }

    package static func == (a: OpenFolder, b: OpenFolder) -> Bool { a === b }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    /// Returns the canonical form of a path that a client wrote. The file need not exist. Each segment is
    /// percent-decoded once, so an encoded slash is not a separator.
    package static func canonical(_ path: some StringProtocol) -> String {
        segments(path).map(canonical).joined(separator: "/")
    }

    /// - Parameter source: a canonical `NAME:PATH`.
    package func url(of source: String) -> SourceURL {
        SourceURL(scheme: name, name: String(source.dropFirst(name.count + 1)))
    }

    /// Returns a file name as a path segment.
    package static func canonical(_ name: [UInt8]) -> String { SourceURL.canonical(name, keeping: nil) }

    private static func segments(_ path: some StringProtocol) -> [[UInt8]] {
        path.split(separator: "/", omittingEmptySubsequences: false).map { SourceURL.percentDecoded(String($0)) }
    }

    /// Returns the segments of an absolute path within the folder. Returns nil if the path is outside the folder. Links
    /// are not resolved.
    private func segments(ofAbsolute path: String) -> [[UInt8]]? {
        let folder = absolutePath(self.path).pathParts.map { Array($0.utf8) }
        let path = absolutePath(path).pathParts.map { Array($0.utf8) }
        return path.starts(with: folder) ? Array(path.dropFirst(folder.count)) : nil
    }

    /// Opens a regular file by its absolute path, which must be within one of several folders. The error says why the
    /// file is refused.
    static func file(
        _ path: String, below folders: [OpenFolder], byteLimit: Int
    ) throws(LocalFile.Failure) -> LocalFile {
        for folder in folders {
            guard let segments = folder.segments(ofAbsolute: path) else { continue }
            do throws(LocalFile.Failure) {
                return try folder.file(segments.map(canonical).joined(separator: "/"), byteLimit: byteLimit)
            } catch { throw error.withReason }
        }
        throw LocalFile.Failure(isMissing: false, message: "\(path) is outside the folders that may be read")
    }

    /// Returns whether an absolute path names this folder or something within it. Compares strings and does not access
    /// the file system.
    package func contains(_ path: String) -> Bool { segments(ofAbsolute: path) != nil }

    /// Opens the parent folder of a file within this folder, by the file's absolute path, and creates missing folders.
    /// The caller closes the descriptor.
    package func makeFolder(of path: String) throws(LocalFile.Failure) -> (folder: Int32, name: String) {
        do throws(LocalFile.Failure) {
            guard let segments = segments(ofAbsolute: path), let name = segments.last else {
                throw missing(path, "it is outside the folder")
            }
            guard !segments.contains(where: { Self.excludes($0) || $0.contains { $0 < 0x20 || $0 == 0x7F } }) else {
                throw missing(
                    path, "a name begins with a dot, belongs to another program, or contains control characters")
            }
            var (folder, below) = (try open("", O_DIRECTORY), "")
            for segment in segments.dropLast() {
                let parent = folder
                defer { close(parent) }
                // This call fails if the name exists. `open` then refuses a link.
                mkdirat(parent, String(decoding: segment, as: UTF8.self), 0o777)
                below += (below.isEmpty ? "" : "/") + Self.canonical(segment)
                folder = try open(below, O_DIRECTORY)
            }
            return (folder, String(decoding: name, as: UTF8.self))
        } catch { throw error.withReason }
    }

    /// Opens a regular file. The error's message is the same for every reason, and `logged` contains the reason.
    func file(_ path: String, byteLimit: Int) throws(LocalFile.Failure) -> LocalFile {
        let descriptor = try open(path)
        do throws(LocalFile.Failure) {
            return try LocalFile(descriptor, name + ":" + path, byteLimit: byteLimit)
        } catch {
            throw error.isTooLarge ? error : missing(path, "it is not a regular file")
        }
    }

    /// Returns the first files and folders of a folder after the name `after`, in natural order. Omits links and names
    /// that `FolderRule` leaves out. Reads the folder as a stream, and holds no more than `most` names.
    package func entries(
        of path: String, after: [UInt8], most: Int
    ) throws(LocalFile.Failure) -> (entries: [Entry], isAll: Bool) {
        let descriptor = try open(path, O_DIRECTORY)
        guard let stream = fdopendir(descriptor) else {
            close(descriptor)
            throw missing(path, "it cannot be read as a folder")
        }
        defer { closedir(stream) }
        var (kept, isAll) = ([Entry](), true)
        while let entry = readdir(stream) {
            let type = Int(entry.pointee.d_type)
            withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                let name = bytes.prefix { $0 != 0 }
                guard !Self.excludes(name), NaturalOrder.precedes(after, name) else { return }
                if kept.count == most, let last = kept.last, !NaturalOrder.precedes(name, last.name) {
                    isAll = false
                    return
                }
                guard let isFolder = Self.isFolder(type, bytes, in: descriptor) else { return }
                let at = kept.firstIndex { NaturalOrder.precedes(name, $0.name) } ?? kept.count
                kept.insert(Entry(name: Array(name), isFolder: isFolder), at: at)
                guard kept.count > most else { return }
                kept.removeLast()
                isAll = false
            }
        }
        return (kept, isAll)
    }

    private static func excludes(_ name: some Collection<UInt8>) -> Bool {
        let name = String(decoding: name, as: UTF8.self)
        return FolderRule().reason(toLeaveOut: name, at: name) != nil
    }

    /// Returns whether an entry is a folder, or nil if it is neither a regular file nor a folder.
    private static func isFolder(_ type: Int, _ name: UnsafeRawBufferPointer, in folder: Int32) -> Bool? {
        if type != Int(DT_UNKNOWN) { return type == Int(DT_DIR) ? true : type == Int(DT_REG) ? false : nil }
        var status = stat()
        guard let name = name.baseAddress?.assumingMemoryBound(to: CChar.self),
            fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0
        else { return nil }
        return status.st_mode & S_IFMT == S_IFDIR ? true : status.st_mode & S_IFMT == S_IFREG ? false : nil
    }

    private func open(_ path: String, _ flags: Int32 = 0) throws(LocalFile.Failure) -> Int32 {
        let segments = Self.segments(path)
        let isRoot = path.isEmpty && flags & O_DIRECTORY != 0
        let isRefused = segments.contains {
            $0.isEmpty || Self.excludes($0) || $0.contains(UInt8(ascii: "/")) || $0.contains(0)
        }
        guard isRoot || !isRefused else {
            throw missing(
                path,
                "a segment is empty, begins with a dot, is a folder of another program such as @eaDir, or contains a slash or "
                    + "a NUL character")
        }
        let bytes = isRoot ? [UInt8(ascii: ".")] : Array(segments.joined(separator: [UInt8(ascii: "/")]))
        let root = try root(for: path)
        let opened = (bytes + [0]).withUnsafeBytes { bytes in
            // Another thread may release the folder in the meantime.
            withExtendedLifetime(root) {
                csandbox_open_below(
                    root.descriptor, bytes.assumingMemoryBound(to: CChar.self).baseAddress!, flags,
                    followsLinks ? 1 : 0)
            }
        }
        switch -opened {
        case ...0: return opened
        case ENOENT, ENOTDIR: throw missing(path, nil)
        case EXDEV: throw missing(path, "it leads outside the folder, or through an absolute link")
        case ELOOP:
            throw missing(
                path,
                "the path contains a symbolic link (`server.folderLinks` lets servers follow links within the folder)")
        case EMFILE, ENFILE, ENOMEM, EIO, ESTALE:
            throw LocalFile.Failure(
                isMissing: false, message: "\(name):\(path): \(String(cString: strerror(-opened)))")
        default: throw missing(path, String(cString: strerror(-opened)))
        }
    }

    /// - Parameter reason: the reason for the log, or nil if the file simply does not exist.
    private func missing(_ path: String, _ reason: String?) -> LocalFile.Failure {
        let source = name + ":" + path
        return LocalFile.Failure(
            isMissing: true, message: "\(source): the file does not exist", logged: reason.map { source + ": " + $0 })
    }
}

extension LocalFile.Failure {
    /// The error with its reason in the message, for operators.
    fileprivate var withReason: LocalFile.Failure {
        LocalFile.Failure(isMissing: isMissing, isTooLarge: isTooLarge, message: logged ?? message)
    }
}
