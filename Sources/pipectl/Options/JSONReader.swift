import PipelineSupport

/// The error for malformed JSON; `offset` is in bytes from 0.
struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    var offset: Int
    var message: String
    var description: String { "\(message) at byte \(offset + 1)" }
}

/// Reads one JSON text, as `JSONParser` does, into a `SettingValue`.
enum JSONReader {
    static func parse(_ text: String) throws(JSONError) -> SettingValue {
        do throws(JSONParser.Malformed) {
            return SettingValue(try JSONParser.parse(Array(text.utf8)))
        } catch {
            throw JSONError(offset: error.offset, message: error.message)
        }
    }
}

extension SettingValue {
    fileprivate init(_ value: JSONValue) {
        self =
            switch value {
            case .null: .null
            case .bool(let value): .bool(value)
            case .int(let value): .int(value)
            case .double(let value): .double(value)
            case .string(let value): .string(value)
            case .list(let values): .list(values.map { SettingValue($0) })
            case .object(let members):
                .map(members.map { SettingMember(name: $0.name, value: SettingValue($0.value)) })
            }
    }
}
