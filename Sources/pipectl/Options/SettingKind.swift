import PipelineSupport

indirect enum SettingKind: Sendable {
    case bool
    case integer(ClosedRange<Int>)
    case number(ClosedRange<Double>)
    /// A number of bytes or a percentage (`512MB`, `10%`).
    case size
    case text
    case choice([String])
    case list
    /// A list of integers.
    case integers(ClosedRange<Int>)
    /// A map with members of these names, which can only be set as a unit.
    case map([String])
    /// A map with user-defined names and values of one kind, which can only be set as a unit.
    case names(SettingKind)
    /// Any of these kinds. The first kind that accepts the value is used.
    case either([SettingKind])

    /// A description of the accepted values, for error messages and the table of settings.
    var expectation: String {
        switch self {
        case .bool: return "true or false"
        case .integer(let range):
            return range.upperBound == .max
                ? "a whole number of at least \(range.lowerBound)"
                : "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .number(let range):
            let low = JSONText.number(range.lowerBound)
            return range.upperBound >= 1e9
                ? "a number of at least \(low)" : "a number from \(low) to \(JSONText.number(range.upperBound))"
        case .size: return "a size such as 512MB, 64KiB or 10%"
        case .text: return "text"
        case .choice(let words): return words.joined(separator: ", ")
        case .list: return "a list"
        case .integers(let range): return "a list of whole numbers from \(range.lowerBound) to \(range.upperBound)"
        case .map(let names): return "a map of " + names.joined(separator: ", ")
        case .names(let kind):
            guard case .map(let names) = kind, !names.isEmpty else { return "a map" }
            return "a map from names to " + kind.expectation
        case .either(let kinds): return kinds.map(\.expectation).joined(separator: ", or ")
        }
    }

    /// Whether lists of this kind contain numbers.
    var holdsNumbers: Bool {
        switch self {
        case .integers: true
        case .either(let kinds): kinds.contains { $0.holdsNumbers }
        default: false
        }
    }

    /// Returns a description of an unacceptable value for an error message. Shows a number if it cannot be part of a
    /// secret.
    func shown(_ value: SettingValue) -> String {
        if case .text = self { return value.kindName }
        return value.kindName == "a number" ? value.json : value.kindName
    }

    /// Returns the value in the form in which this kind stores it, or nil if this kind does not accept the value.
    func accept(_ value: SettingValue) -> SettingValue? {
        switch (self, value) {
        case (.bool, .bool), (.text, .string), (.list, .list), (.map, .object),
            (.names, .object):
            return value
        case (.integer(let range), .int(let number)): return range.contains(number) ? value : nil
        case (.integer, .double(let number)):
            guard let whole = Int(exactly: number) else { return nil }
            return accept(.int(whole))
        case (.number(let range), .int(let number)):
            return range.contains(Double(number)) ? .double(Double(number)) : nil
        case (.number(let range), .double(let number)): return range.contains(number) ? value : nil
        case (.size, .int(let number)): return number >= 0 ? value : nil
        case (.size, .string(let text)): return SettingSize(text) == nil ? nil : value
        case (.text, .int(let number)): return .string(String(number))
        case (.choice(let words), .string(let word)): return words.contains(word) ? value : nil
        case (.list, .string(let word)): return .list([.string(word)])
        case (.integers(let range), .list(let values)):
            let numbers = values.compactMap { SettingKind.integer(range).accept($0) }
            return numbers.count == values.count && !values.isEmpty ? .list(numbers) : nil
        case (.integers, .int): return accept(.list([value]))
        case (.either(let kinds), _):
            for kind in kinds { if let accepted = kind.accept(value) { return accepted } }
            return nil
        default: return nil
        }
    }

    /// Parses the value of a flag or environment variable: JSON, or a bare word. A list can also be written as `a,b,c`.
    func read(_ raw: String) -> SettingValue? {
        switch self {
        case .text:
            if raw.hasPrefix("\""), case .string(let text)? = try? JSONParser.parse(raw) { return .string(text) }
            return .string(raw)
        case .choice, .size:
            if raw.hasPrefix("\""), let value = try? JSONParser.parse(raw) { return accept(value) }
            return accept(.string(raw))
        case .list:
            // Text that is not JSON is a bare list, so the JSON error carries no information.
            if let value = try? JSONParser.parse(raw), case .list = value { return value }
            guard !raw.hasPrefix("["), !raw.hasPrefix("{") else { return nil }
            return .list(raw.split(separator: ",").map { .string(String($0)) })
        case .integers:
            return (try? JSONParser.parse(raw.hasPrefix("[") ? raw : "[\(raw)]")).flatMap { accept($0) }
        case .either(let kinds):
            for kind in kinds { if let value = kind.read(raw) { return value } }
            return nil
        case .bool, .integer, .number, .map, .names:
            return (try? JSONParser.parse(raw)).flatMap { accept($0) }
        }
    }
}
