import PipelineSupport
import ImageServer
import ImageServerNIO
import Glibc
import Pipeline
import Variants

/// How a property is written as a setting: the kind of values, and the conversion both ways.
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
}

extension SettingForm where Value == Bool {
    static var bool: Self { Self(kind: .bool, read: { $0.value == .bool(true) }, write: { .bool($0) }) }
}

extension SettingForm where Value == Bool? {
    /// A choice whose default depends on other settings; `usual` is shown for it.
    static func bool(usual: Bool) -> Self {
        Self(kind: .bool, read: { $0.value == .bool(true) }, write: { .bool($0 ?? usual) })
    }
}

extension SettingForm where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        Self(kind: .integer(range), read: { $0.value.integer }, write: { .int($0) })
    }

    /// Bytes, at least `least`, or a share of `whole`.
    static func size(of whole: SizedResource = .memory, atLeast least: Int = 0) -> Self {
        Self(kind: .size, read: { max(least, $0.bytes(of: whole)) }, write: SettingSize.value)
    }

    /// Bytes whose default is a share of the machine's memory, shown as one.
    static var memoryShare: Self {
        var form = size()
        form.write = { bytes in
            let tenths = Int((Double(bytes) / Double(MachineMemory.bytes) * 1000).rounded())
            return bytes == 0 ? .int(0) : .string(JSONText.number(Double(tenths) / 10) + "%")
        }
        return form
    }
}

extension SettingForm where Value == Int? {
    /// A number for which 0 means nil.
    static func integerOrZero(_ range: ClosedRange<Int>) -> Self {
        Self(
            kind: .integer(range), read: { $0.value.integer == 0 ? nil : $0.value.integer }, write: { .int($0 ?? 0) })
    }

    /// Seconds of freshness; 0 means nil. RFC 9111 §1.2.2 has the upper end.
    static var maximumAge: Self {
        Self(
            kind: .number(0...2_147_483_648), read: { $0.value.integer == 0 ? nil : $0.value.integer },
            write: { .double(Double($0 ?? 0)) })
    }

    /// The same where 0 differs from nil, for which `usual` is shown.
    static func maximumAge(usual: Int) -> Self {
        Self(
            kind: .number(0...2_147_483_648), read: { $0.value.integer },
            write: { .double(Double($0 ?? usual)) })
    }

    /// Bytes, or a share of `whole`; `usual` is shown for nil.
    static func size(of whole: SizedResource, usual: Int) -> Self {
        Self(kind: .size, read: { $0.bytes(of: whole) }, write: { SettingSize.value($0 ?? usual) })
    }
}

extension SettingForm where Value == Double {
    static func number(_ range: ClosedRange<Double>) -> Self {
        Self(kind: .number(range), read: { $0.value.number }, write: { .double($0) })
    }

    static var seconds: Self { number(0.001...1e9) }
}

extension SettingForm where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of these.
    static func choice(_ values: Value...) -> Self {
        Self(kind: .choice(values.map(\.rawValue)), read: choice.read, write: choice.write)
    }

    static var choice: Self {
        Self(
            kind: .choice(Value.allCases.map(\.rawValue)),
            read: { (given) throws(SettingErrors) in
                guard case .string(let word) = given.value, let value = Value(rawValue: word) else {
                    throw given.bad("no such value")
                }
                return value
            }, write: { .string($0.rawValue) })
    }
}

extension SettingForm where Value == String {
    static var text: Self {
        Self(
            kind: .text,
            read: { given in
                guard case .string(let text) = given.value else { return "" }
                return text
            }, write: { .string($0) })
    }

    /// What the value of a field of a request may be (RFC 9110 §5.5), ASCII alone.
    static var fieldValue: Self {
        Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in
                let text = try text.read(given)
                guard !text.isEmpty, text.trimmingSpace() == text, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
                else { throw given.bad("it is the value of a field: visible ASCII, not empty") }
                return text
            }, write: { .string($0) })
    }
}

extension SettingForm where Value == String? {
    /// A path; an empty one means nil.
    static var path: Self {
        Self(
            kind: .text,
            read: { given in
                guard case .string(let path) = given.value, !path.isEmpty else { return nil }
                return given.resolved(path)
            }, write: { .string($0 ?? "") })
    }
}

extension SettingForm where Value == [String] {
    static var list: Self { Self(kind: .list, read: { $0.texts }, write: { .list($0.map { .string($0) }) }) }
}

