import Glibc
import Synchronization

/// Counters of work shared with other processes on the cache folder.
package struct SharingCounters: Sendable, Hashable {
    /// Work begun while holding its lock, so that other processes that want the same wait for it.
    package var held = 0
    /// Times that this process waited for the same work of another process.
    package var waited = 0
    /// Work skipped because another process had stored the result.
    package var shared = 0
    /// Work begun without a lock: the last answer could not be shared, the wait grew too long, or too many were held.
    package var alone = 0
    /// Times the folder could not be locked, so that each process did its own work.
    package var failed = 0
    package init() {}
}

/// Lets one process on a cache folder fetch an original or render a variant while others wait for what it stores.
///
/// `flights.lock` is not locked as a whole: each piece of work locks one byte of it, at an offset derived from the hash
/// of its key, originals in the lower half of all offsets and variants in the upper (open-file-description locks,
/// fcntl(2); the kernel drops them however a process terminates). No task waits for an original's lock while it holds a
/// variant's. A process that could not share its result marks the key: the file begins with 512 slots of eight bytes,
/// each for the hash of a marked key. No process waits for a marked key, so that responses that may not be stored are
/// not fetched one after another; a process that does store one removes the mark.
package final class KeyLocks: Sendable {
    package enum Kind: UInt64 {
        case original, variant
    }

    /// Work in progress, to be released once its result is stored.
    struct Hold: Sendable {
        fileprivate let file: LockFile
        fileprivate let hash: UInt64
        fileprivate let offset: off_t
        /// Whether other processes wait for it; false if the last answer could not be shared.
        let isLocked: Bool
        fileprivate let kind: Kind
        fileprivate let start = ContinuousClock.now
    }

    /// How long to wait for another process before doing the same work here.
    package struct Waits: Sendable {
        /// Twice as long as fetches usually take, within these bounds: a process that is stuck holds up the others no
        /// longer than that, and to fetch twice does no harm.
        package var original: ClosedRange<Duration> = .seconds(1.5) ... .seconds(20)
        /// To render twice costs as much again, so a render is given all the time it may take.
        package var variant: Duration = .seconds(25)

        package init() {}
    }

    private let path: String
    private let waits: Waits
    /// How long fetches of this process took until their results were stored, a moving average; nil before the first.
    private let usualFetch = Mutex<Duration?>(nil)
    private let file = Mutex<LockFile?>(nil)
    private let noted = Mutex(SharingCounters())

    /// The pauses between attempts: another process's work takes milliseconds (a render) to seconds (a fetch).
    private static let pauses: (first: Duration, longest: Duration) = (.milliseconds(1), .milliseconds(32))

    /// The maximum number of locks that a process holds, because the kernel walks all of a file's locks each time one
    /// is acquired or released. Far less work is ever in progress at once; most locks wait for a result to be stored.
    private static let mostHeld = 256

    init(folder: String, waits: Waits) {
        path = "\(folder)/flights.lock"
        self.waits = waits
    }

    package var counters: SharingCounters { noted.withLock { $0 } }

    func note(_ change: (inout SharingCounters) -> Void) { noted.withLock { change(&$0) } }

    /// Waits until no other process does the same work. nil if locking fails, the wait takes too long, or too many
    /// locks are held. Blocks no thread, and throws if the task is cancelled.
    func hold(_ kind: Kind, _ key: String) async throws(CancellationError) -> Hold? {
        guard let file = current() else {
            note { $0.failed += 1 }
            return nil
        }
        let hash = UInt64(bitPattern: Int64(GhostKey(text: "\(kind)\n\(key)").hash))
        let offset = off_t(hash >> 2 | kind.rawValue << 62)
        let end = ContinuousClock.now + longestWait(kind)
        var pause = Self.pauses.first
        var hasWaited = false
        while true {
            if file.isMarked(hash) {
                note { $0.alone += 1 }
                return Hold(file: file, hash: hash, offset: offset, isLocked: false, kind: kind)
            }
            if file.holds >= Self.mostHeld {
                note { $0.alone += 1 }
                return nil
            }
            switch file.lock(offset) {
            case true?:
                note { $0.held += 1 }
                return Hold(file: file, hash: hash, offset: offset, isLocked: true, kind: kind)
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
            do { try await Task.sleep(for: pause) } catch { throw CancellationError() }
            pause = min(pause * 2, Self.pauses.longest)
        }
    }

    private func longestWait(_ kind: Kind) -> Duration {
        guard kind == .original else { return waits.variant }
        let twice = usualFetch.withLock { $0 ?? .zero } * 2
        return min(max(twice, waits.original.lowerBound), waits.original.upperBound)
    }

    /// - Parameter isShared: whether others will find the result in the store; nil leaves the mark of the key as it is,
    ///   so that the next waiter tries.
    func release(_ hold: Hold, isShared: Bool?) {
        if let isShared { hold.file.mark(hold.hash, isShared ? 0 : hold.hash) }
        if isShared == true, hold.kind == .original {
            let duration = ContinuousClock.now - hold.start
            usualFetch.withLock { usual in usual = usual.map { $0 + (duration - $0) / 8 } ?? duration }
        }
        if hold.isLocked { hold.file.unlock(hold.offset) }
    }

    /// The file at the path; reopened if another has taken its place.
    private func current() -> LockFile? {
        file.withLock { file in
            var info = stat()
            if let file, stat(path, &info) == 0, UInt64(info.st_ino) == file.inode { return file }
            file = LockFile(path: path)
            return file
        }
    }
}

/// The open file. Its locks do not exclude work of the same process; `SharedWork` coalesces that.
private final class LockFile: Sendable {
    let inode: UInt64
    private let descriptor: CInt
    /// The number of pieces of work of this process that share each locked byte.
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

    /// The number of bytes that this process has locked.
    var holds: Int { holders.withLock { $0.count } }

    /// Locks a byte: false if another process has locked it, nil if it cannot be locked at all.
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

    /// Sets the mark of a key or, with 0, removes it. Another key's mark in its slot can only be overwritten.
    func mark(_ hash: UInt64, _ value: UInt64) {
        let before = slot(of: hash)
        guard before != value, value != 0 || before == hash else { return }
        // If this fails, waiters do their work one after another.
        _ = withUnsafeBytes(of: value) { pwrite(descriptor, $0.baseAddress, $0.count, at(hash)) }
    }

    private func slot(of hash: UInt64) -> UInt64 {
        var value: UInt64 = 0
        let count = withUnsafeMutableBytes(of: &value) { pread(descriptor, $0.baseAddress, $0.count, at(hash)) }
        return count == MemoryLayout<UInt64>.size ? value : 0
    }

    private func at(_ hash: UInt64) -> off_t { off_t(hash % Self.slots) * 8 }
}
