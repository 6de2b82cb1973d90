import Glibc

/// A small in-memory file system (tmpfs).
public struct SmallDisk: Sendable {
    /// The mount point.
    public let path: String

    /// Mounts the file system on a folder, which is created if necessary. Returns nil if mounting is not permitted.
    public init?(at path: String, kilobytes: Int) {
        self.path = path
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { return nil }
        guard mount("tmpfs", path, "tmpfs", 0, "size=\(kilobytes)k,mode=0700") == 0 else {
            rmdir(path)
            return nil
        }
    }

    /// Unmounts the file system, even if files on it are open.
    public func unmount() { umount2(path, Int32(MNT_DETACH)) }

    /// Remounts the file system read-only or writable. Returns false if this fails.
    public func mayWrite(_ mayWrite: Bool) -> Bool {
        let flags = UInt(MS_REMOUNT) | (mayWrite ? 0 : UInt(MS_RDONLY))
        return mount(nil, path, nil, flags, nil) == 0
    }

    /// The number of free bytes.
    public var free: Int {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Int(status.f_bavail) * Int(status.f_frsize) : 0
    }

    /// Appends to a file until no space is left on the file system, as another program might.
    public func fill(_ name: String) {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        let bytes = [UInt8](repeating: 1, count: 1 << 16)
        for count in [bytes.count, 4_096, 1] { while write(file, bytes, count) > 0 {} }
        close(file)
    }

    /// Whether this process may mount file systems.
    public static let isPermitted: Bool = {
        let folder = ScratchFolder()
        guard let disk = SmallDisk(at: folder.path, kilobytes: 64) else { return false }
        disk.unmount()
        return true
    }()
}
