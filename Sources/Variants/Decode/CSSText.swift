/// Splits style sheets into rules and declarations (CSS Syntax 3). It is safe for any bytes and takes linear time.
enum CSSText {
    /// Returns the offset of the first byte outside strings, brackets and blocks that is in `stops`. Returns the length
    /// of the text if there is no such byte.
    static func end(_ css: [UInt8], _ start: Int, _ stops: StaticString) -> Int {
        let stops = UnsafeBufferPointer(start: stops.utf8Start, count: stops.utf8CodeUnitCount)
        var (at, depth) = (start, 0)
        while at < css.count {
            if depth == 0, stops.contains(css[at]) { return at }
            switch css[at] {
            case 0x22, 0x27: at = endOfString(css, at)
            case UInt8(ascii: "\\"): at += 2
            case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"): (at, depth) = (at + 1, depth + 1)
            case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): (at, depth) = (at + 1, max(0, depth - 1))
            default: at += 1
            }
        }
        return css.count
    }

    private static func endOfString(_ css: [UInt8], _ start: Int) -> Int {
        var at = start + 1
        while at < css.count, css[at] != css[start] { at += css[at] == UInt8(ascii: "\\") ? 2 : 1 }
        return min(css.count, at + 1)
    }

    static func withoutComments(_ css: [UInt8]) -> [UInt8] {
        var (result, at): ([UInt8], Int) = ([], 0)
        while at < css.count {
            var end = at + 1
            if css[at...].starts(with: "/*".utf8) {
                end = at + 2
                while end < css.count, !css[end...].starts(with: "*/".utf8) { end += 1 }
                end = min(css.count, end + 2)
                result.append(0x20)
            } else {
                if css[at] == 0x22 || css[at] == 0x27 { end = endOfString(css, at) }
                result += css[at..<end]
            }
            at = end
        }
        return result
    }

    /// Returns the style rules and at-rules with the contents of their blocks.
    static func rules(_ css: [UInt8]) -> [(prelude: String, block: [UInt8])] {
        var (result, at): ([(String, [UInt8])], Int) = ([], 0)
        while at < css.count {
            let open = end(css, at, "{;")
            let hasBlock = open < css.count && css[open] == UInt8(ascii: "{")
            let close = hasBlock ? end(css, open + 1, "}") : open
            result.append((text(css[at..<open]), hasBlock ? Array(css[(open + 1)..<close]) : []))
            at = close + 1
        }
        return result
    }

    /// Returns the names and values of declarations without `!important`.
    static func declarations(_ block: [UInt8]) -> [(name: String, value: String)] {
        var (result, at): ([(String, String)], Int) = ([], 0)
        while at < block.count {
            let (colon, stop) = (end(block, at, ":;"), end(block, at, ";"))
            if colon < stop {
                let value = text(block[(colon + 1)..<stop])
                result.append((text(block[at..<colon]), value.replacing("!important", with: "")))
            }
            at = stop + 1
        }
        return result
    }

    /// Returns the lowercased names before opening parentheses.
    static func functions(_ css: String) -> Set<String> {
        let parts = css.utf8.contains(UInt8(ascii: "(")) ? css.lowercased().split(separator: "(").dropLast() : []
        func isOfName(_ character: Character) -> Bool { character.isASCII && character.isLetter || character == "-" }
        return Set(parts.map { part in String(part.reversed().prefix(while: isOfName).reversed()) })
    }

    /// Returns the text without leading or trailing white space.
    static func text(_ css: ArraySlice<UInt8>) -> String {
        let text = String(decoding: css, as: UTF8.self)
        let from = text.firstIndex { !$0.isWhitespace } ?? text.endIndex
        let last = text.lastIndex { !$0.isWhitespace }.map(text.index(after:)) ?? from
        return String(text[from..<last])
    }
}
