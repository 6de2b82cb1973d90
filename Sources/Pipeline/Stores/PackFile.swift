import CFiles
import Glibc
import Synchronization

/// The file that holds the small bodies of a cache folder, in slots of whole units; which slot holds what, and which are
/// free, only the index knows.
///
/// Not in the database: there each body would be written twice, and its page moved about each time a neighbour goes. A
/// slot is written before the row that names it commits, and given to another body only after the row that named it is
/// gone for good; so a kill at any point leaves each named slot whole. Who reads a slot that is given away meanwhile
/// sees a wrong checksum, and finds the row gone.
final class PackFile: Sendable {
    /// Bytes of a unit, as many as the least charge of an entry.
    static let unit = DiskTier.overhead
    /// Bytes of a body that nobody need doubt.
    private static let plausible = 1 << 20
    /// What a file system gives back: whole pages.
    private static let page = 4096

    /// A file that stays open for as long as somebody reads it.
    private final class OpenFile: Sendable {
        let descriptor: CInt
        let inode: UInt64

        init(descriptor: CInt, inode: UInt64) {
            self.descriptor = descriptor
            self.inode = inode
        }

        deinit { close(descriptor) }
    }

    private let path: String
    private let opened = Mutex<OpenFile?>(nil)
    private let check = Mutex(PlaceCheck())

    init(folder: String) { path = "\(folder)/bodies.pack" }

    /// Units that so many bytes take.
    static func units(_ bytes: Int) -> Int { (bytes + unit - 1) / unit }

    /// Opens the file, or another one that has taken its place; makes it where there is none.
    ///
    /// - Parameter looks: whether a look at the path a moment ago will not do.
    /// - Returns: whether what lay there was none of ours (a link, a folder, another user's file), and was deleted.
    @discardableResult
    func attach(looks: Bool = false) throws(StoreError) -> Bool {
        if looks { check.withLock { $0.expire() } }
        if let file = opened.withLock({ $0 }),
            check.withLock({ $0.finds(file.descriptor, inode: file.inode, at: path) })
        {
            return false
        }
        var info = stat()
        var wasForeign = false
        for _ in 0..<2 {
            var file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            if file < 0, errno == EROFS || errno == EACCES {
                // The index may only be read then, too, and nobody is about to write here.
                file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            }
            if file >= 0 {
                if fstat(file, &info) == 0, BodyFiles.isOurs(info) {
                    if info.st_mode & 0o077 != 0 { fchmod(file, 0o600) }
                    let open = OpenFile(descriptor: file, inode: UInt64(info.st_ino))
                    opened.withLock { $0 = open }
                    return wasForeign
                }
                close(file)
            } else if errno != ELOOP, errno != EISDIR, errno != ENXIO {
                throw BodyFiles.failure("cannot open the file of small bodies", errno, path)
            }
            BodyFiles.delete(path)
            wasForeign = true
        }
        throw StoreError(.unavailable, "what lies here is no file of this cache, and cannot be deleted", path: path)
    }

    /// Lets go of the file; the next use opens what then lies at its place.
    func detach() {
        check.withLock { $0.expire() }
        opened.withLock { $0 = nil }
    }

    private func file() throws(StoreError) -> OpenFile {
        if let file = opened.withLock({ $0 }) { return file }
        try attach()
        guard let file = opened.withLock({ $0 }) else {
            throw StoreError(.unavailable, "cannot open the file of small bodies", path: path)
        }
        return file
    }

    /// What the slot that begins with unit `place` holds; nil where the file ends before.
    func read(_ place: Int, length: Int) throws(StoreError) -> [UInt8]? {
        if length == 0 { return [] }
        let file = try file()
        // The file stays open for as long as it is read.
        defer { withExtendedLifetime(file) {} }
        // Memory is taken for what may be there: the length is only as good as the index.
        var info = stat()
        if length > Self.plausible {
            guard fstat(file.descriptor, &info) == 0, place * Self.unit + length <= Int(info.st_size) else {
                return nil
            }
        }
        return try BodyFiles.read(file.descriptor, at: place * Self.unit, length: length, path: path)
    }

    /// Puts bodies into the slots that begin with these units; those in a row are written as one, up to the end of the
    /// last slot: whole pages cost less than parts of them.
    func write(_ bodies: [(place: Int, bytes: [UInt8])]) throws(StoreError) {
        let file = try file()
        defer { withExtendedLifetime(file) {} }
        var row: [UInt8] = []
        // At once: growing by and by would move what is there, and ask the system for memory each time.
        row.reserveCapacity(bodies.reduce(0) { $0 + Self.units($1.bytes.count) * Self.unit })
        var start = 0
        for body in bodies.sorted(by: { $0.place < $1.place }) {
            if start * Self.unit + row.count != body.place * Self.unit {
                try write(row, at: start * Self.unit, of: file)
                row.removeAll(keepingCapacity: true)
                start = body.place
            }
            row += body.bytes
            row.append(contentsOf: repeatElement(0, count: Self.units(body.bytes.count) * Self.unit - body.bytes.count))
        }
        try write(row, at: start * Self.unit, of: file)
    }

    private func write(_ bytes: [UInt8], at offset: Int, of file: OpenFile) throws(StoreError) {
        var at = 0
        while at < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(file.descriptor, $0.baseAddress?.advanced(by: at), bytes.count - at, off_t(offset + at))
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw BodyFiles.failure("cannot write a body", errno, path)
            }
            at += count
        }
    }

    /// Waits until the disk has everything written so far.
    func sync() throws(StoreError) {
        let file = try file()
        defer { withExtendedLifetime(file) {} }
        guard fdatasync(file.descriptor) == 0 else {
            throw BodyFiles.failure("cannot write the file of small bodies", errno, path)
        }
    }

    /// Gives the whole pages within some units back to the file system, which reads as zeros then. What cannot be given
    /// back stays, and is used by bodies that come.
    func punch(_ place: Int, units: Int) throws(StoreError) {
        let first = (place * Self.unit + Self.page - 1) / Self.page * Self.page
        let end = (place + units) * Self.unit / Self.page * Self.page
        guard first < end else { return }
        let file = try file()
        defer { withExtendedLifetime(file) {} }
        _ = file_punch_hole(file.descriptor, Int64(first), Int64(end - first))
    }

    /// Bytes that the file takes of the file system.
    func allocated() throws(StoreError) -> Int {
        let file = try file()
        defer { withExtendedLifetime(file) {} }
        var info = stat()
        return fstat(file.descriptor, &info) == 0 ? Int(info.st_blocks) * 512 : 0
    }

    /// Cuts off what lies beyond so many units.
    func truncate(to units: Int) throws(StoreError) {
        let file = try file()
        defer { withExtendedLifetime(file) {} }
        var info = stat()
        guard fstat(file.descriptor, &info) == 0, Int(info.st_size) > units * Self.unit else { return }
        _ = ftruncate(file.descriptor, off_t(units * Self.unit))
    }

    /// Puts nothing in the place of the file: no row names anything in it. Who has it open keeps what they read.
    func discard() {
        detach()
        BodyFiles.delete(path)
    }
}
