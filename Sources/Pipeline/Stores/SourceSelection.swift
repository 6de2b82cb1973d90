/// Many sources at once, by how the names they are stored under begin.
///
/// A stored name is the normalised URL, `file:` and the absolute path, or `id:` and the caller's own identifier.
public struct SourceSelection: Sendable, Hashable {
    /// One of these begins a name; compared byte by byte, no character stands for others.
    let prefixes: [String]

    /// Every name that begins with one of these, none of which is empty.
    init(prefixes: [String]) { self.prefixes = prefixes.filter { !$0.isEmpty } }

    /// http and https URLs of a host, whatever their port. An IPv6 address comes without brackets.
    init(normalisedHost host: String) {
        let name = host.contains(":") ? "[\(host)]" : host
        // In a normalised URL a host ends with a slash or the colon before its port: no other host begins like this.
        self.init(prefixes: ["http", "https"].flatMap { ["\($0)://\(name)/", "\($0)://\(name):"] })
    }

    func contains(_ name: String) -> Bool {
        prefixes.contains { name.utf8.starts(with: $0.utf8) }
    }

    /// For each beginning the names from the first up to, and without, the second: ranges that an index can be searched
    /// for. Bytes, since the second need not be text.
    var ranges: [(from: String, below: [UInt8])] {
        prefixes.map { prefix in
            var below = Array(prefix.utf8)
            // UTF-8 holds no byte 0xFF.
            below[below.count - 1] += 1
            return (prefix, below)
        }
    }
}

/// Which sources something concerns: all of those that fit every part that is given.
public struct SourceFilter: Sendable, Hashable {
    /// A pattern for the whole stored name, upper and lower case apart: `*` stands for any text (slashes too), `?` for one
    /// character, `[abc]` for one of several.
    public var pattern: String?
    /// Names that begin as these do.
    public var selection: SourceSelection?

    public init() {}

    /// Whether every source fits.
    var isEmpty: Bool { pattern == nil && selection == nil }
}
