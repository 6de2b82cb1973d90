/// Finds the known word that is closest to a misspelled word.
///
/// Uses the optimal string alignment distance, which counts insertions, deletions, replacements and swaps of adjacent
/// letters as one edit each.
package enum Spelling {
    /// Returns the closest candidate. Returns nil if the distance exceeds one third of the word's length (at least 1)
    /// for every candidate.
    static func nearest(to word: some StringProtocol, in candidates: [String]) -> String? {
        let letters = Array(word.lowercased().utf8)
        guard !letters.isEmpty, letters.count <= 64 else { return nil }
        let limit = max(1, letters.count / 3)
        var best: (distance: Int, word: String)?
        for candidate in candidates {
            let distance = distance(letters, Array(candidate.utf8))
            if distance <= limit, distance < best?.distance ?? .max { best = (distance, candidate) }
        }
        return best?.word
    }

    package static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        var beforeLast = [Int](repeating: 0, count: b.count + 1)
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [Int](repeating: i + 1, count: b.count + 1)
            for j in b.indices {
                let replaced = last[j] + (a[i] == b[j] ? 0 : 1)
                row[j + 1] = min(last[j + 1] + 1, row[j] + 1, replaced)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                    row[j + 1] = min(row[j + 1], beforeLast[j - 1] + 1)
                }
            }
            beforeLast = last
            last = row
        }
        return last[b.count]
    }
}
