import Glibc

/// Decides which files and folders to leave out when a folder is read, even if they may contain images.
///
/// Batches and the server's folders follow the same rule. The rule applies only to names found by reading a folder. A
/// folder that is named directly by an argument is always read.
package struct FolderRule: Sendable, Hashable {
    package enum Reason: Sendable, Hashable { case hidden, otherPrograms, excluded }

    /// Whether names that begin with a dot are included.
    package var takesHidden = false
    /// Patterns of fnmatch(3). A pattern without a slash is compared with the name. Any other pattern is compared with
    /// the path relative to the folder, and its wildcards do not match a slash.
    package var exclusions: [String] = []

    package init() {}

    /// The folders that Synology, Windows, freedesktop.org, npm and macOS store next to images, in lower case.
    private static let otherPrograms: Set<String> = [
        "@eadir", "#recycle", "$recycle.bin", ".thumbnails", "node_modules", "__macosx",
    ]

    /// Returns why a file or folder is left out, or nil if it is included.
    ///
    /// - Parameter path: the path relative to the folder that is read. Its last component is `name`.
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

    /// Returns why a path is left out, which is the reason for its first component that is left out. Returns nil if all
    /// components are included.
    package func reason(toLeaveOut path: String) -> Reason? {
        var end = path.utf8.startIndex
        for component in path.utf8.split(separator: UInt8(ascii: "/")) {
            end = component.endIndex
            if let reason = reason(toLeaveOut: String(component) ?? "", at: String(path[..<end])) { return reason }
        }
        return nil
    }
}
