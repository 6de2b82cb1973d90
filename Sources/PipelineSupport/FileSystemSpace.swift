import Glibc

/// The size of a file system and its free space, in bytes.
package struct FileSystemSpace: Sendable, Hashable {
    package var total: Int
    /// The number of bytes available to unprivileged processes.
    package var free: Int

    package init(total: Int, free: Int) {
        self.total = total
        self.free = free
    }

    /// Reads the space of the file system that contains a folder, or that will contain it once it is created. Returns
    /// nil if `statvfs` fails.
    package init?(holding path: String) {
        var status = statvfs()
        var path = path[...]
        while statvfs(String(path), &status) != 0 {
            guard errno == ENOENT, path.count > 1 else { return nil }
            path = path.contains("/") ? path[..<(path.lastIndex(of: "/") ?? path.startIndex)] : "."
            if path.isEmpty { path = "/" }
        }
        total = Int(status.f_blocks) * Int(status.f_frsize)
        free = Int(status.f_bavail) * Int(status.f_frsize)
    }
}
