import Glibc

/// Whether a file that is held open still lies under its name.
///
/// A look at the path costs several times what anything else about a file does, so one holds for ten milliseconds. That a
/// file was deleted, or replaced by a rename, its descriptor tells without that: it has no name any more. So all that can
/// pass unnoticed for so long is that it was moved away, or the folder around it.
struct PlaceCheck {
    /// Nanoseconds.
    private static let lifetime: UInt64 = 10_000_000

    private var looked: UInt64 = 0

    /// Nanoseconds of a clock that moves every few milliseconds and costs no system call.
    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// Whether somebody has looked a moment ago.
    var isRecent: Bool { looked != 0 && Self.now() &- looked < Self.lifetime }

    /// The next question looks at the path.
    mutating func expire() { looked = 0 }

    /// Whether the file of this descriptor and inode is the one at `path`.
    mutating func finds(_ descriptor: CInt, inode: UInt64, at path: String) -> Bool {
        var info = stat()
        return descriptor >= 0 && fstat(descriptor, &info) == 0 && finds(info, inode: inode, at: path)
    }

    /// The same where the descriptor has been asked already.
    mutating func finds(_ info: stat, inode: UInt64, at path: String) -> Bool {
        info.st_nlink > 0 && (isRecent || finds(inode, at: path))
    }

    /// The same by the path alone, whenever somebody looked last.
    mutating func finds(_ inode: UInt64, at path: String) -> Bool {
        var info = stat()
        guard lstat(path, &info) == 0, UInt64(info.st_ino) == inode else { return false }
        looked = Self.now()
        return true
    }
}
