import Glibc
import PipelineSupport

/// The type of the file system that contains a folder, according to `/proc/self/mountinfo` (proc(5)).
struct FileSystemKind: Sendable, Hashable {
    /// The name used by mount(8), for example `ext4`.
    let name: String

    /// - Parameters:
    ///   - folder: An absolute path without symbolic links.
    ///   - mounts: The content of `/proc/self/mountinfo`.
    /// - Returns: nil if no mount point contains the folder.
    init?(holding folder: String, mounts: String) {
        var longest = -1
        var name = ""
        for line in mounts.split(separator: "\n") {
            // `36 35 98:0 /root /mount options [tags] - ext4 source options`. In the mount point, `\040` represents a
            // space.
            let parts = line.split(separator: " ")
            guard parts.count > 6, let dash = parts.firstIndex(of: "-"), dash + 1 < parts.count else { continue }
            let place = parts[4].replacing("\\040", with: " ")
            let holds = place == "/" || folder == place || folder.hasPrefix(place + "/")
            // A later mount at the same mount point hides the earlier one.
            guard holds, place.utf8.count >= longest else { continue }
            longest = place.utf8.count
            name = String(parts[dash + 1])
        }
        guard longest >= 0 else { return nil }
        self.name = name
    }

    /// The disadvantage of this file system for a cache, or nil if the file system is suitable.
    var cost: String? {
        switch name {
        case "tmpfs", "ramfs": "the cache uses memory and is lost on restart"
        case "overlay": "the cache is lost when the container is removed"
        case "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs": Self.network
        case _ where name.hasPrefix("fuse"): Self.network
        default: nil
        }
    }

    private static let network = "file locks can be slow or unavailable; do not share the folder with other machines"
}
