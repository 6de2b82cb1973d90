import Glibc
import Synchronization

/// What became of sharing work with other processes on the cache folder.
public struct SharingCounters: Sendable, Hashable {
    /// Work begun while others wait for it, if they want the same.
    public var held = 0
    /// Work that another process was doing already, and was waited for.
    public var waited = 0
    /// Work not done, since another process's was found stored instead.
    public var shared = 0
    /// Work begun without holding up others: the last answer could not be shared, or the wait grew too long.
    public var alone = 0
    /// Times the folder could not be locked, and each process did its own.
    public var failed = 0
    public init() {}
}

/// Lets one process on a cache folder fetch an original or render a variant while others wait for what it stores.
///
/// `flights.lock` holds no lock of itself: each piece of work locks one byte of it, at an offset that its key's hash
/// gives, originals in the lower half of all offsets and variants in the upper (open-file-description locks, fcntl(2);
/// the kernel drops them when a process ends, however it ends). Nobody waits for a variant's lock and then for an
/// original's. What a holder could not share is marked: 512 slots of eight bytes at the beginning of the file, each a key's
/// hash. Under a mark nobody waits, so that what may not be stored is not fetched one after the other; whoever stores it
/// takes the mark away.
final class FlightLocks: Sendable {
    enum Kind: UInt64 {
        case original, variant
    }

    /// Work under way; to be released once it is stored.
    struct Hold: Sendable {
        fileprivate let file: LockFile
        fileprivate let hash: UInt64
        fileprivate let offset: off_t
        /// Whether others wait for it; not where the last answer could not be shared.
        let isLocked: Bool
    }

    private let path: String
    /// How long to wait for another process, by kind, before doing its work as well.
    private let limits: (original: Duration, variant: Duration)
    private let file = Mutex<LockFile?>(nil)
    private let noted = Mutex(SharingCounters())

    /// The pauses between tries: what another process does takes milliseconds (a render) to seconds (a fetch).
    private static let pauses: (first: Duration, longest: Duration) = (.milliseconds(1), .milliseconds(32))

    /// Locks that one process holds at most: the kernel walks through all of a file's for each that is taken or given back. Far more
    /// work than is ever under way at once; the rest waits to be stored.
    private static let mostHeld = 256

    init(folder: String, limits: (original: Duration, variant: Duration)) {
        path = "\(folder)/flights.lock"
        self.limits = limits
    }

    var counters: SharingCounters { noted.withLock { $0 } }

    func note(_ change: (inout SharingCounters) -> Void) { noted.withLock { change(&$0) } }

    /// Waits until no other process does the same; nil where that cannot be told, takes too long, or too many are held. Blocks no thread,
    /// and throws when the task is cancelled.
    func hold(_ kind: Kind, _ key: String) async throws(PipelineError) -> Hold? {
        guard let file = current() else {
            note { $0.failed += 1 }
            return nil
        }
        let hash = UInt64(bitPattern: Int64(GhostKey(text: "\(kind)\n\(key)").hash))
        let offset = off_t(hash >> 2 | kind.rawValue << 62)
        let end = ContinuousClock.now + (kind == .original ? limits.original : limits.variant)
        var pause = Self.pauses.first
        var hasWaited = false
        while true {
            if file.isMarked(hash) {
                note { $0.alone += 1 }
                return Hold(file: file, hash: hash, offset: offset, isLocked: false)
            }
            if file.holds >= Self.mostHeld {
                note { $0.alone += 1 }
                return nil
            }
            switch file.lock(offset) {
            case true?:
                note { $0.held += 1 }
                return Hold(file: file, hash: hash, offset: offset, isLocked: true)
            case nil:
                note { $0.failed += 1 }
                return nil
            case false?:
                break
            }
            if ContinuousClock.now >= end {
                note { $0.alone += 1 }
                return nil
            }
            if !hasWaited { note { $0.waited += 1 } }
            hasWaited = true
            do { try await Task.sleep(for: pause) } catch { throw .cancelledByCaller }
            pause = min(pause * 2, Self.pauses.longest)
        }
    }

    /// - Parameter isShared: whether others find in the store what the work gave; nil where it gave nothing, and the next
    ///   is to try.
    func release(_ hold: Hold, isShared: Bool?) {
        if let isShared { hold.file.mark(hold.hash, isShared ? 0 : hold.hash) }
        if hold.isLocked { hold.file.unlock(hold.offset) }
    }

    /// The file at the path, opened again where another has taken its place.
    private func current() -> LockFile? {
        file.withLock { file in
            var info = stat()
            if let file, stat(path, &info) == 0, UInt64(info.st_ino) == file.inode { return file }
            file = LockFile(path: path)
            return file
        }
    }
}

/// The open file. Work that shares it in one process never excludes other such work: there it is told apart by flights.
private final class LockFile: Sendable {
    let inode: UInt64
    private let descriptor: CInt
    /// Pieces of work of this process by the byte they lock.
    private let holders = Mutex<[off_t: Int]>([:])

    private static let slots: UInt64 = 512

    init?(path: String) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard opened >= 0 else { return nil }
        descriptor = opened
        var info = stat()
        inode = fstat(opened, &info) == 0 ? UInt64(info.st_ino) : 0
        guard info.st_mode & S_IFMT == S_IFREG else { return nil }
    }

    deinit { close(descriptor) }

    /// Bytes that this process has locked.
    var holds: Int { holders.withLock { $0.count } }

    /// Whether the byte is now ours; nil where it cannot be locked at all.
    func lock(_ offset: off_t) -> Bool? {
        holders.withLock { holders in
            if holders[offset] == nil, let cause = lockByte(F_WRLCK, offset, of: descriptor) {
                return cause == EAGAIN || cause == EACCES ? false : nil
            }
            holders[offset, default: 0] += 1
            return true
        }
    }

    func unlock(_ offset: off_t) {
        holders.withLock { holders in
            holders[offset] = holders[offset].flatMap { $0 > 1 ? $0 - 1 : nil }
            if holders[offset] == nil { _ = lockByte(F_UNLCK, offset, of: descriptor) }
        }
    }

    func isMarked(_ hash: UInt64) -> Bool { slot(of: hash) == hash }

    /// Puts a mark, or with 0 takes it away; a slot that another key's mark has meanwhile is only ever overwritten.
    func mark(_ hash: UInt64, _ value: UInt64) {
        let before = slot(of: hash)
        guard before != value, value != 0 || before == hash else { return }
        // When it fails those who wait do their work one after the other.
        _ = withUnsafeBytes(of: value) { pwrite(descriptor, $0.baseAddress, $0.count, at(hash)) }
    }

    private func slot(of hash: UInt64) -> UInt64 {
        var value: UInt64 = 0
        let count = withUnsafeMutableBytes(of: &value) { pread(descriptor, $0.baseAddress, $0.count, at(hash)) }
        return count == MemoryLayout<UInt64>.size ? value : 0
    }

    private func at(_ hash: UInt64) -> off_t { off_t(hash % Self.slots) * 8 }
}
