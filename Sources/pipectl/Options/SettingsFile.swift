import Yams

/// Reads the YAML file of `--config`: settings as `fetch.slots: 8` or nested as `fetch:` with `slots: 8` below.
enum SettingsFile {
    struct Found {
        var key: String
        var value: SettingValue
        var origin: SettingOrigin
    }

    /// Reads and flattens the file; names are checked by `Settings`.
    static func read(_ path: String) throws(SettingError) -> [Found] {
        let text: String
        do {
            text = try FileText.read(path, limit: 4 << 20)
        } catch {
            throw SettingError(.badFile, .file(path, line: nil), error.message)
        }
        return try parse(text, path: path)
    }

    static func parse(_ text: String, path: String) throws(SettingError) -> [Found] {
        let root: Node?
        do {
            root = try compose(yaml: text)
        } catch let error as YamlError {
            throw SettingError(.badFile, .file(path, line: nil), "not YAML: \(error)")
        } catch {
            throw SettingError(.badFile, .file(path, line: nil), "not YAML: \(error)")
        }
        guard let root, root.tag.description != Tag.Name.null.rawValue else { return [] }
        guard case .mapping(let mapping) = root else {
            throw SettingError(.badFile, .file(path, line: root.mark?.line), "expected a map of settings")
        }
        var found: [Found] = []
        try flatten(mapping, prefix: "", path: path, into: &found)
        return found
    }

    private static func flatten(
        _ mapping: Node.Mapping, prefix: String, path: String, into found: inout [Found]
    ) throws(SettingError) {
        for (name, node) in mapping {
            let origin = SettingOrigin.file(path, line: name.mark?.line ?? node.mark?.line)
            guard case .scalar(let scalar) = name else {
                throw SettingError(.badFile, origin, "the name of a setting must be text")
            }
            let key = prefix + scalar.string
            let isGroup =
                SettingCatalogue.byKey[key] == nil
                && SettingCatalogue.all.contains { $0.key.hasPrefix(key + ".") }
            if isGroup, case .mapping(let inner) = node {
                try flatten(inner, prefix: key + ".", path: path, into: &found)
            } else {
                found.append(Found(key: key, value: try value(node, origin), origin: origin))
            }
        }
    }

    private static func value(_ node: Node, _ origin: SettingOrigin) throws(SettingError) -> SettingValue {
        switch node {
        case .scalar(let scalar):
            switch node.tag.description {
            case Tag.Name.bool.rawValue: return node.bool.map { .bool($0) } ?? .string(scalar.string)
            case Tag.Name.int.rawValue: return node.int.map { .int($0) } ?? .string(scalar.string)
            case Tag.Name.float.rawValue: return node.float.map { .double($0) } ?? .string(scalar.string)
            case Tag.Name.null.rawValue: return .null
            default: return .string(scalar.string)
            }
        case .sequence(let sequence):
            var values: [SettingValue] = []
            for element in sequence { values.append(try value(element, origin)) }
            return .list(values)
        case .mapping(let mapping):
            var members: [SettingMember] = []
            for (name, element) in mapping {
                guard case .scalar(let scalar) = name else {
                    throw SettingError(.badFile, origin, "a name in a map must be text")
                }
                members.append(SettingMember(name: scalar.string, value: try value(element, origin)))
            }
            return .map(members)
        case .alias:
            throw SettingError(.badFile, origin, "YAML aliases are not supported")
        }
    }
}
