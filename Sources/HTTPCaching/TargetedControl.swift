// Targeted fields such as CDN-Cache-Control (RFC 9213) are dictionaries of structured fields (RFC 8941 §3.2):
//
//     max-age=600, no-cache="set-cookie", must-revalidate, x=(1 2);p=3
//
// Each member is a cache directive: a lone `key` is a directive without argument, an integer is its seconds, a string
// or token its argument. Parameters are ignored; a later member replaces an earlier one with the same key. If anything
// does not parse, the whole field counts as absent (RFC 9213 §2.1).

/// The directives that govern a response in this cache.
package struct GoverningDirectives: Sendable, Hashable {
    package let control: CacheControl
    /// The field they come from, in lower case: `cache-control` or a targeted one.
    package let fieldName: String

    /// Whether a targeted field governs in place of `Cache-Control` and `Expires`.
    package var isTargeted: Bool { fieldName != "cache-control" }

    /// Uses the first of the configuration's targeted fields that is present, valid and not empty, else `Cache-Control`
    /// (RFC 9213 §2.2). A private cache ignores targeted fields.
    package init(fields: [HeaderField], configuration: CachingConfiguration) {
        if !configuration.isPrivate {
            for name in configuration.targetedFields {
                guard let value = fields.combined(name) else { continue }
                if let directives = TargetedControl.directives(in: value), !directives.isEmpty {
                    control = CacheControl(directives: directives)
                    fieldName = FieldLines.lowercased(name)
                    return
                }
            }
        }
        control = CacheControl(fields: fields)
        fieldName = "cache-control"
    }
}

/// Parses the value of a targeted field.
enum TargetedControl {
    /// The members as directives; nil if the value is not a dictionary.
    static func directives(in value: String) -> [CacheControl.Directive]? {
        var reader = Reader(bytes: Array(value.utf8))
        return reader.dictionary()
    }

    /// Directives whose argument is an integer; an argument of another type is kept in a form that never parses.
    private static let integers: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    /// A recursive-descent parser for the grammar of RFC 8941 §4.2.2.
    private struct Reader {
        enum Item {
            case number(String)
            case text(String)
            case flag(Bool)
            case other
        }

        let bytes: [UInt8]
        var index = 0

        var current: UInt8? { index < bytes.count ? bytes[index] : nil }

        mutating func take(_ byte: Character) -> Bool {
            guard current == byte.asciiValue else { return false }
            index += 1
            return true
        }

        mutating func skip(tabs: Bool) {
            while let byte = current, byte == 0x20 || (tabs && byte == 0x09) { index += 1 }
        }

        mutating func dictionary() -> [CacheControl.Directive]? {
            var found: [CacheControl.Directive] = []
            skip(tabs: false)
            while current != nil {
                guard let name = key() else { return nil }
                var item = Item.flag(true)
                if take("=") {
                    guard let given = current == UInt8(ascii: "(") ? innerList() : bareItem() else { return nil }
                    item = given
                }
                guard parameters() else { return nil }
                found.removeAll { $0.name == name }
                if let directive = directive(name, item) { found.append(directive) }
                // No real policy has that many, and the search for earlier members of the name is linear each time.
                guard found.count <= 100 else { return nil }
                skip(tabs: true)
                guard current != nil else { break }
                guard take(",") else { return nil }
                skip(tabs: true)
                if current == nil { return nil }  // a trailing comma
            }
            return found
        }

        func directive(_ name: String, _ item: Item) -> CacheControl.Directive? {
            switch item {
            case .flag(true): CacheControl.Directive(name: name, argument: nil)
            case .flag(false): nil
            case .number(let digits): CacheControl.Directive(name: name, argument: digits)
            case .text(let text):
                CacheControl.Directive(name: name, argument: integers.contains(name) ? "\"\(text)\"" : text)
            case .other: CacheControl.Directive(name: name, argument: "()")
            }
        }

        mutating func key() -> String? {
            guard let first = current, (first >= 0x61 && first <= 0x7A) || first == UInt8(ascii: "*") else {
                return nil
            }
            let start = index
            while let byte = current {
                switch byte {
                case 0x61...0x7A, 0x30...0x39, UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "*"):
                    index += 1
                default: return String(decoding: bytes[start..<index], as: UTF8.self)
                }
            }
            return String(decoding: bytes[start..<index], as: UTF8.self)
        }

        /// Skips `;key` and `;key=item`.
        mutating func parameters() -> Bool {
            while take(";") {
                skip(tabs: false)
                guard key() != nil else { return false }
                if take("="), bareItem() == nil { return false }
            }
            return true
        }

        mutating func innerList() -> Item? {
            guard take("(") else { return nil }
            while current != nil {
                skip(tabs: false)
                if take(")") { return .other }
                guard bareItem() != nil, parameters() else { return nil }
                guard current == 0x20 || current == UInt8(ascii: ")") else { return nil }
            }
            return nil
        }

        mutating func bareItem() -> Item? {
            switch current ?? 0 {
            case UInt8(ascii: "-"), 0x30...0x39: number()
            case UInt8(ascii: "\""): string()
            case UInt8(ascii: "?"): flag()
            case UInt8(ascii: ":"): byteSequence()
            case 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "*"): token()
            default: nil
            }
        }

        /// At most 15 digits, or 12 before and 3 after a decimal point.
        mutating func number() -> Item? {
            let start = index
            _ = take("-")
            let whole = digits()
            guard (1...15).contains(whole) else { return nil }
            if take(".") {
                guard whole <= 12, (1...3).contains(digits()) else { return nil }
            }
            return .number(String(decoding: bytes[start..<index], as: UTF8.self))
        }

        mutating func digits() -> Int {
            let start = index
            while let byte = current, byte >= 0x30, byte <= 0x39 { index += 1 }
            return index - start
        }

        mutating func string() -> Item? {
            index += 1
            var text: [UInt8] = []
            while let byte = current {
                index += 1
                switch byte {
                case UInt8(ascii: "\""): return .text(String(decoding: text, as: UTF8.self))
                case UInt8(ascii: "\\"):
                    guard let escaped = current, escaped == 0x22 || escaped == 0x5C else { return nil }
                    text.append(escaped)
                    index += 1
                case 0x20..<0x7F: text.append(byte)
                default: return nil
                }
            }
            return nil
        }

        mutating func flag() -> Item? {
            index += 1
            if take("1") { return .flag(true) }
            return take("0") ? .flag(false) : nil
        }

        mutating func byteSequence() -> Item? {
            index += 1
            while let byte = current {
                index += 1
                switch byte {
                case UInt8(ascii: ":"): return .other
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
                    continue
                default: return nil
                }
            }
            return nil
        }

        mutating func token() -> Item? {
            let start = index
            index += 1
            while let byte = current, byte == UInt8(ascii: ":") || byte == UInt8(ascii: "/") || isTokenByte(byte) {
                index += 1
            }
            return .text(String(decoding: bytes[start..<index], as: UTF8.self))
        }

        func isTokenByte(_ byte: UInt8) -> Bool { FieldLines.isToken(String(decoding: [byte], as: UTF8.self)) }
    }
}
