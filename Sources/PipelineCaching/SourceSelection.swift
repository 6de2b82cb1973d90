/// Selects sources by prefixes of the names that they are stored under.
///
/// A stored name is the normalized URL, `file:` followed by the absolute path, or `id:` followed by the caller's own
/// identifier.
package struct SourceSelection: Sendable, Hashable {
    /// The prefixes. A name is selected if it begins with one of them, compared byte by byte. There are no wildcards.
    package let prefixes: [String]

    /// Selects every stored name that begins with one of these prefixes, such as `photos:2026/`. Empty prefixes are
    /// ignored.
    package init(prefixes: [String]) { self.prefixes = prefixes.filter { !$0.isEmpty } }

    /// Selects the http and https URLs of a host, on any port. An IPv6 address is passed without brackets.
    package init(normalizedHost host: String) {
        let name = host.contains(":") ? "[\(host)]" : host
        // In a normalized URL, the host is followed by a slash or by the colon before the port, so no other host has
        // these prefixes.
        self.init(prefixes: ["http", "https"].flatMap { ["\($0)://\(name)/", "\($0)://\(name):"] })
    }

    /// Returns whether a stored name is selected.
    package func contains(_ name: String) -> Bool {
        prefixes.contains { name.utf8.starts(with: $0.utf8) }
    }

    /// The half-open range of names for each prefix, for searching an index. The upper bound consists of bytes, because
    /// it may not be valid UTF-8.
    var ranges: [(from: String, below: [UInt8])] {
        prefixes.map { prefix in
            var below = Array(prefix.utf8)
            // This cannot overflow, because UTF-8 never contains the byte 0xFF.
            below[below.count - 1] += 1
            return (prefix, below)
        }
    }
}

/// A filter for sources: a source matches if it satisfies every criterion that is set.
package struct SourceFilter: Sendable, Hashable {
    /// A case-sensitive pattern for the complete stored name. `*` matches any text, including slashes, `?` matches one
    /// character, and `[abc]` matches one of several characters.
    package var pattern: String?
    /// The prefixes of names that match.
    package var selection: SourceSelection?

    /// Creates a filter that matches every source.
    package init() {}
}
