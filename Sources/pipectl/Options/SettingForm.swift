import PipelineSupport
import ImageServer
import ImageServerNIO
import Pipeline
import Variants

/// Describes how a property is written as a setting: the kind of its values, and the conversions in both directions.
struct SettingForm<Value: Sendable>: Sendable {
    var kind: SettingKind
    /// Converts a value that `kind` has accepted.
    var read: @Sendable (GivenSetting) throws(SettingErrors) -> Value
    var write: @Sendable (Value) -> SettingValue

    func text(_ value: Value) -> String {
        if case .size = kind, let bytes = value as? Int { return SettingSize.text(bytes) }
        if case .string(let text) = write(value) { return text }
        return write(value).json
    }

    /// Returns a form for a value that is converted from a value of this form.
    func converted<Other>(
        back: @escaping @Sendable (Other) -> Value,
        _ make: @escaping @Sendable (GivenSetting, Value) throws(SettingErrors) -> Other
    ) -> SettingForm<Other> {
        SettingForm<Other>(
            kind: kind, read: { [read] (given) throws(SettingErrors) in try make(given, read(given)) },
            write: { [write] in write(back($0)) })
    }

    /// Returns a form that accepts only valid values.
    ///
    /// - Parameter problem: A closure that returns the reason why a value is invalid, or nil if it is valid.
    func checked(_ problem: @escaping @Sendable (Value) -> String?) -> Self {
        converted(back: { $0 }) { (given, value) throws(SettingErrors) in
            if let problem = problem(value) { throw given.bad(problem) }
            return value
        }
    }

    /// Returns a form that accepts only values that the library can parse.
    ///
    /// - Parameter parse: The library's parser for the value.
    func checked<Parsed>(by parse: @escaping @Sendable (Value) throws(InvalidSetting) -> Parsed) -> Self {
        checked { value in
            do throws(InvalidSetting) { _ = try parse(value) } catch { return error.message }
            return nil
        }
    }

    /// A list of strings. `element` converts each string.
    static func list<Element>(of element: SettingForm<Element>) -> Self where Value == [Element] {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                try given.each { text throws(SettingErrors) in
                    var given = given
                    given.entry.value = .string(text)
                    return try element.read(given)
                }
            }, write: { .list($0.map(element.write)) })
    }
}

extension SettingForm where Value == Bool {
    static var bool: Self { Self(kind: .bool, read: { $0.value == .bool(true) }, write: { .bool($0) }) }
}

extension SettingForm {
    /// A value that is nil by default because its default depends on other settings. The table of settings shows
    /// `usual`.
    static func unset<Wrapped>(as usual: Wrapped, _ form: SettingForm<Wrapped>) -> Self where Value == Wrapped? {
        form.converted(back: { $0 ?? usual }) { $1 }
    }

    /// A string. An empty string means nil.
    static func orNone<Wrapped>(_ form: SettingForm<Wrapped>) -> Self where Value == Wrapped? {
        Self(
            kind: form.kind,
            read: { (given) throws(SettingErrors) in given.text() == "" ? nil : try form.read(given) },
            write: { $0.map(form.write) ?? .string("") })
    }

    /// A number. 0 means nil.
    static func orZero<Number: AdditiveArithmetic & Sendable>(
        _ form: SettingForm<Number>
    ) -> Self where Value == Number? {
        form.converted(back: { $0 ?? .zero }) { $1 == .zero ? nil : $1 }
    }
}

extension SettingForm where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        Self(kind: .integer(range), read: { $0.value.integer }, write: { .int($0) })
    }

    /// A size in bytes, at least `least`, or a percentage of `whole`.
    static func size(of whole: SizedResource = .memory, atLeast least: Int = 0) -> Self {
        Self(kind: .size, read: { max(least, $0.bytes(of: whole)) }, write: SettingSize.value)
    }

    /// A size in bytes. Its default is a percentage of the machine's memory and is shown as a percentage.
    static var memoryShare: Self {
        var form = size()
        form.write = { bytes in
            let tenths = Int((Double(bytes) / Double(MachineMemory.bytes) * 1000).rounded())
            return bytes == 0 ? .int(0) : .string(JSONText.number(Double(tenths) / 10) + "%")
        }
        return form
    }
}

extension SettingForm where Value == Double {
    static func number(_ range: ClosedRange<Double>) -> Self {
        Self(kind: .number(range), read: { $0.value.number }, write: { .double($0) })
    }

    static var seconds: Self { number(0.001...1e9) }
}

extension SettingForm where Value == Duration {
    /// A time in seconds, at most 10⁹.
    static func seconds(atLeast least: Double) -> Self {
        SettingForm<Double>.number(least...1e9).converted(back: \.inSeconds) { .seconds($1) }
    }

    static var seconds: Self { seconds(atLeast: 0.001) }

    /// A freshness lifetime in seconds. RFC 9111 §1.2.2 defines the upper limit.
    static var age: Self {
        Self(
            kind: .number(0...2_147_483_648), read: { .seconds($0.value.integer) },
            write: { .double(Double($0.components.seconds)) })
    }

    static var wholeSeconds: Self {
        SettingForm<Int>.integer(0...Int.max).converted(back: { Int($0.components.seconds) }) { .seconds($1) }
    }
}

