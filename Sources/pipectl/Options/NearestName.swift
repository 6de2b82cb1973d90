/// Finds the known name that a mistyped one most likely stands for.
enum NearestName {
    /// The closest of `names` by edit distance, ignoring case and counting a swap of neighbouring letters as one edit;
    /// nil if even that differs in more than a third of its letters (two are always allowed).
    static func of(_ word: String, in names: some Sequence<String>) -> String? {
        let wanted = Array(word.lowercased().utf8.prefix(64))
        var best: (name: String, distance: Int)?
        for name in names {
            let candidate = Array(name.lowercased().utf8)
            let found = distance(wanted, candidate)
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

    /// The optimal string alignment distance.
    static func distance(_ first: [UInt8], _ second: [UInt8]) -> Int {
        if first.isEmpty || second.isEmpty { return max(first.count, second.count) }
        var before = [Int](repeating: 0, count: second.count + 1)
        var previous = Array(0...second.count)
        for row in 1...first.count {
            var current = [Int](repeating: row, count: second.count + 1)
            for column in 1...second.count {
                let change = first[row - 1] == second[column - 1] ? 0 : 1
                var value = min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + change)
                if row > 1, column > 1, first[row - 1] == second[column - 2], first[row - 2] == second[column - 1] {
                    value = min(value, before[column - 2] + 1)
                }
                current[column] = value
            }
            (before, previous) = (previous, current)
        }
        return previous[second.count]
    }
}
