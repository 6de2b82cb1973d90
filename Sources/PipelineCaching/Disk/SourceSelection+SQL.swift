extension SourceSelection {
    /// Returns an SQL condition on `column`, with values numbered from `first`.
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

extension SourceFilter {
    /// An SQL condition for rows with a column `source`.
    struct Condition {
        var sql: String
        var values: [SQLiteValue]

        /// The condition for variants made from an original that a matching source has had.
        var variants: String {
            """
            id IN (SELECT some.id FROM links CROSS JOIN variants AS some \
            ON \(DiskSchema.equal("some.original", "links.digest")) WHERE \(sql))
            """
        }
    }

    /// Returns a condition with values numbered from `first`. Returns nil if every source matches.
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
