import Glibc

/// The absolute path, with `.` and `..` resolved by name; symbolic links are left as they are.
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

// By bytes: to Swift, a slash and a combining mark after it, with which a name may begin, are one character.
extension String {
    /// What stands between the slashes, without empty parts.
    package var pathParts: [Substring] { utf8.split(separator: UInt8(ascii: "/")).map { Substring($0) } }

    /// What stands before the last slash, and what behind it; nil if there is no slash.
    package var splitAtLastSlash: (folder: String, name: String)? {
        guard let slash = utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
        return (String(self[..<slash]), String(self[utf8.index(after: slash)...]))
    }
}
