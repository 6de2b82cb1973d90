import PipelineSupport
import ImageServer
import Pipeline

extension SettingForm where Value == [SigningKey] {
    /// Keys by name. Written without the keys, which are secret.
    static var signingKeys: Self {
        Self(
            kind: .map, read: { (given) throws(SettingErrors) in try given.signingKeys() },
            write: { .object($0.map(\.id).sorted().map { SettingMember(name: $0, value: .null) }) })
    }
}

extension SettingForm where Value == SizeSteps? {
    /// Edges in pixels, or true for the usual ones.
    static var sizeSteps: Self {
        Self(
            kind: .either([.bool, .integers(1...8192)]),
            read: { given in
                switch given.value {
                case .bool(true): return .usual
                case .list(let values):
                    return SizeSteps(values.compactMap { if case .int(let edge) = $0 { edge } else { nil } })
                default: return nil
                }
            },
            write: { steps in
                guard let steps else { return .bool(false) }
                return steps == .usual ? .bool(true) : .list(steps.edges.map { .int($0) })
            })
    }
}

extension GivenSetting {
    /// No message contains a key.
    fileprivate func signingKeys() throws(SettingErrors) -> [SigningKey] {
        var keys: [SigningKey] = []
        try eachMember { (member) throws(SettingErrors) in
            guard case .string(let hex) = member.value else {
                throw bad(
                    "`\(member.name)` is \(member.value.kindName); expected hexadecimal digits, in quotes if they are "
                        + "digits alone")
            }
            guard !keys.contains(where: { $0.id == member.name }) else { throw bad("`\(member.name)` appears twice") }
            do throws(SigningKey.Refusal) {
                keys.append(try SigningKey(id: member.name, hex: hex))
            } catch {
                throw bad(error.text)
            }
        }
        return keys
    }
}
