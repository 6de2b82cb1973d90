/// Selecting among the responses stored for one URL by `Vary` (RFC 9111 §4.1).
public enum Variation {
    /// The field names `Vary` lists, in lower case, sorted, each once; nil when `*` is anywhere among them.
    public static func names(in fields: [HeaderField]) -> [String]? {
        var names: Set<String> = []
        for value in fields.values(of: "vary") {
            for member in FieldLines.members(of: value) {
                if member == "*" { return nil }
                names.insert(member.lowercased())
            }
        }
        return names.sorted()
    }

    /// What to keep in `StoredResponse.selecting`: for every name in the response's `Vary` the request's value, nil for
    /// a field that was absent. nil as a whole for `Vary: *`.
    public static func selectingFields(
        of responseFields: [HeaderField], requestFields: [HeaderField]
    ) -> [String: String?]? {
        guard let names = names(in: responseFields) else { return nil }
        var selecting: [String: String?] = [:]
        for name in names { selecting.updateValue(value(of: name, in: requestFields), forKey: name) }
        return selecting
    }

    /// Whether a request with these fields selects the stored response: each field its `Vary` names has the value it had
    /// then, or is absent as it was then.
    public static func selects(_ stored: StoredResponse, requestFields: [HeaderField]) -> Bool {
        guard let names = names(in: stored.fields) else { return false }
        return names.allSatisfy { name in
            let then: String? = stored.selecting[name] ?? nil
            return then == value(of: name, in: requestFields)
        }
    }

    /// Lines of one name combined, the whitespace around them gone, as §4.1 permits before comparing.
    private static func value(of name: String, in fields: [HeaderField]) -> String? {
        let values = fields.values(of: name).map(FieldLines.trimmed)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
