import PipelineSupport

/// Reads the YAML file given by `--config`. Settings are written as `fetch.slots: 8` or nested, as `fetch:` with
/// `slots: 8` below.
enum SettingsFile {
    typealias Found = (key: String, entry: Settings.Entry)

    /// Reads and flattens the file. `Settings` checks the names.
    static func read(_ path: String, _ errors: inout SettingErrors) -> [Found] {
        let text: String
        do throws(FileError) {
            text = try FileText.read(path, limit: 4 << 20)
        } catch {
            errors.add([SettingError(.badFile, .file(path, line: nil), error.message)])
            return []
        }
        return parse(text, path: path, &errors)
    }

    static func parse(_ text: String, path: String, _ errors: inout SettingErrors) -> [Found] {
        let document: YAMLDocument
        do throws(YAMLDocument.ParseError) {
            document = try YAMLDocument(text)
        } catch {
            errors.add([SettingError(.badFile, .file(path, line: error.line), "not valid YAML: \(error.message)")])
            return []
        }
        guard let root = document.root else { return [] }
        switch root.content {
        case .scalar(_, .null): return []
        case .mapping(let mapping):
            var found: [Found] = []
            flatten(mapping, prefix: "", path: path, into: &found, &errors)
            return found
        default:
            errors.add([
                SettingError(
                    .badFile, .file(path, line: root.line), "expected a map with names of settings and their values")
            ])
            return []
        }
    }

    private static func flatten(
        _ mapping: [(name: YAMLDocument.Node, value: YAMLDocument.Node)], prefix: String, path: String,
        into found: inout [Found], _ errors: inout SettingErrors
    ) {
        for (name, node) in mapping {
            let origin = SettingOrigin.file(path, line: name.line)
            guard case .scalar(let text, _) = name.content else {
                errors.add([SettingError(.unknownKey, origin, "the name of a setting is not text; put it in quotes")])
                continue
            }
            let key = prefix + text
            let isGroup =
                SettingCatalog.byKey[key] == nil
                && SettingCatalog.all.contains { $0.key.hasPrefix(key + ".") }
            if isGroup, case .mapping(let inner) = node.content {
                flatten(inner, prefix: key + ".", path: path, into: &found, &errors)
            } else if let value = value(node, path, key, &errors) {
                found.append((key, Settings.Entry(value: value, origin: origin, lines: lines(node))))
            }
        }
    }

    private static func lines(_ node: YAMLDocument.Node) -> [Int] {
        switch node.content {
        case .scalar: []
        case .sequence(let elements): elements.map(\.line)
        case .mapping(let mapping): mapping.map(\.name.line)
        }
    }

    /// Converts a node. Returns nil and adds an error for each map key that is not a string.
    private static func value(
        _ node: YAMLDocument.Node, _ path: String, _ key: String, _ errors: inout SettingErrors
    ) -> SettingValue? {
        switch node.content {
        case .scalar(_, let value): return value
        case .sequence(let elements):
            let values = elements.map { value($0, path, key, &errors) }
            return values.contains(nil) ? nil : .list(values.compactMap { $0 })
        case .mapping(let mapping):
            var members: [SettingMember] = []
            for (name, element) in mapping {
                guard case .scalar(let text, _) = name.content else {
                    errors.add([
                        SettingError(
                            .badValue, .file(path, line: name.line),
                            "`\(key)`: a name in the map is not text; put it in quotes", key: key)
                    ])
                    continue
                }
                if let value = value(element, path, key, &errors) {
                    members.append(SettingMember(name: text, value: value))
                }
            }
            return members.count == mapping.count ? .object(members) : nil
        }
    }
}
