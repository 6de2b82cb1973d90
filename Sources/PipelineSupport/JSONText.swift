/// Writes a JSON object with its members in the order in which they were added, so that lines of reports can be
/// compared as strings.
package struct JSONText: Sendable {
    private var text = "{"
    private var isEmpty = true

    package init() {}

    /// Adds a member with a value that is already JSON.
    package mutating func add(_ name: String, raw value: String) {
        if !isEmpty { text += "," }
        isEmpty = false
        text += Self.quoted(name)
        text += ":"
        text += value
    }

    /// Adds a string. Has no effect if the value is nil.
    package mutating func add(_ name: String, _ value: String?) {
        if let value { add(name, raw: Self.quoted(value)) }
    }

    /// Adds an integer. Has no effect if the value is nil.
    package mutating func add(_ name: String, _ value: Int?) {
        if let value { add(name, raw: String(value)) }
    }

    /// Adds a Boolean. Has no effect if the value is nil.
    package mutating func add(_ name: String, _ value: Bool?) {
        if let value { add(name, raw: value ? "true" : "false") }
    }

    /// Adds a number. Has no effect if the value is nil.
    package mutating func add(_ name: String, _ value: Double?) {
        if let value { add(name, raw: Self.number(value)) }
    }

    /// Adds an array of strings.
    package mutating func add(_ name: String, texts: [String]) {
        add(name, raw: "[" + texts.map(Self.quoted).joined(separator: ",") + "]")
    }

    /// Adds an object with the members that the closure adds.
    package mutating func add(_ name: String, with object: (inout JSONText) -> Void) {
        var inner = JSONText()
        object(&inner)
        add(name, raw: inner.closed)
    }

    /// The complete object.
    package var closed: String { text + "}" }

    /// Returns a JSON string with its quotes. Escapes the characters required by RFC 8259 §7 and all other control
    /// characters, because these could control a terminal.
    package static func quoted(_ value: String) -> String {
        var result = "\""
        result.reserveCapacity(value.utf8.count + 2)
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case "\u{8}": result += "\\b"
            case "\u{c}": result += "\\f"
            case "\u{0}"..<"\u{20}", "\u{7f}"..<"\u{a0}":
                let hex = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// Returns a number as JSON. Infinity and NaN, which JSON cannot represent, become null. Integral values have no
    /// fraction.
    package static func number(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        if value == value.rounded(), abs(value) < 9_007_199_254_740_992 { return String(Int(value)) }
        return value.description
    }

    /// Returns a number rounded to thousandths, which is precise enough for measured times.
    package static func thousandths(_ value: Double) -> String {
        number((value * 1000).rounded() / 1000)
    }
}

extension JSONValue {
    /// The value as JSON on one line.
    package var json: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .int(let value): String(value)
        case .double(let value): JSONText.number(value)
        case .string(let value): JSONText.quoted(value)
        case .list(let values): "[" + values.map(\.json).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { JSONText.quoted($0.name) + ":" + $0.value.json }.joined(separator: ",") + "}"
        }
    }
}
