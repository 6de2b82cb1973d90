import Glibc

/// Returns the absolute path, resolving `.` and `..` lexically. Symbolic links are not resolved.
package func absolutePath(_ path: String) -> String {
    var full = path
    if path.utf8.first != UInt8(ascii: "/") {
        guard let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        full = String(cString: folder) + "/" + path
    }
    var parts: [Substring] = []
    for part in full.pathParts where part != "." {
        if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
}

// These properties split strings by bytes, because a name may begin with a combining mark, which Swift would join with
// the preceding slash into a single character.
extension String {
    /// The components between slashes. Empty components are omitted.
    package var pathParts: [Substring] { utf8.split(separator: UInt8(ascii: "/")).map { Substring($0) } }

    /// The parts before and after the last slash, or nil if the string has no slash.
    package var splitAtLastSlash: (folder: String, name: String)? {
        guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        return (String(self[..<slash]), String(self[utf8.index(after: slash)...]))
    }
}
