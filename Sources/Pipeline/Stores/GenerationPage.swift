import Glibc
import Synchronization

/// How often the cache of a folder was purged, where every process can read it without a system call.
///
/// A file of one page, mapped for reading. The number in its first eight bytes is the index's own `generation`, written
/// under the index's write lock before the purge commits: who reads the number they know has missed no purge that has
/// ended. Written with `pwrite`, since a store to a mapped page ends the process on a full disk. Nobody shortens the
/// file; one of another length is replaced by a new one. 0: there is no file to read, and nobody knows.
///
/// @unchecked Sendable because the mapping's address stays the same for the life of the value, and the rest is only
/// touched by `DiskIndex`, one thread at a time.
final class GenerationPage: @unchecked Sendable {
    /// Bytes of the file.
    static let length = 4096

    private let mapped: UnsafeMutableRawPointer?
    private let path: String
    private var file: CInt = -1
    private var inode: UInt64 = 0
    private var place = PlaceCheck()

    /// Nothing is opened yet: the value is 0.
    init(folder: String) {
        path = "\(folder)/generation"
        let address = mmap(nil, Self.length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        mapped = address == MAP_FAILED ? nil : address
    }

    deinit {
        if let mapped { munmap(mapped, Self.length) }
        if file >= 0 { close(file) }
    }

    /// The generation last written by any process; any thread may ask.
    var value: UInt64 {
        guard let mapped else { return 0 }
        return mapped.assumingMemoryBound(to: Atomic<UInt64>.self).pointee.load(ordering: .acquiring)
    }

    /// Whether another file lies where ours was: a folder deleted and made anew.
    ///
    /// - Parameter looks: false where a look a moment ago will do.
    func isReplaced(looks: Bool = true) -> Bool {
        var info = stat()
        guard file >= 0, fstat(file, &info) == 0, info.st_size == Self.length else { return true }
        if looks { place.expire() }
        return !place.finds(info, inode: inode, at: path)
    }

    /// Opens and maps the file in place of any mapped before; false when there is none of the right kind, and then
    /// none is mapped.
    func attach() -> Bool {
        if file >= 0 { close(file) }
        file = -1
        guard let mapped else { return false }
        // Read and write: on a layered file system a file opened for reading alone may be another one than the writers'.
        let opened = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        var info = stat()
        // Mapping replaces the former mapping in one step: a thread that reads meanwhile reads one or the other.
        if opened >= 0, fstat(opened, &info) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_uid == geteuid(),
            info.st_size == Self.length,
            mmap(mapped, Self.length, PROT_READ, MAP_SHARED | MAP_FIXED, opened, 0) != MAP_FAILED
        {
            file = opened
            inode = UInt64(info.st_ino)
            return true
        }
        if opened >= 0 { close(opened) }
        _ = mmap(mapped, Self.length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
        return false
    }

    /// Puts a new file in the place of what is there and maps it. The caller holds the index's write lock.
    func create(_ generation: UInt64, in files: BodyFiles) throws(StoreError) {
        // Written to its end, so that every part of it is there.
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

    /// Tells every process. The caller holds the index's write lock.
    func write(_ generation: UInt64) throws(StoreError) {
        guard file >= 0 else { return }
        let written = withUnsafeBytes(of: generation) { pwrite(file, $0.baseAddress, $0.count, 0) }
        guard written == MemoryLayout<UInt64>.size else {
            throw BodyFiles.failure("cannot tell other processes of a purge", written < 0 ? errno : ENOSPC, path)
        }
    }
}
