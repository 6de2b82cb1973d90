import Glibc
import Pipeline
import PipelineSupport

/// Reads every regular file in a folder, recursively and in natural order of names. A subfolder is read at the position
/// of its name. The reader also returns the names that are skipped: names excluded by the rule, and symbolic links
/// unless they are followed.
///
/// The names in a folder are kept in memory, as bytes, while the folder is read. 100,000 names take a few megabytes.
final class FolderReader: EntryReader {
    private struct Level {
        /// The folder's path, with a trailing `/`.
        var path: String
        /// The path relative to the argument, without a trailing `/`.
        var relative: String
        var names: FolderNames
        var at = 0
    }

    private var levels: [Level] = []
    private var pending: BatchEntry?
    private let excluded: [FileIdentity]
    private let rule: FolderRule?
    private let followsLinks: Bool
    /// The folders that have been entered, if links are followed.
    private var entered: Set<FileIdentity> = []

    init(_ folder: String, excluding excluded: [FileIdentity], rule: FolderRule?, followsLinks: Bool) {
        (self.excluded, self.rule, self.followsLinks) = (excluded, rule, followsLinks)
        enter(folder.hasSuffix("/") ? folder : folder + "/", relative: "")
    }

    func next() -> BatchEntry? {
        while true {
            if let entry = pending {
                pending = nil
                return entry
            }
            guard let last = levels.indices.last else { return nil }
            guard levels[last].at < levels[last].names.count else {
                levels.removeLast()
                continue
            }
            let position = levels[last].at
            levels[last].at += 1
            let level = levels[last]
            guard let name = level.names[position] else {
                return .failure(
                    source: level.path + level.names.repaired(position),
                    BatchFailure(code: .badSource, message: "the name of the file is not valid UTF-8; rename the file"))
            }
            if AtomicOutput.isTemporary(name) { continue }
            let path = level.path + name
            var status = stat()
            guard lstat(path, &status) == 0 else { continue }  // Deleted since the folder was read.
            if excluded.contains(FileIdentity(status)) { continue }
            let relative = level.relative.isEmpty ? name : level.relative + "/" + name
            if let reason = rule?.reason(toLeaveOut: name, at: relative) {
                return .leftOut(source: path, SkipReason(reason))
            }
            let isLink = status.st_mode & S_IFMT == S_IFLNK
            if isLink, !followsLinks { return .leftOut(source: path, .link) }
            if isLink, stat(path, &status) != 0 { return .leftOut(source: path, .deadLink) }
            switch status.st_mode & S_IFMT {
            case S_IFREG: return .source(BatchSource(source: path, folder: level.relative, isFound: true))
            case S_IFDIR:
                if excluded.contains(FileIdentity(status)) { continue }
                if isLink, entered.contains(FileIdentity(status)) {
                    return .leftOut(source: path, .knownFolder)
                }
                enter(path + "/", relative: relative)
            default: continue
            }
        }
    }

    private func enter(_ path: String, relative: String) {
        if followsLinks, let folder = FileIdentity(path: path) { entered.insert(folder) }
        do {
            levels.append(Level(path: path, relative: relative, names: try FolderNames(path)))
        } catch {
            pending = .failure(source: path, BatchFailure(code: .notFound, message: error.description))
        }
    }
}

/// The names in one folder, in natural order, stored in one array.
struct FolderNames {
    private var bytes: [UInt8] = []
    private var starts: [UInt32] = []

    init(_ path: String) throws(FileError) {
        let isRead = forEachName(in: path) { name in
            starts.append(UInt32(bytes.count))
            bytes += name
            bytes.append(0)
            return true
        }
        guard isRead else { throw FileError("read folder", path) }
        bytes.withUnsafeBufferPointer { all in
            func name(_ start: UInt32) -> UnsafeBufferPointer<UInt8> {
                let start = all.baseAddress.map { $0 + Int(start) }
                let length = start.map { strlen(UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self)) }
                return UnsafeBufferPointer(start: start, count: length ?? 0)
            }
            starts.sort { NaturalOrder.precedes(name($0), name($1)) }
        }
    }

    var count: Int { starts.count }

    /// The name, or nil if it is not valid UTF-8. A file with such a name cannot be opened with a Swift string.
    subscript(position: Int) -> String? { String(validating: slice(position), as: UTF8.self) }

    /// The name with invalid UTF-8 replaced by U+FFFD.
    func repaired(_ position: Int) -> String { String(decoding: slice(position), as: UTF8.self) }

    private func slice(_ position: Int) -> ArraySlice<UInt8> {
        let start = Int(starts[position])
        let end = bytes[start...].firstIndex(of: 0) ?? bytes.endIndex
        return bytes[start..<end]
    }
}
