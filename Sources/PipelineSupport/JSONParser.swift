/// A JSON value. Objects keep their members in the order in which they were written.
package enum JSONValue: Sendable, Hashable {
    package struct Member: Sendable, Hashable {
        package var name: String
        package var value: JSONValue

        package init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    case null
    case bool(Bool)
    case int(Int)
    case double(Double)
    case string(String)
    case list([JSONValue])
    case object([Member])
}

/// Parses a JSON text (RFC 8259).
///
/// The parser is strict: it rejects comments, trailing commas, bytes after the value, duplicate names, and nesting
/// deeper than 64. Numbers that fit in an `Int` and have no fraction or exponent become `.int`, and other numbers
/// become `.double`. Foundation is not used, because loading it would take longer than a response from the cache, and
/// JSON is needed only for settings, manifests and purges.
package struct JSONParser {
    /// The reason why a text is malformed. `offset` is in bytes and starts at 0.
    package struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        package var offset: Int
        package var message: String
        package var description: String { "\(message) at byte \(offset + 1)" }
    }

    private let bytes: [UInt8]
    private var at = 0
    private static let maxDepth = 64

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// - Parameter bytes: UTF-8. Invalid sequences become replacement characters.
    package static func parse(_ bytes: [UInt8]) throws(Malformed) -> JSONValue {
        var reader = JSONParser(bytes)
        let value = try reader.value(depth: 0)
        reader.skipSpace()
        guard reader.at == reader.bytes.count else { throw reader.error("unexpected text after the end of the value") }
        return value
    }

    private func error(_ message: String) -> Malformed { Malformed(offset: at, message: message) }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        at += 1
        return true
    }

    private mutating func value(depth: Int) throws(Malformed) -> JSONValue {
        guard depth <= Self.maxDepth else { throw error("nesting exceeds \(Self.maxDepth) levels") }
        skipSpace()
        guard let byte = next else { throw error("expected a value") }
        switch byte {
        case UInt8(ascii: "{"): return try map(depth: depth)
        case UInt8(ascii: "["): return try list(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default:
            for (word, value) in [("true", JSONValue.bool(true)), ("false", .bool(false)), ("null", .null)]
            where bytes[at...].starts(with: word.utf8) {
                at += word.utf8.count
                return value
            }
            throw error("expected a value")
        }
    }

    private mutating func map(depth: Int) throws(Malformed) -> JSONValue {
        at += 1
        var members: [JSONValue.Member] = []
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw error("expected a name in quotes") }
            let name = try string()
            guard !members.contains(where: { $0.name == name }) else { throw error("the name `\(name)` appears twice") }
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw error("expected `:`") }
            members.append(JSONValue.Member(name: name, value: try value(depth: depth + 1)))
            skipSpace()
            if take(UInt8(ascii: "}")) { return .object(members) }
            guard take(UInt8(ascii: ",")) else { throw error("expected `,` or `}`") }
        }
    }

    private mutating func list(depth: Int) throws(Malformed) -> JSONValue {
        at += 1
        var values: [JSONValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .list(values) }
        while true {
            values.append(try value(depth: depth + 1))
            skipSpace()
            if take(UInt8(ascii: "]")) { return .list(values) }
            guard take(UInt8(ascii: ",")) else { throw error("expected `,` or `]`") }
        }
    }

    private mutating func digits() -> Int {
        let start = at
        while let byte = next, byte.isDigit { at += 1 }
        return at - start
    }

    private mutating func number() throws(Malformed) -> JSONValue {
        let start = at
        var isWhole = true
        _ = take(UInt8(ascii: "-"))
        let leading = next
        let count = digits()
        guard count > 0, count == 1 || leading != UInt8(ascii: "0") else { throw error("malformed number") }
        if take(UInt8(ascii: ".")) {
            isWhole = false
            guard digits() > 0 else { throw error("malformed number") }
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard digits() > 0 else { throw error("malformed number") }
        }
        let text = String(decoding: bytes[start..<at], as: UTF8.self)
        if isWhole, let whole = Int(text) { return .int(whole) }
        guard let double = Double(text), double.isFinite else { throw error("number out of range") }
        return .double(double)
    }

    private mutating func string() throws(Malformed) -> String {
        at += 1
        var result: [UInt8] = []
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                at += 1
                return String(decoding: result, as: UTF8.self)
            case 0..<0x20: throw error("control character in a string")
            case UInt8(ascii: "\\"):
                at += 1
                result.append(contentsOf: String(try escape()).utf8)
            default:
                result.append(byte)
                at += 1
            }
        }
        throw error("the closing quote of a string is missing")
    }

    private mutating func escape() throws(Malformed) -> Unicode.Scalar {
        guard let byte = next else { throw error("the closing quote of a string is missing") }
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let first = try fourHex()
            if let scalar = Unicode.Scalar(first) { return scalar }
            guard first < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
                throw error("incomplete surrogate pair")
            }
            let second = try fourHex()
            guard (0xDC00...0xDFFF).contains(second),
                let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
            else { throw error("incomplete surrogate pair") }
            return scalar
        default: throw error("unknown escape sequence")
        }
    }

    private mutating func fourHex() throws(Malformed) -> UInt32 {
        guard at + 4 <= bytes.count else { throw error("expected four hexadecimal digits") }
        let text = String(decoding: bytes[at..<at + 4], as: UTF8.self)
        guard text.utf8.allSatisfy({ $0 != 0x2B && $0 != 0x2D }), let value = UInt32(text, radix: 16) else {
            throw error("expected four hexadecimal digits")
        }
        at += 4
        return value
    }
}
