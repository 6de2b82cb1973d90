extension Recipe {
    /// A plain sentence for each step, in the order in which the steps are applied. Load options with default values
    /// are omitted.
    public var explanation: [String] {
        var sentences: [String] = []
        if !orients { sentences.append("Leaves the picture as stored, whatever its EXIF orientation.") }
        if keepsProfile { sentences.append("Keeps the color space and its profile.") }
        switch frames {
        case .first: break
        case .all: sentences.append("Decodes all frames.")
        case .count(let count): sentences.append("Decodes the first \(count) frames.")
        }
        if page > 1 { sentences.append("Decodes page \(page).") }
        sentences += steps.map(\.explanation)
        if let output { sentences.append(output.explanation(keepsProfile: keepsProfile)) }
        return sentences
    }
}

extension OutputSpecification {
    /// Returns a sentence that names the output format and the options that differ from their defaults.
    func explanation(keepsProfile: Bool) -> String {
        let name =
            switch kind {
            case .format(let format): format.title
            case .auto: "the best format that the client accepts"
            case .original: "the original's format"
            }
        var parts = ["Writes \(name)"]
        if isLossless { parts.append("lossless") }
        if transcodes { parts.append("keeping the data of a JPEG") }
        if isProgressive { parts.append("progressive") }
        let best = quality.map { "quality \($0)" }
        if let score {
            let budget = maxBytes.map { " if it fits \($0) bytes, otherwise the best quality that fits" } ?? ""
            parts.append("the smallest file that reaches a score of \(score)" + budget)
        } else if let maxBytes {
            parts.append("\(best.map { "at most \($0)" } ?? "the best quality") that fits \(maxBytes) bytes")
        } else if let best {
            parts.append(best)
        }
        if chroma != .auto { parts.append("\(chroma.rawValue) chroma resolution") }
        if let effort { parts.append("effort \(effort) of 9") }
        let kept = (keep ?? .copyright).union(keepsProfile ? .icc : [])
        if kept != .copyright { parts.append("keeping \(kept.isEmpty ? "no metadata" : kept.text)") }
        return parts.joined(separator: ", ") + "."
    }
}
