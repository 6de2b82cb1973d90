import Variants

/// Finds the known name that is most similar to a mistyped name.
enum NearestName {
    /// Returns the name with the smallest edit distance. The comparison is case-insensitive, and swapping two adjacent
    /// letters counts as one edit. Returns nil if more than a third of the letters differ (two edits are always
    /// allowed).
    static func of(_ word: String, in names: some Sequence<String>) -> String? {
        let wanted = Array(word.lowercased().utf8.prefix(64))
        var best: (name: String, distance: Int)?
        for name in names {
            let candidate = Array(name.lowercased().utf8)
            let found = Spelling.distance(wanted, candidate)
            if found <= max(2, candidate.count / 3), best.map({ found < $0.distance }) ?? true { best = (name, found) }
        }
        if let best { return best.name }
        // A last component without its prefix ("slots" for "fetch.slots") differs by many edits but is unambiguous
        // enough.
        return names.first { $0.lowercased().hasSuffix("." + word.lowercased()) }
    }

    /// Returns "; did you mean `x`?", or an empty string if no name is similar.
    static func hint(_ word: String, in names: some Sequence<String>) -> String {
        of(word, in: names).map { "; did you mean `\($0)`?" } ?? ""
    }
}
