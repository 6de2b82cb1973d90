import PipelineSupport

/// A value that can be written as JSON.
protocol JSONRepresentable {
    var json: String { get }
}

extension JSONValue: JSONRepresentable {}

extension JSONText: JSONRepresentable {
    typealias Members = KeyValuePairs<String, (any JSONRepresentable)?>

    /// Creates an object with these members. Members that are nil are omitted.
    init(_ members: Members) {
        self.init()
        add(members)
    }

    mutating func add(_ members: Members) {
        for (name, value) in members { if let value { add(name, raw: value.json) } }
    }

    var json: String { closed }
}

extension Array: JSONRepresentable where Element: JSONRepresentable {
    var json: String { "[" + map(\.json).joined(separator: ",") + "]" }
}

/// A value that is one member of a JSON object.
protocol JSONMember: JSONRepresentable {
    /// Returns nil if the JSON value has a different type.
    init?(json: JSONValue)
}

/// A value with named members. `visit` lists each member once, for both writing and reading.
protocol JSONRecord: JSONMember {
    /// The initial value that `visit` fills while reading.
    static var blank: Self { get }
    mutating func visit(_ members: inout JSONMembers)
}

extension JSONRecord {
    /// The value as a JSON object on one line, with its members in the order of `visit`.
    var json: String {
        var (copy, members) = (self, JSONMembers())
        copy.visit(&members)
        return members.text.closed
    }

    init?(json: JSONValue) {
        var (value, members) = (Self.blank, JSONMembers(reading: json))
        value.visit(&members)
        guard members.isValid else { return nil }
        self = value
    }

    /// Parses the output of `json`. Returns nil if the input is anything else.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSONParser.parse(bytes) else { return nil }
        self.init(json: json)
    }

    init?(line: some StringProtocol) { self.init(Array(line.utf8)) }
}

/// The members of a JSON object that is being written or read.
struct JSONMembers {
    fileprivate var text = JSONText()
    private var source: JSONValue?
    /// Whether all required members have been read.
    fileprivate(set) var isValid = true

    var isReading: Bool { source != nil }

    fileprivate init(reading source: JSONValue? = nil) { self.source = source }

    /// Visits a required member.
    mutating func callAsFunction<Value: JSONMember>(_ name: String, _ value: inout Value) {
        guard let source else { return text.add(name, raw: value.json) }
        guard let read = source[name].flatMap(Value.init(json:)) else { return isValid = false }
        value = read
    }

    /// Visits a member that is omitted if it is nil.
    mutating func callAsFunction<Value: JSONMember>(_ name: String, _ value: inout Value?) {
        if let source {
            value = source[name].flatMap(Value.init(json:))
        } else if let value {
            text.add(name, raw: value.json)
        }
    }

    /// Visits a member that is omitted if it equals `usual`.
    mutating func callAsFunction<Value: JSONMember & Equatable>(
        _ name: String, _ value: inout Value, unless usual: Value
    ) {
        var given = value == usual ? nil : value
        self(name, &given)
        value = given ?? usual
    }

    /// Visits the format version. Reading fails for a different version.
    mutating func version(_ number: Int) {
        var version = number
        self("version", &version)
        require(version == number)
    }

    mutating func require(_ condition: Bool) { if !condition { isValid = false } }
}

extension String: JSONMember {
    init?(json: JSONValue) { if case .string(let text) = json { self = text } else { return nil } }
    var json: String { JSONText.quoted(self) }
}

extension Int: JSONMember {
    init?(json: JSONValue) { if case .int(let number) = json { self = number } else { return nil } }
    var json: String { String(self) }
}

extension Bool: JSONMember {
    init?(json: JSONValue) { if case .bool(let value) = json { self = value } else { return nil } }
    var json: String { self ? "true" : "false" }
}

/// Written with three decimals, which are sufficient for measured times.
extension Double: JSONMember {
    init?(json: JSONValue) {
        switch json {
        case .int(let number): self = Double(number)
        case .double(let number): self = number
        default: return nil
        }
    }
    var json: String { JSONText.thousandths(self) }
}

extension Array: JSONMember where Element: JSONMember {
    init?(json: JSONValue) {
        guard case .list(let values) = json else { return nil }
        self = values.compactMap(Element.init(json:))
        if count != values.count { return nil }
    }
}

extension JSONMember where Self: RawRepresentable, RawValue == String {
    init?(json: JSONValue) {
        guard let value = String(json: json).flatMap(Self.init(rawValue:)) else { return nil }
        self = value
    }
    var json: String { rawValue.json }
}
