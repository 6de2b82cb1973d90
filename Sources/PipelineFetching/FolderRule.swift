import Glibc

/// Decides which names in a folder are left out, although pictures may lie there.
///
/// Batches and the server's folders follow the same rule. It applies to names that are found by reading a folder: an
/// argument that names such a folder itself is read.
package struct FolderRule: Sendable, Hashable {
    package enum Reason: Sendable, Hashable { case hidden, otherPrograms, excluded }

    /// Whether names that begin with a dot are taken.
    package var takesHidden = false
    /// Patterns of fnmatch(3). A pattern without a slash is compared with the name, any other with the path relative to
    /// the folder, where no wildcard matches a slash.
    package var exclusions: [String] = []

    package init() {}

    /// Folders that Synology, Windows, freedesktop.org, npm and macOS keep beside pictures, in lower case.
    private static let otherPrograms: Set<String> = [
        "@eadir", "#recycle", "$recycle.bin", ".thumbnails", "node_modules", "__macosx",
    ]

    /// Returns why a file or folder is left out; nil if it is taken.
    ///
    /// - Parameter path: relative to the folder that is read; its last component is `name`.
    package func reason(toLeaveOut name: String, at path: String) -> Reason? {
        let lowercased = name.lowercased()
        if Self.otherPrograms.contains(lowercased) || lowercased.utf8.starts(with: ".trash-".utf8) {
            return .otherPrograms
        }
        if !takesHidden, name.utf8.first == UInt8(ascii: ".") { return .hidden }
        let isExcluded = exclusions.contains { pattern in
            guard pattern.utf8.contains(UInt8(ascii: "/")) else { return fnmatch(pattern, name, 0) == 0 }
            return fnmatch(pattern, pattern.utf8.first == UInt8(ascii: "/") ? "/" + path : path, FNM_PATHNAME) == 0
        }
        return isExcluded ? .excluded : nil
    }

    /// Returns why the first component of a path that is left out is; nil if the whole path is taken.
    package func reason(toLeaveOut path: String) -> Reason? {
        var end = path.utf8.startIndex
        for component in path.utf8.split(separator: UInt8(ascii: "/")) {
            end = component.endIndex
            if let reason = reason(toLeaveOut: String(component) ?? "", at: String(path[..<end])) { return reason }
        }
        return nil
    }
}
