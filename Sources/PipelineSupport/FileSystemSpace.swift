import Glibc

/// The size of a file system and its free space, in bytes.
package struct FileSystemSpace: Sendable, Hashable {
    package var total: Int
    /// Bytes available to unprivileged processes.
    package var free: Int

    package init(total: Int, free: Int) {
        self.total = total
        self.free = free
    }

    /// nil if `statvfs` fails.
    package init?(holding path: String) {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        total = Int(status.f_blocks) * Int(status.f_frsize)
        free = Int(status.f_bavail) * Int(status.f_frsize)
    }
}
