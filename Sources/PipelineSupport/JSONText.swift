/// Writes a JSON object with its members in the order they were added, so that report lines can be compared as text.
package struct JSONText: Sendable {
    private var text = "{"
    private var isEmpty = true

    package init() {}

    /// Adds a member whose value is JSON text already.
    package mutating func add(_ name: String, raw value: String) {
        if !isEmpty { text += "," }
        isEmpty = false
        text += Self.quoted(name)
        text += ":"
        text += value
    }

    /// Adds a text member; nil adds nothing.
    package mutating func add(_ name: String, _ value: String?) {
        if let value { add(name, raw: Self.quoted(value)) }
    }

    /// Adds a whole number; nil adds nothing.
    package mutating func add(_ name: String, _ value: Int?) {
        if let value { add(name, raw: String(value)) }
    }

    /// Adds true or false; nil adds nothing.
    package mutating func add(_ name: String, _ value: Bool?) {
        if let value { add(name, raw: value ? "true" : "false") }
    }

    /// Adds a number; nil adds nothing.
    package mutating func add(_ name: String, _ value: Double?) {
        if let value { add(name, raw: Self.number(value)) }
    }

    /// Adds a list of texts.
    package mutating func add(_ name: String, texts: [String]) {
        add(name, raw: "[" + texts.map(Self.quoted).joined(separator: ",") + "]")
    }

    /// Adds an object that the closure fills.
    package mutating func add(_ name: String, with object: (inout JSONText) -> Void) {
        var inner = JSONText()
        object(&inner)
        add(name, raw: inner.closed)
    }

    /// The finished object.
    package var closed: String { text + "}" }

    /// A JSON string with its quotes. It escapes what RFC 8259 §7 requires and every other control character, because
    /// those could control a terminal.
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

    /// A number as JSON; infinity and NaN, which JSON cannot represent, become null. Whole numbers carry no fraction.
    package static func number(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        if value == value.rounded(), abs(value) < 9_007_199_254_740_992 { return String(Int(value)) }
        return value.description
    }

    /// A number rounded to thousandths, enough for measured times.
    package static func thousandths(_ value: Double) -> String {
        number((value * 1000).rounded() / 1000)
    }
}
