import PipelineSupport

/// The value of a setting, as a JSON value.
typealias SettingValue = JSONValue
typealias SettingMember = JSONValue.Member

extension JSONValue {
    /// The member of an object, or nil if the value is not an object or the member is missing.
    subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
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
        case .object: "a map"
        }
    }
}

extension JSONParser {
    static func parse(_ text: String) throws(Malformed) -> JSONValue { try parse(Array(text.utf8)) }
}
