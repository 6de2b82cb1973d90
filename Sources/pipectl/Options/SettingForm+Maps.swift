import PipelineSupport
import Pipeline

/// A member of a map: its name, the values that it accepts, and the property that it fills.
struct SettingPart<Whole: Sendable>: Sendable {
    let name: String
    /// Converts the member's value and stores it in the property.
    let fill: @Sendable (GivenSetting, inout Whole) throws(SettingErrors) -> Void

    /// Declares a member that fills the property at `path`.
    init<Value: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Whole, Value> & Sendable, _ form: SettingForm<Value>
    ) {
        self.name = name
        fill = { (given, whole) throws(SettingErrors) in whole[keyPath: path] = try form.readMember(given) }
    }

    /// Declares a member that fills an optional property.
    init<Value: Sendable>(
        _ name: String, _ path: any WritableKeyPath<Whole, Value?> & Sendable, _ form: SettingForm<Value>
    ) {
        self.name = name
        fill = { (given, whole) throws(SettingErrors) in whole[keyPath: path] = try form.readMember(given) }
    }

    /// Declares a string that `finish` reads together with other members.
    init(text name: String) {
        self.name = name
        fill = { (given, _) throws(SettingErrors) in _ = try SettingForm<String>.text.readMember(given) }
    }

    /// Declares a member of a nested value at `path`.
    init<Part>(_ part: SettingPart<Part>, within path: any WritableKeyPath<Whole, Part> & Sendable) {
        name = part.name
        fill = { (given, whole) throws(SettingErrors) in try part.fill(given, &whole[keyPath: path]) }
    }
}

extension SettingForm where Value: Equatable {
    /// A map with named members.
    ///
    /// - Parameters:
    ///   - start: The value of an empty map.
    ///   - finish: A closure that checks and combines values of several members.
    static func map(
        _ start: Value, _ parts: [SettingPart<Value>],
        finish: @escaping @Sendable (GivenSetting, inout Value) throws(SettingErrors) -> Void = { _, _ in }
    ) -> Self {
        let names = parts.map(\.name)
        return map(.map(names), start) { (given, value) throws(SettingErrors) in
            try given.eachMember { (name, member) throws(SettingErrors) in
                guard let part = parts.first(where: { $0.name == name }) else {
                    throw given.bad("unknown member `\(name)`" + NearestName.hint(name, in: names))
                }
                try part.fill(member, &value)
            }
            try finish(given, &value)
        }
    }

    /// A map with user-defined names and values of one form. Two names with the same key are an error.
    static func named<Key: Hashable, Element>(
        _ element: SettingForm<Element>,
        key: @escaping @Sendable (GivenSetting, String) throws(SettingErrors) -> Key,
        finish: @escaping @Sendable (GivenSetting, inout Value) throws(SettingErrors) -> Void = { _, _ in }
    ) -> Self where Value == [Key: Element] {
        map(.names(element.kind), [:]) { (given, values) throws(SettingErrors) in
            try given.eachMember { (name, member) throws(SettingErrors) in
                let key = try key(given, name)
                guard values[key] == nil else { throw member.bad("is given twice") }
                values[key] = try element.readMember(member)
            }
            try finish(given, &values)
        }
    }

    static func named<Element>(_ element: SettingForm<Element>) -> Self where Value == [String: Element] {
        .named(element, key: { $1 })
    }

    /// A map. Because a map may contain secrets, the value shown only indicates whether it differs from the default.
    static func map(
        _ kind: SettingKind, _ start: Value,
        _ fill: @escaping @Sendable (GivenSetting, inout Value) throws(SettingErrors) -> Void
    ) -> Self {
        Self(
            kind: kind,
            read: { (given) throws(SettingErrors) in
                var value = start
                try fill(given, &value)
                return value
            }, write: { .object($0 == start ? [] : [SettingMember(name: "…", value: .null)]) })
    }
}

extension SettingForm {
    /// Returns the value of a member, which must have exactly this kind. A string is not accepted as a list with one
    /// element, and a number is not accepted as a string.
    func readMember(_ given: GivenSetting) throws(SettingErrors) -> Value {
        guard let accepted = kind.accept(given.value), accepted.kindName == given.value.kindName else {
            throw given.bad("expected \(kind.expectation), not \(kind.shown(given.value))")
        }
        var given = given
        given.entry.value = accepted
        return try read(given)
    }
}

extension SettingForm {
    static func texts() -> Self where Value == [String: String] { .named(.text) }

    static func breaker() -> Self where Value == BreakerConfiguration? {
        let numbers = SettingForm<BreakerConfiguration>.map(
            BreakerConfiguration(),
            [SettingPart("failures", \.failures, .integer(1...Int.max)), SettingPart("seconds", \.pause, .seconds)])
        return Self(
            kind: .either([.bool, numbers.kind]),
            read: { (given) throws(SettingErrors) in given.value == .bool(false) ? nil : try numbers.read(given) },
            write: { .bool($0 != nil) })
    }
}
