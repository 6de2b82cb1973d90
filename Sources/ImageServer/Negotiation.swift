package import Variants

/// Chooses the formats of an `auto` output from what the client accepts.
package enum Negotiation {
    /// Formats that may be offered.
    package static let offered: [ImageFormat] = [.jxl, .avif, .webp]

    /// The order of preference, by the bytes that photographs take at equal scores (docs/benchmarks.md). At the least
    /// effort, AVIF and WebP take about as many, and more clients show WebP.
    package static func preferred(_ effort: RenderEffort) -> [ImageFormat] {
        effort == .quick ? [.jxl, .webp, .avif] : [.jxl, .avif, .webp]
    }

    /// The formats to make, best first; empty keeps the original's family.
    ///
    /// A format counts if `Accept` names it with a weight above zero; the highest weight comes first, among equals the order
    /// of the setting. `*/*` and `image/*` name nothing: browsers send them beside what they can show. A member with a
    /// malformed weight is passed over.
    /// Source: RFC 9110 §12.4.2 and §12.5.1.
    ///
    /// - Parameters:
    ///   - accept: all lines of the field, joined by comma; nil without one.
    ///   - formats: the setting `auto`.
    static func formats(accept: String?, among formats: [ImageFormat]) -> [ImageFormat] {
        guard let accept else { return [] }
        let ranges = accept.split(separator: ",").compactMap(range)
        return formats.enumerated().map { index, format in
            (format, ranges.filter { $0.name == format.mediaType }.map(\.weight).max() ?? 0, index)
        }.filter { $0.1 > 0 }.sorted { ($1.1, $0.2) < ($0.1, $1.2) }.map(\.0)
    }

    /// A member's name in lower case and its weight in thousandths; nil if it is malformed.
    private static func range(_ member: Substring) -> (name: String, weight: Int)? {
        let parts = member.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
        guard let name = parts.first, name.contains("/") else { return nil }
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, pair[0] == "q" || pair[0] == "Q" else { continue }
            guard let weight = weight(pair[1]) else { return nil }
            return (name.lowercased(), weight)
        }
        return (name.lowercased(), 1000)
    }

    /// `0`, `0.5`, `1.000`: at most three decimals, at most 1 (RFC 9110 §12.4.2).
    private static func weight(_ text: Substring) -> Int? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts[0] == "0" || parts[0] == "1" else { return nil }
        let decimals = parts.count == 2 ? parts[1] : ""
        guard decimals.utf8.count <= 3, decimals.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let padded = decimals + String(repeating: "0", count: 3 - decimals.utf8.count)
        guard let fraction = Int(padded), let whole = Int(parts[0]) else { return nil }
        return whole == 0 ? fraction : fraction == 0 ? 1000 : nil
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
