/// Finds our spelling of a step written as other tools write it: `resize:300*200`, `w=300`, `rotate:-90`, `quality:80`.
enum FamiliarSpelling {
    /// Other tools' names for our steps, and a flag to append to the arguments.
    private static let names: [String: (token: String, flag: String?)] = [
        "resize": ("thumbnail", nil), "size": ("thumbnail", nil), "s": ("thumbnail", nil), "thumb": ("thumbnail", nil),
        "fit": ("thumbnail", nil), "contain": ("thumbnail", nil), "fill": ("thumbnail", "fill"),
        "cover": ("thumbnail", "fill"), "pad": ("thumbnail", "pad"), "round": ("rounded-mask", nil),
        "rounded": ("rounded-mask", nil), "radius": ("rounded-mask", nil), "gray": ("grayscale", nil),
        "grey": ("grayscale", nil), "mono": ("grayscale", nil), "bg": ("background", nil), "rot": ("rotate", nil),
        "quality": ("original", nil), "q": ("original", nil),
    ]

    /// A step that parses, in place of one that did not; nil if no rule leads to one.
    static func suggestion(for step: Substring) -> String? {
        guard step.utf8.count <= 200, let candidate = rewritten(step), candidate != step else { return nil }
        return (try? Recipe(candidate)) == nil ? nil : candidate
    }

    private static func rewritten(_ step: Substring) -> String? {
        guard let end = step.firstIndex(where: { $0 == ":" || $0 == "=" }) else {
            return names[step.lowercased()].map(\.token)
        }
        let token = step[..<end].lowercased()
        let arguments = step[step.index(after: end)...].split(separator: ":", omittingEmptySubsequences: false)
            .map { tidied($0, of: token) }
        let text = arguments.joined(separator: ":")
        switch token {
        case "w", "width": return "thumbnail:\(text)x"
        case "h", "height": return "thumbnail:x\(text)"
        case "f", "format", "fm", "output": return text
        default:
            guard let (name, flag) = names[token] else { return "\(token):\(text)" }
            return "\(name):\(text)" + (flag.map { ":" + $0 } ?? "")
        }
    }

    /// `300*200` and `300×200` → `300x200`; `20px` → `20`; `#fff` → `fff`; `q=80` → `80`; a negative angle → clockwise.
    private static func tidied(_ argument: Substring, of token: String) -> String {
        var text = argument[...]
        for prefix in ["#", "q=", "quality=", "q"] where text.hasPrefix(prefix) { text = text.dropFirst(prefix.count) }
        if text.hasSuffix("px") { text = text.dropLast(2) }
        if token.hasPrefix("rot"), text.hasPrefix("-"), let angle = PlainNumber.parse(text.dropFirst()) {
            let rest = angle - (angle / 360).rounded(.down) * 360
            return PlainNumber.text(rest == 0 ? 0 : 360 - rest)
        }
        guard let first = text.first, first.isNumber else { return String(text) }
        return String(text.map { "*×X".contains($0) ? "x" : $0 })
    }
}
