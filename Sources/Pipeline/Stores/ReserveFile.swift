import CFiles
import Glibc

/// Room for deleting on a file system that is full: a file of a megabyte, which is cut off while the index has to write what
/// it deletes.
///
/// Who uses the room holds a lock on the file meanwhile, so that nobody takes it back too early; the end of a process ends its
/// lock. How much of the room is kept is the file's length, since on some file systems zeros take no blocks.
struct ReserveFile: Sendable {
    /// Bytes that are kept.
    static let bytes = 1 << 20
    private static let page = 4096
    /// What changes hands at once.
    private static let piece = 64 << 10

    private let path: String
    private let log: String

    init(folder: String) {
        path = "\(folder)/reserve"
        log = "\(folder)/cache.sqlite-wal"
    }

    /// Whether all of it is there, by its length.
    var isWhole: Bool {
        var info = stat()
        return lstat(path, &info) == 0 && BodyFiles.isOurs(info) && Int(info.st_size) >= Self.bytes
    }

    /// Takes what is missing of the room, in pieces where not all of it is to be had.
    ///
    /// - Parameter looksInside: also makes sure that the file takes its room, which a copy of it may not.
    /// - Returns: bytes that are still missing; 0 also where no such file can be made for another reason than room.
    @discardableResult
    func take(looksInside: Bool = false) -> Int {
        var info = stat()
        if !looksInside, isWhole { return 0 }
        let file = opened()
        guard file >= 0 else { return Self.isPassing(errno) ? Self.bytes : 0 }
        defer { close(file) }
        // Where another process has it, that one takes it again.
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else { return errno == EWOULDBLOCK ? Self.bytes : 0 }
        if looksInside, fstat(file, &info) == 0, Int(info.st_blocks) * 512 < Int(info.st_size) { ftruncate(file, 0) }
        return Self.fill(file)
    }

    /// Runs `body` while the file system has the room back, and takes it again. Where another process uses it already, with
    /// what there is.
    ///
    /// - Parameter toLog: bytes of it that the log of the index gets at once, so that programs that go on filling the file
    ///   system do not: blocks beyond its end, which it keeps until it is cut.
    func lent<Result>(
        toLog: Int = 0, _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        var file = opened()
        if file >= 0, flock(file, LOCK_EX | LOCK_NB) != 0 {
            close(file)
            file = -1
        }
        if file >= 0 {
            if toLog > 0 { move(toLog, of: file) }
            ftruncate(file, 0)
        }
        defer {
            if file >= 0 {
                Self.fill(file)
                close(file)
            }
        }
        return try body()
    }

    /// Makes blocks of the file blocks beyond the end of the log, as far as that works.
    private func move(_ count: Int, of file: CInt) {
        // Closing it again ends no locks: SQLite has its locks on other files.
        let log = open(log, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard log >= 0 else { return }
        defer { close(log) }
        var info = stat()
        guard fstat(log, &info) == 0, BodyFiles.isOurs(info) else { return }
        let end = Int(info.st_size)
        guard fstat(file, &info) == 0 else { return }
        var length = Int(info.st_size)
        var moved = 0
        while moved < count, length > 0 {
            let piece = min(Self.piece, length)
            length -= piece
            guard ftruncate(file, off_t(length)) == 0,
                file_keep_room(log, Int64(end + moved), Int64(piece)) == 0
            else { return }
            moved += piece
        }
    }

    /// Whether an error is transient: the system is out of space, descriptors or memory.
    static func isPassing(_ cause: CInt) -> Bool { [ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM].contains(cause) }

    /// Opens the reserve, creating it if it is missing or is not a regular file of this user. Negative with errno on failure; the
    /// existing file is kept then.
    private func opened() -> CInt {
        for _ in 0..<2 {
            let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            var info = stat()
            if file >= 0 {
                if fstat(file, &info) == 0, BodyFiles.isOurs(info) { return file }
                close(file)
            } else if !BucketFile.isNoFile(errno) {
                return file
            }
            BodyFiles.delete(path)
        }
        errno = EEXIST
        return -1
    }

    /// Gives the file its length, as far as there is room, under its lock.
    /// - Returns: bytes that are missing.
    @discardableResult
    private static func fill(_ file: CInt) -> Int {
        var info = stat()
        guard fstat(file, &info) == 0 else { return 0 }
        var length = Int(info.st_size)
        var piece = bytes
        while length < bytes {
            piece = min(piece, bytes - length)
            switch posix_fallocate(file, off_t(length), off_t(piece)) {
            case 0: length += piece
            case EINTR: continue
            case ENOSPC, EDQUOT:
                if piece <= page { return bytes - length }
                piece = max(page, piece / 2)
            default: return 0
            }
        }
        return 0
    }
}