extension SettingForm where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of these values.
    static func choice(_ values: Value...) -> Self {
        Self(kind: .choice(values.map(\.rawValue)), read: choice.read, write: choice.write)
    }

    static var choice: Self {
        Self(
            kind: .choice(Value.allCases.map(\.rawValue)),
            read: { (given) throws(SettingErrors) in
                let word = given.text() ?? ""
                if let value = Value(rawValue: word) { return value }
                throw given.bad(
                    "expected one of \(Value.allCases.map(\.rawValue).joined(separator: ", ")), not `\(word)`")
            }, write: { .string($0.rawValue) })
    }
}

extension SettingForm {
    /// A string that `read` parses.
    static func text(
        write: @escaping @Sendable (Value) -> String = { _ in "" },
        _ read: @escaping @Sendable (GivenSetting, String) throws(SettingErrors) -> Value
    ) -> Self {
        Self(
            kind: .text, read: { (given) throws(SettingErrors) in try read(given, given.text() ?? "") },
            write: { .string(write($0)) })
    }

    /// A list that `make` parses. Each string is also parsed by itself, so that each invalid string has a separate
    /// error.
    static func list<Failure: Error>(
        _ make: @escaping @Sendable ([String]) throws(Failure) -> Value,
        problem: @escaping @Sendable (Failure) -> String, write: @escaping @Sendable (Value) -> [String]
    ) -> Self {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                func read(_ texts: [String]) throws(SettingErrors) -> Value {
                    do throws(Failure) { return try make(texts) } catch { throw given.bad(problem(error)) }
                }
                _ = try given.each { text throws(SettingErrors) in try read([text]) }
                return try read(given.texts)
            }, write: { .list(write($0).map { .string($0) }) })
    }
}

extension SettingForm where Value == String {
    static var text: Self { .text(write: { $0 }) { $1 } }

    static var filledText: Self { text.checked { $0.isEmpty ? "must not be empty" : nil } }

    /// The value of a request header field (RFC 9110 §5.5), restricted to ASCII.
    static var fieldValue: Self {
        text.checked { text in
            let isField =
                !text.isEmpty && text.trimmingSpace() == text && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
            return isField
                ? nil
                : "must be a valid field value: not empty, only visible ASCII characters and spaces, and no space at the beginning or end"
        }
    }
}

extension SettingForm where Value == String? {
    /// A path. An empty path means nil.
    static var path: Self { .orNone(.text(write: { $0 }) { $0.resolved($1) }) }
}

extension SettingForm where Value == [String] {
    static var list: Self { Self(kind: .list, read: { $0.texts }, write: { .list($0.map { .string($0) }) }) }
}

extension SettingForm where Value == ListenAddress {
    static var listenAddress: Self {
        .text(write: \.description) { (given, text) throws(SettingErrors) in
            guard let address = ListenAddress(text) else {
                throw given.bad(
                    "\(given.value.json) is not HOST:PORT, unix:PATH or fd:NUMBER; expected for example 127.0.0.1:8080, "
                        + "[::1]:8080, *:8080 or unix:/run/pipectl.sock")
            }
            guard case .unix(let path) = address else { return address }
            if let resolved = ListenAddress("unix:" + given.resolved(path)) { return resolved }
            throw given.bad("the path is too long for a Unix socket; use a shorter path")
        }
    }
}

extension SettingForm {
    /// A subset of these words.
    static func words<Word: RawRepresentable & CaseIterable & Hashable & Sendable>() -> Self
    where Value == Set<Word>, Word.RawValue == String {
        SettingForm<[Word]>.list(of: .choice).converted(back: { Word.allCases.filter($0.contains) }) { Set($1) }
    }
}

extension SettingForm where Value == [ImageFormat] {
    /// Formats by name or file extension, in the given order.
    static func formats(among known: [ImageFormat]) -> Self {
        .list(
            of: .text(write: \.rawValue) { (given, name) throws(SettingErrors) in
                if let format = ImageFormat(name: name, among: known) { return format }
                throw given.bad("expected one of \(known.map(\.rawValue).joined(separator: ", ")), not `\(name)`")
            })
    }
}

extension SettingForm where Value == Set<ImageFormat> {
    static func formats(among known: [ImageFormat]) -> Self {
        SettingForm<[ImageFormat]>.formats(among: known).converted(back: { known.filter($0.contains) }) { Set($1) }
    }
}

enum SizedResource: Sendable {
    case memory
    /// The size of the file system that contains the cache folder, or 10 GB if the size is unknown.
    case fileSystem
}

extension GivenSetting {
    /// Returns the size in bytes. The resource is measured only if the size is a percentage.
    func bytes(of whole: SizedResource) -> Int {
        guard let size = text().flatMap(SettingSize.init) else { return value.integer }
        return size.bytes(
            of: whole == .memory
                ? MachineMemory.bytes : FileSystemSpace(holding: cacheFolder)?.total ?? 10_000_000_000)
    }
}

extension SettingValue {
    /// The number without its fraction, or 0 if the value is not a number.
    fileprivate var integer: Int { if case .int(let value) = self { value } else { Int(number) } }

    /// The number, or 0 if the value is not a number.
    fileprivate var number: Double {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: 0
        }
    }
}
