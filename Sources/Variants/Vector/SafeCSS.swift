import PipelineSupport

/// Removes from style sheets everything that can load a resource or is not known to be harmless (CSS Syntax 3).
///
/// References stay if they lead to an element of the same document or contain a raster picture. Unknown functions and
/// other references become `none` or are removed, and unknown at-rules are removed. All other tokens are copied.
struct SafeCSS {
    private let css: [UInt8]
    private var at = 0
    private(set) var result: [UInt8] = []

    private static let functions: Set = [
        "abs", "acos", "asin", "atan", "atan2", "blur", "brightness", "calc", "circle", "clamp", "color", "color-mix",
        "conic-gradient", "contrast", "contrast-color", "cos", "cubic-bezier", "dir", "drop-shadow", "ellipse", "env",
        "exp", "format", "grayscale", "has", "hsl", "hsla", "hue-rotate", "hwb", "hypot", "icc-color", "inset",
        "invert", "is", "lab", "lang", "lch", "light-dark", "linear", "linear-gradient", "local", "log", "matrix",
        "matrix3d", "max", "min", "mod", "not", "nth-child", "nth-last-child", "nth-last-of-type", "nth-of-type",
        "oklab", "oklch", "opacity", "path", "perspective", "polygon", "pow", "progress", "radial-gradient", "ray",
        "rect", "rem", "repeating-conic-gradient", "repeating-linear-gradient", "repeating-radial-gradient", "rgb",
        "rgba", "rotate", "rotate3d", "rotatex", "rotatey", "rotatez", "round", "saturate", "scale", "scale3d",
        "scalex", "scaley", "scalez", "selector", "sepia", "shape", "sign", "sin", "skew", "skewx", "skewy", "sqrt",
        "steps", "style", "tan", "translate", "translate3d", "translatex", "translatey", "translatez", "var", "where",
        "xywh",
    ]
    private static let rules: Set = [
        "-webkit-keyframes", "container", "font-face", "keyframes", "layer", "media", "property", "scope", "supports",
    ]

    /// Returns the style sheet, the declarations, or the value of a property.
    static func text(_ css: [UInt8]) -> [UInt8] {
        // Nothing can be loaded without a function, an escape or an at-rule.
        guard css.contains(where: { "(\\@".utf8.contains($0) }) else { return css }
        var safe = SafeCSS(css: css)
        while safe.at < css.count { safe.readToken() }
        return safe.result
    }

    private init(css: [UInt8]) { self.css = css }

    private func byte(_ offset: Int) -> UInt8? { offset < css.count ? css[offset] : nil }

    private func matches(_ text: StaticString, _ offset: Int) -> Bool {
        offset + text.utf8CodeUnitCount <= css.count
            && (0..<text.utf8CodeUnitCount).allSatisfy { css[offset + $0] == text.utf8Start[$0] }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [9, 10, 12, 13, 32].contains(byte) }