extension SettingForm where Value == [String]? {
    /// A list for which a default cannot be written.
    static var optionalList: Self {
        Self(kind: .list, read: { $0.texts }, write: { .list(($0 ?? []).map { .string($0) }) })
    }
}

extension SettingForm where Value == ListenAddress {
    static var listenAddress: Self {
        Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in
                guard case .string(let text) = given.value, let address = ListenAddress(text) else {
                    throw given.bad(
                        "\(given.value.json) is not HOST:PORT, unix:PATH or fd:NUMBER; write for example 127.0.0.1:8080, [::1]:8080, *:8080 or unix:/run/pipectl.sock"
                    )
                }
                guard case .unix(let path) = address else { return address }
                guard let resolved = ListenAddress("unix:" + given.resolved(path)) else {
                    throw given.bad("the path is longer than a Unix socket's may be")
                }
                return resolved
            }, write: { .string($0.description) })
    }
}

extension SettingForm where Value == ListenAddress? {
    /// An address; an empty text means nil.
    static var optionalListenAddress: Self {
        let form = SettingForm<ListenAddress>.listenAddress
        return Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in given.value == .string("") ? nil : try form.read(given) },
            write: { .string($0?.description ?? "") })
    }
}

extension SettingForm where Value == [String: String] {
    static var texts: Self {
        Self(
            kind: .map,
            read: { given in
                guard case .object(let members) = given.value else { return [:] }
                var result: [String: String] = [:]
                for member in members { if case .string(let text) = member.value { result[member.name] = text } }
                return result
            },
            write: {
                .object($0.sorted { $0.key < $1.key }.map { SettingMember(name: $0.key, value: .string($0.value)) })
            }
        )
    }
}

extension SettingForm where Value == [ImageFormat] {
    /// Formats by name or file extension, in the order given.
    static func formats(among known: [ImageFormat]) -> Self {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                try given.each { name throws(SettingErrors) in
                    if let format = ImageFormat(name: name, among: known) { return format }
                    throw given.bad("takes \(known.map(\.rawValue).joined(separator: ", ")), not `\(name)`")
                }
            }, write: { .list($0.map { .string($0.rawValue) }) })
    }
}

extension SettingForm where Value == [ImageFormat]? {
    /// The same where nil differs from an empty list; `usual` is shown for it.
    static func formats(among known: [ImageFormat], usual: [ImageFormat]) -> Self {
        let list = SettingForm<[ImageFormat]>.formats(among: known)
        return Self(kind: .list, read: list.read, write: { list.write($0 ?? usual) })
    }
}

extension SettingForm where Value == Set<ImageFormat> {
    static func formats(among known: [ImageFormat]) -> Self {
        let list = SettingForm<[ImageFormat]>.formats(among: known)
        return Self(
            kind: .list, read: { (given) throws(SettingErrors) in Set(try list.read(given)) },
            write: { formats in list.write(known.filter(formats.contains)) })
    }
}

enum SizedResource: Sendable {
    case memory
    /// The file system that holds the cache folder.
    case fileSystem

    /// Size in bytes of the file system that holds `path` or its nearest existing parent; 10 GB if that is unknown.
    fileprivate static func fileSystemBytes(holding path: String) -> Int {
        var path = path
        while !path.isEmpty {
            var status = statvfs()
            if statvfs(path, &status) == 0 { return Int(status.f_blocks) * Int(status.f_frsize) }
            path = path.splitAtLastSlash?.folder ?? ""
        }
        return 10_000_000_000
    }
}

extension GivenSetting {
    /// The size in bytes. The resource is measured only for a share.
    func bytes(of whole: SizedResource) -> Int {
        switch (value, whole) {
        case (.int(let bytes), _): return bytes
        case (.string(let text), .memory): return (SettingSize(text) ?? .bytes(0)).bytes(of: MachineMemory.bytes)
        case (.string(let text), .fileSystem):
            return (SettingSize(text) ?? .bytes(0)).bytes(
                of: SizedResource.fileSystemBytes(holding: cacheFolder))
        default: return 0
        }
    }
}

extension SettingValue {
    /// The number without its fraction; 0 for other values.
    fileprivate var integer: Int { if case .int(let value) = self { value } else { Int(number) } }

    /// The number; 0 for other values.
    fileprivate var number: Double {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: 0
        }
    }
}
