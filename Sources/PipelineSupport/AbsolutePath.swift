import Glibc

/// The absolute path, with `.` and `..` resolved by name; symbolic links are left as they are.
package func absolutePath(_ path: String) -> String {
    var full = path
    if !path.hasPrefix("/") {
        guard let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        full = String(cString: folder) + "/" + path
    }
    var parts: [Substring] = []
    for part in full.split(separator: "/") where part != "." {
        if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
}