    private static func isName(_ byte: UInt8) -> Bool {
        byte >= 0x80 || byte.isDigit || (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7A || byte == 0x2D || byte == 0x5F
    }

    /// Copies the next token, or what replaces it.
    private mutating func readToken() {
        let start = at
        switch css[at] {
        case UInt8(ascii: "/") where matches("/*", at):
            skipComment()
            // A space would be a combinator of a selector.
            result += "/**/".utf8
        case 0x22, 0x27:
            _ = string()
            result += css[start..<at]
        case UInt8(ascii: "@"):
            at += 1
            guard let name = identifier() else { return result.append(UInt8(ascii: "@")) }
            if Self.rules.contains(name) { return result += css[start..<at] }
            skipRule()
            // Without a space, the tokens before and after the rule could form a different one, such as `/*`.
            result.append(0x20)
        case let byte where Self.isName(byte) || byte == UInt8(ascii: "\\"):
            guard let name = identifier() else {
                at = start + 1
                return result.append(byte)
            }
            guard self.byte(at) == UInt8(ascii: "(") else { return result += css[start..<at] }
            at += 1
            if name == "url" { return readReference() }
            if Self.functions.contains(name) { return result += css[start..<at] }
            skipBlock()
            addNone()
        default:
            at += 1
            result.append(css[start])
        }
    }

    /// Reads a name, a number or a dimension. Returns its text in lowercase with escapes resolved.
    private mutating func identifier() -> String? {
        var name: [UInt8] = []
        while let byte = byte(at) {
            if Self.isName(byte) {
                name.append(byte)
                at += 1
            } else if byte == UInt8(ascii: "\\"), let character = escaped() {
                name += character
            } else {
                break
            }
        }
        return name.isEmpty ? nil : String(decoding: name, as: UTF8.self).lowercased()
    }

    /// Reads an escape. Returns nil if a line break follows the backslash, which is not an escape.
    private mutating func escaped() -> [UInt8]? {
        guard let next = byte(at + 1) else {
            at += 1
            return []
        }
        if next == 10 || next == 12 || next == 13 { return nil }
        at += 1
        var digits = ""
        while digits.count < 6, let byte = byte(at), let scalar = Optional(Unicode.Scalar(byte)),
            Character(scalar).isHexDigit
        {
            digits.unicodeScalars.append(scalar)
            at += 1
        }
        guard !digits.isEmpty else {
            at += 1
            return [next]
        }
        if matches("\r\n", at) { at += 2 } else if let space = byte(at), Self.isSpace(space) { at += 1 }
        let scalar = UInt32(digits, radix: 16).flatMap { $0 == 0 ? nil : Unicode.Scalar($0) } ?? "\u{FFFD}"
        return Array(String(Character(scalar)).utf8)
    }

    private mutating func skipComment() {
        at += 2
        while at < css.count, !matches("*/", at) { at += 1 }
        at = min(css.count, at + 2)
    }

    /// Reads a string. Returns its text, or nil if it is not closed in its line.
    private mutating func string() -> [UInt8]? {
        let quote = css[at]
        var text: [UInt8] = []
        at += 1
        while let byte = byte(at) {
            if byte == quote {
                at += 1
                return text
            }
            if byte == 10 || byte == 12 || byte == 13 { return nil }
            if byte == UInt8(ascii: "\\") {
                if let character = escaped() { text += character } else { at += matches("\\\r\n", at) ? 3 : 2 }
            } else {
                text.append(byte)
                at += 1
            }
        }
        return text
    }

    /// Skips to the end of a block or function after its opening bracket.
    private mutating func skipBlock() {
        var closing: [UInt8] = [UInt8(ascii: ")")]
        while at < css.count, !closing.isEmpty { skipToken(&closing) }
    }

    /// Skips an at-rule, up to its `;`, the end of its block, or the end of the block around it.
    private mutating func skipRule() {
        var closing: [UInt8] = []
        while let byte = byte(at) {
            if closing.isEmpty, byte == UInt8(ascii: "}") { return }
            let hadBlock = closing == [UInt8(ascii: "}")]
            skipToken(&closing)
            if closing.isEmpty, byte == UInt8(ascii: ";") || hadBlock { return }
        }
    }

    private mutating func skipToken(_ closing: inout [UInt8]) {
        let byte = css[at]
        switch byte {
        case UInt8(ascii: "/") where matches("/*", at): return skipComment()
        case 0x22, 0x27:
            _ = string()
            return
        case UInt8(ascii: "\\"):
            if escaped() == nil { at += 1 }
            return
        case UInt8(ascii: "("): closing.append(UInt8(ascii: ")"))
        case UInt8(ascii: "["): closing.append(UInt8(ascii: "]"))
        case UInt8(ascii: "{"): closing.append(UInt8(ascii: "}"))
        default: if byte == closing.last { closing.removeLast() }
        }
        at += 1
    }

    /// Copies a reference whose `url(` has been read, if it may stay.
    private mutating func readReference() {
        while let byte = byte(at), Self.isSpace(byte) { at += 1 }
        var target: [UInt8]? = []
        if byte(at) == 0x22 || byte(at) == 0x27 {
            target = string()
            let end = at
            skipBlock()
            // Modifiers, which no browser supports, may follow the string.
            if css[end..<max(end, at - 1)].contains(where: { !Self.isSpace($0) }) { target = nil }
        } else {
            target = unquoted()
        }
        guard let target, let kept = SVGReference.inStyle(target) else { return addNone() }
        let isPlain = kept.allSatisfy { Self.isName($0) && $0 < 0x80 || "#:;,/+=.%".utf8.contains($0) }
        result += "url(".utf8
        if isPlain {
            result += kept
        } else {
            result.append(0x22)
            for byte in kept {
                switch byte {
                case 0x22, UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
                // A semicolon would end a value in the list of an animation.
                case 10, 12, 13, UInt8(ascii: ";"): result += "\\\(String(byte, radix: 16)) ".utf8
                default: result.append(byte)
                }
            }
            result.append(0x22)
        }
        result.append(UInt8(ascii: ")"))
    }

    /// Replaces a reference or function. If more of the value follows, such as the fallback color of a reference, only
    /// the rest stays.
    private mutating func addNone() {
        let next = css[at...].first { !Self.isSpace($0) }
        let endsValue = next.map { ";,)}!".utf8.contains($0) } ?? true
        // The tokens before and after must not form a different one.
        result += (endsValue ? "none" : " ").utf8
    }

    /// Reads the rest of a reference without quotes. Returns nil if it is malformed, and then skips what a browser
    /// skips.
    private mutating func unquoted() -> [UInt8]? {
        var (target, isValid): ([UInt8], Bool) = ([], true)
        while let byte = byte(at) {
            switch byte {
            case UInt8(ascii: ")"):
                at += 1
                return isValid ? target : nil
            case UInt8(ascii: "\\"):
                if let character = escaped() { target += character } else { (at, isValid) = (at + 1, false) }
            case 0x22, 0x27, UInt8(ascii: "("), 0...8, 11, 14...31, 127: (at, isValid) = (at + 1, false)
            case let byte where Self.isSpace(byte):
                while let byte = self.byte(at), Self.isSpace(byte) { at += 1 }
                if at < css.count, css[at] != UInt8(ascii: ")") { isValid = false }
            default:
                target.append(byte)
                at += 1
            }
        }
        return isValid ? target : nil
    }
}
