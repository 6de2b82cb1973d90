package import PipelineSupport
import Variants

/// A value in the settings of a grammar (`ServerConfiguration.grammars`): text, a number, true or false, a list, or a
/// map. It is written as a literal.
///
/// ```swift
/// var configuration = ServerConfiguration()
/// configuration.grammars["next"] = ["path": "/_next/image", "unsigned": true, "qualities": [75]]
/// ```
public struct GrammarValue: Sendable, Hashable {
    package var json: JSONValue

    package init(_ json: JSONValue) { self.json = json }

    /// Creates text, for example from a variable of the environment.
    public init(_ text: String) { self.init(.string(text)) }
}

extension GrammarValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral {
    public init(booleanLiteral isTrue: Bool) { self.init(.bool(isTrue)) }
    public init(stringLiteral text: String) { self.init(.string(text)) }
}

extension GrammarValue: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
    public init(integerLiteral number: Int) { self.init(.int(number)) }
    public init(floatLiteral number: Double) { self.init(.double(number)) }
}

extension GrammarValue: ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral {
    public init(arrayLiteral elements: GrammarValue...) { self.init(.list(elements.map(\.json))) }

    public init(dictionaryLiteral members: (String, GrammarValue)...) {
        self.init(.object(members.map { JSONValue.Member(name: $0, value: $1.json) }))
    }
}

/// Reads the members of a grammar's settings. Each accessor throws if the member has the wrong kind, and `finish`
/// throws if there are members that no accessor has asked for.
package struct GrammarMembers {
    private let members: [JSONValue.Member]
    /// The name of the map in messages, for example `next`.
    private let place: String
    private var known: [String] = []

    /// - Throws: if the value is not a map, or names a member twice.
    package init(_ value: JSONValue, of place: String) throws(InvalidSetting) {
        guard case .object(let members) = value else { throw InvalidSetting("\(place): expected a map") }
        guard Set(members.map(\.name)).count == members.count else {
            throw InvalidSetting("\(place): a member is given twice")
        }
        (self.members, self.place) = (members, place)
    }

    /// Adds the name of the map to an error that already names the member.
    func fault(_ error: InvalidSetting) -> InvalidSetting { InvalidSetting("\(place): \(error.message)") }

    package func fault(_ name: String, _ problem: String) -> InvalidSetting {
        InvalidSetting("\(place): \(name): \(problem)")
    }

    /// Returns a value that `read` accepts, or nil if the member is missing.
    ///
    /// - Parameters:
    ///   - expected: A description of the accepted values, for messages.
    ///   - read: Returns nil if the value has the wrong kind.
    mutating func value<Value>(
        _ name: String, _ expected: String, _ read: (JSONValue) -> Value?
    ) throws(InvalidSetting) -> Value? {
        known.append(name)
        guard let given = members.first(where: { $0.name == name })?.value, given != .null else { return nil }
        guard let value = read(given) else { throw fault(name, "expected \(expected)") }
        return value
    }

    mutating func text(_ name: String) throws(InvalidSetting) -> String? {
        try value(name, "text") { if case .string(let text) = $0, !text.isEmpty { text } else { nil } }
    }

    mutating func flag(_ name: String) throws(InvalidSetting) -> Bool? {
        try value(name, "true or false") { if case .bool(let isTrue) = $0 { isTrue } else { nil } }
    }

    mutating func integer(_ name: String, _ range: ClosedRange<Int>) throws(InvalidSetting) -> Int? {
        try value(name, "a whole number between \(range.lowerBound) and \(range.upperBound)") {
            Self.integer($0, range)
        }
    }

    mutating func integers(_ name: String, _ range: ClosedRange<Int>) throws(InvalidSetting) -> [Int]? {
        try list(name, "whole numbers between \(range.lowerBound) and \(range.upperBound)") {
            Self.integer($0, range)
        }
    }

    /// Returns a list. `read` converts its elements, and returns nil for an invalid one.
    mutating func list<Element>(
        _ name: String, _ expected: String, _ read: (JSONValue) -> Element?
    ) throws(InvalidSetting) -> [Element]? {
        try value(name, "a list of \(expected)") { value in
            guard case .list(let values) = value else { return nil }
            let elements = values.map(read)
            return elements.contains { $0 == nil } ? nil : elements.compactMap { $0 }
        }
    }

    /// Returns the base of relative sources, under the name `app`, from the member `baseURL`.
    mutating func baseURL() throws(InvalidSetting) -> BaseURLs? {
        guard let base = try text("baseURL") else { return nil }
        guard base.hasPrefix("https://") || base.hasPrefix("http://"), let bases = try? BaseURLs(["app": base]) else {
            throw fault("baseURL", "expected an http or https URL without credentials and without a query")
        }
        return bases
    }

    /// Returns the formats that `Accept` may choose, by their names or media types.
    mutating func formats(
        _ name: String = "formats", among formats: [ImageFormat] = Negotiation.offered
    ) throws(InvalidSetting) -> [ImageFormat]? {
        try list(name, "the formats " + formats.map(\.rawValue).joined(separator: ", ")) { value in
            guard case .string(let name) = value else { return nil }
            return formats.first { $0.rawValue == name || $0.mediaType == name || $0.fileExtensions.contains(name) }
        }
    }

    mutating func texts(_ name: String) throws(InvalidSetting) -> [String]? {
        try list(name, "texts") { if case .string(let text) = $0 { text } else { nil } }
    }

    mutating func number(_ name: String) throws(InvalidSetting) -> Double? { try value(name, "a number") { $0.number } }

    /// Returns a map with values that `read` accepts.
    mutating func map<Element>(
        _ name: String, _ expected: String, _ read: (JSONValue) -> Element?
    ) throws(InvalidSetting) -> [String: Element]? {
        try value(name, "a map of names to \(expected)") { value in
            guard case .object(let members) = value else { return nil }
            var values: [String: Element] = [:]
            for member in members {
                guard let element = read(member.value) else { return nil }
                values[member.name] = element
            }
            return values
        }
    }

    /// - Throws: if there is a member that no accessor has asked for.
    func finish() throws(InvalidSetting) {
        guard let other = members.first(where: { !known.contains($0.name) }) else { return }
        throw InvalidSetting(
            "\(place): unknown member `\(other.name)`; the members are \(known.joined(separator: ", "))")
    }

    private static func integer(_ value: JSONValue, _ range: ClosedRange<Int>) -> Int? {
        if case .int(let number) = value, range.contains(number) { number } else { nil }
    }
}
