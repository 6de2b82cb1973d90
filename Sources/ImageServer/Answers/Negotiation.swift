import PipelineSupport
package import Variants

/// Chooses the formats of an `auto` output from the request's `Accept` field.
package enum Negotiation {
    /// The formats that `auto` may choose.
    package static let offered: [ImageFormat] = [.jxl, .avif, .webp]

    /// Returns the formats in order of preference, according to the size of photographs at equal quality scores
    /// (docs/benchmarks.md). At the lowest effort, AVIF and WebP files are about the same size, and more clients
    /// support WebP.
    package static func preferred(_ effort: RenderEffort) -> [ImageFormat] {
        effort == .quick ? [.jxl, .webp, .avif] : [.jxl, .avif, .webp]
    }

    /// Returns the formats to choose from, best first. If empty, the output has the format family of the original.
    ///
    /// A format is chosen if `Accept` lists it with a weight above zero. Formats are ordered by descending weight, and
    /// formats of equal weight by the order of the setting. `*/*` and `image/*` select no format, because browsers send
    /// them in addition to the formats that they support. A member with a malformed weight is ignored. Source: RFC 9110
    /// §12.4.2 and §12.5.1.
    ///
    /// - Parameters:
    ///   - accept: All lines of the field, joined with commas, or nil if the request has no `Accept`.
    ///   - formats: The `auto` setting.
    static func formats(accept: String?, among formats: [ImageFormat]) -> [ImageFormat] {
        guard let accept else { return [] }
        let ranges = accept.split(separator: ",").compactMap(range)
        return formats.enumerated().map { index, format in
            (format, ranges.filter { $0.name == format.mediaType }.map(\.weight).max() ?? 0, index)
        }.filter { $0.1 > 0 }.sorted { ($1.1, $0.2) < ($0.1, $1.2) }.map(\.0)
    }

    /// Returns the name of a member in lowercase and its weight in thousandths, or nil if the member is malformed.
    private static func range(_ member: Substring) -> (name: String, weight: Int)? {
        let parts = member.split(separator: ";", omittingEmptySubsequences: false).map { $0.trimmingSpace() }
        guard let name = parts.first, name.contains("/") else { return nil }
        for part in parts.dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, pair[0] == "q" || pair[0] == "Q" else { continue }
            guard let weight = weight(pair[1]) else { return nil }
            return (name.lowercased(), weight)
        }
        return (name.lowercased(), 1000)
    }

    /// Returns a weight such as `0`, `0.5` or `1.000` in thousandths. A weight is at most 1 and has at most three
    /// decimals (RFC 9110 §12.4.2).
    private static func weight(_ text: Substring) -> Int? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts[0] == "0" || parts[0] == "1" else { return nil }
        let decimals = parts.count == 2 ? parts[1] : ""
        guard decimals.utf8.count <= 3, decimals.utf8.allSatisfy(\.isDigit) else { return nil }
        let padded = decimals + String(repeating: "0", count: 3 - decimals.utf8.count)
        guard let fraction = Int(padded), let whole = Int(parts[0]) else { return nil }
        return whole == 0 ? fraction : fraction == 0 ? 1000 : nil
    }
}
