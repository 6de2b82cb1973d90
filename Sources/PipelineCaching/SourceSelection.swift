/// Selects sources by prefixes of the names they are stored under.
///
/// A stored name is the normalised URL, `file:` and the absolute path, or `id:` and the caller's own identifier.
public struct SourceSelection: Sendable, Hashable {
    /// Every selected name starts with one of these, compared byte by byte; there are no wildcards.
    public let prefixes: [String]

    /// Selects every stored name that starts with one of these, such as `photos:2026/`; empty prefixes are ignored.
    public init(prefixes: [String]) { self.prefixes = prefixes.filter { !$0.isEmpty } }

    /// Selects the http and https URLs of a host, on any port. An IPv6 address is passed without brackets.
    package init(normalisedHost host: String) {
        let name = host.contains(":") ? "[\(host)]" : host
        // In a normalised URL a slash, or the colon before the port, follows the host: no other host has such a prefix.
        self.init(prefixes: ["http", "https"].flatMap { ["\($0)://\(name)/", "\($0)://\(name):"] })
    }

    /// Whether a stored name is selected.
    public func contains(_ name: String) -> Bool {
        prefixes.contains { name.utf8.starts(with: $0.utf8) }
    }

    /// For each prefix, the half-open range of names that start with it, for searching an index. The upper bound is
    /// bytes, since it need not be valid UTF-8.
    var ranges: [(from: String, below: [UInt8])] {
        prefixes.map { prefix in
            var below = Array(prefix.utf8)
            // No overflow: UTF-8 never contains the byte 0xFF.
            below[below.count - 1] += 1
            return (prefix, below)
        }
    }
}

/// A filter for sources: a source matches if it satisfies every criterion that is set.
public struct SourceFilter: Sendable, Hashable {
    /// A case-sensitive pattern for the whole stored name: `*` matches any text, slashes included, `?` one character,
    /// and `[abc]` one of several.
    public var pattern: String?
    /// Matches names by prefix.
    public var selection: SourceSelection?

    /// Matches every source.
    public init() {}
}
