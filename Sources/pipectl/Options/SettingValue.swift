import PipelineSupport

/// A value of a setting or of a JSON text. Maps keep their members in the order written.
enum SettingValue: Sendable, Hashable {
    case null
    case bool(Bool)
    case int(Int)
    case double(Double)
    case string(String)
    case list([SettingValue])
    case map([SettingMember])

    /// The member of a map; nil for other values and missing names.
    subscript(name: String) -> SettingValue? {
        guard case .map(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }

    /// The name of the value's kind in error messages.
    var kindName: String {
        switch self {
        case .null: "nothing"
        case .bool: "true or false"
        case .int, .double: "a number"
        case .string: "text"
        case .list: "a list"
        case .map: "a map"
        }
    }

    var json: String {
        switch self {
        case .null: "null"
        case .bool(let value): value ? "true" : "false"
        case .int(let value): String(value)
        case .double(let value): JSONText.number(value)
        case .string(let value): JSONText.quoted(value)
        case .list(let values): "[" + values.map(\.json).joined(separator: ",") + "]"
        case .map(let members):
            "{" + members.map { JSONText.quoted($0.name) + ":" + $0.value.json }.joined(separator: ",") + "}"
        }
    }
}

struct SettingMember: Sendable, Hashable {
    var name: String
    var value: SettingValue
}
