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

    /// The same in SQL: a condition on `column`, its values numbered from `first`.
    func condition(_ column: String, first: Int) -> (sql: String, values: [SQLiteValue]) {
        var terms: [String] = []
        var values: [SQLiteValue] = []
        for range in ranges {
            let at = first + values.count
            terms.append("(\(column) >= ?\(at) AND \(column) < CAST(?\(at + 1) AS TEXT))")
            values += [.text(range.from), .blob(range.below)]
        }
        return (terms.isEmpty ? "0" : "(" + terms.joined(separator: " OR ") + ")", values)
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

    /// The same in SQL, for rows with a column `source`.
    struct Condition {
        var sql: String
        var values: [SQLiteValue]

        /// A condition on `id` of variants: that they were made of what such a source has had.
        var variants: String {
            let bits = DiskSchema.variantBits
            return """
                id IN (SELECT some.id FROM links CROSS JOIN variants AS some ON some.id >= links.original << \(bits) \
                AND some.id < (links.original + 1) << \(bits) WHERE \(sql))
                """
        }
    }

    /// Values are numbered from `first`; nil where every source fits.
    func condition(_ column: String, first: Int) -> Condition? {
        var terms: [String] = []
        var values: [SQLiteValue] = []
        if let pattern {
            terms.append("\(column) GLOB ?\(first)")
            values.append(.text(pattern))
        }
        if let selection {
            let (sql, more) = selection.condition(column, first: first + values.count)
            terms.append(sql)
            values += more
        }
        return terms.isEmpty ? nil : Condition(sql: terms.joined(separator: " AND "), values: values)
    }
}
