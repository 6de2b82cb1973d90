import Variants

/// Finds the known name that a mistyped one most likely stands for.
enum NearestName {
    /// The closest of `names` by edit distance, ignoring case and counting a swap of neighbouring letters as one edit;
    /// nil if even that differs in more than a third of its letters (two are always allowed).
    static func of(_ word: String, in names: some Sequence<String>) -> String? {
        let wanted = Array(word.lowercased().utf8.prefix(64))
        var best: (name: String, distance: Int)?
        for name in names {
            let candidate = Array(name.lowercased().utf8)
            let found = Spelling.distance(wanted, candidate)
            if found <= max(2, candidate.count / 3), best.map({ found < $0.distance }) ?? true { best = (name, found) }
        }
        if let best { return best.name }
        // The last component alone ("slots" for "fetch.slots") is many edits away, yet unambiguous enough.
        return names.first { $0.lowercased().hasSuffix("." + word.lowercased()) }
    }

    /// "; did you mean `x`?", or an empty string.
    static func hint(_ word: String, in names: some Sequence<String>) -> String {
        of(word, in: names).map { "; did you mean `\($0)`?" } ?? ""
    }
}
