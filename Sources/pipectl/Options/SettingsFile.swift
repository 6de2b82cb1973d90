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
        let document: YAMLDocument
        do throws(YAMLDocument.ParseError) {
            document = try YAMLDocument(text)
        } catch {
            throw SettingError(.badFile, .file(path, line: error.line), "not YAML: \(error.message)")
        }
        guard let root = document.root else { return [] }
        switch root.content {
        case .scalar(_, .null): return []
        case .mapping(let mapping):
            var found: [Found] = []
            try flatten(mapping, prefix: "", path: path, into: &found)
            return found
        default: throw SettingError(.badFile, .file(path, line: root.line), "expected a map of settings")
        }
    }

    private static func flatten(
        _ mapping: [(name: YAMLDocument.Node, value: YAMLDocument.Node)], prefix: String, path: String,
        into found: inout [Found]
    ) throws(SettingError) {
        for (name, node) in mapping {
            let origin = SettingOrigin.file(path, line: name.line)
            guard case .scalar(let text, _) = name.content else {
                throw SettingError(.badFile, origin, "the name of a setting must be text")
            }
            let key = prefix + text
            let isGroup =
                SettingCatalogue.byKey[key] == nil
                && SettingCatalogue.all.contains { $0.key.hasPrefix(key + ".") }
            if isGroup, case .mapping(let inner) = node.content {
                try flatten(inner, prefix: key + ".", path: path, into: &found)
            } else {
                found.append(Found(key: key, value: try value(node, origin), origin: origin))
            }
        }
    }

    private static func value(
        _ node: YAMLDocument.Node, _ origin: SettingOrigin
    ) throws(SettingError) -> SettingValue {
        switch node.content {
        case .scalar(_, let value): return value
        case .sequence(let elements):
            var values: [SettingValue] = []
            for element in elements { values.append(try value(element, origin)) }
            return .list(values)
        case .mapping(let mapping):
            var members: [SettingMember] = []
            for (name, element) in mapping {
                guard case .scalar(let text, _) = name.content else {
                    throw SettingError(.badFile, origin, "a name in a map must be text")
                }
                members.append(SettingMember(name: text, value: try value(element, origin)))
            }
            return .map(members)
        }
    }
}
