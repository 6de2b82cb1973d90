import Glibc
import PipelineSupport
import Synchronization

/// The purge generation of a cache folder, which every process can read without the index. It is the first eight bytes
/// of the file `generation`, in the machine's byte order.
///
/// A process writes the index's new generation under the write lock before its purge commits. If a process reads the
/// number that it already knows, it has therefore not missed any purge. The file is read instead of mapped, because
/// truncating a mapped file kills its readers (SIGBUS).
///
/// `@unchecked Sendable` because `file` remains the same descriptor, whatever file it refers to, and because everything
/// except `value` is called only by `DiskIndex`, on one thread at a time.
final class GenerationPage: @unchecked Sendable {
    /// The length of the file in bytes.
    static let length = 4096
    /// The number of nanoseconds between checks for a replaced file.
    private static let interval: UInt64 = 10_000_000

    private let path: String
    /// The descriptor. It refers to `/dev/null` if the file does not exist.
    private let file: CInt
    private let inode = Atomic<UInt64>(0)
    private let nextCheck = Atomic<UInt64>(0)

    /// Opens nothing yet. The value is 0 until `attach()` or `create(_:in:)` is called.
    init(folder: String) {
        path = "\(folder)/generation"
        file = open("/dev/null", O_RDWR | O_CLOEXEC)
    }

    deinit { if file >= 0 { close(file) } }

    /// The generation that was written last by any process, or 0 if the file is missing, too short or replaced. Any
    /// thread may read it.
    var value: UInt64 {
        let now = SystemClock.coarseNanoseconds
        if now >= nextCheck.load(ordering: .relaxed) {
            if isReplaced { return 0 }
            nextCheck.store(now + Self.interval, ordering: .relaxed)
        }
        var value: UInt64 = 0
        return pread(file, &value, MemoryLayout<UInt64>.size, 0) == MemoryLayout<UInt64>.size ? value : 0
    }

    /// Whether the file at the path is not the open file, or has a different length.
    var isReplaced: Bool {
        let known = inode.load(ordering: .relaxed)
        var info = stat()
        return known == 0 || lstat(path, &info) != 0 || UInt64(info.st_ino) != known || info.st_size != Self.length
    }

    /// Opens the file at the path. Returns false, and leaves no file open, if the file is missing or is not a
    /// generation file.
    func attach() -> Bool {
        inode.store(0, ordering: .relaxed)
        // Open the file for writing too, because on an overlay file system, a file that is opened only for reading may
        // differ from the file that writers use.
        let opened = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        defer { if opened >= 0 { close(opened) } }
        var info = stat()
        // `dup2` replaces the descriptor atomically, so a concurrent read uses either the old or the new file.
        if opened >= 0, fstat(opened, &info) == 0, BodyFiles.isOurs(info), info.st_size == Self.length,
            refer(to: opened)
        {
            inode.store(UInt64(info.st_ino), ordering: .relaxed)
            return true
        }
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        if nothing >= 0 {
            _ = refer(to: nothing)
            close(nothing)
        }
        return false
    }

    private func refer(to other: CInt) -> Bool {
        file >= 0 && dup2(other, file) == file && fcntl(file, F_SETFD, FD_CLOEXEC) == 0
    }

    /// Replaces the file at the path with a new file and opens it. The caller holds the index's write lock.
    func create(_ generation: UInt64, in files: BodyFiles) throws(StoreError) {
        var page = [UInt8](repeating: 0, count: Self.length)
        page.withUnsafeMutableBytes { $0.storeBytes(of: generation, as: UInt64.self) }
        let temporary = try files.writeTemporary(.bytes(page), sync: false)
        guard rename(temporary, path) == 0 else {
            let cause = errno
            unlink(temporary)
            throw BodyFiles.failure("cannot create the generation counter", cause, path)
        }
        _ = attach()
    }

    /// Announces a generation to every process. The caller holds the index's write lock.
    func write(_ generation: UInt64) throws(StoreError) {
        let written = withUnsafeBytes(of: generation) { pwrite(file, $0.baseAddress, $0.count, 0) }
        guard written == MemoryLayout<UInt64>.size else {
            throw BodyFiles.failure("cannot announce a purge to other processes", written < 0 ? errno : ENOSPC, path)
        }
    }
}
