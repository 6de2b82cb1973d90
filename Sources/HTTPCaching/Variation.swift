/// Selecting among the responses stored for one URL by `Vary` (RFC 9111 §4.1).
package enum Variation {
    /// The most names that `Vary` may list. Real origins need no more; hostile ones must not make look-ups expensive.
    static let mostNames = 100

    /// The field names `Vary` lists, in lower case, sorted, each once; nil if `*` is among them, or if there are more
    /// than a hundred, which then match no request either.
    package static func names(in fields: [HeaderField]) -> [String]? {
        var names: Set<String> = []
        for value in fields.values(of: "vary") {
            for member in FieldLines.members(of: value) {
                if member == "*" { return nil }
                names.insert(FieldLines.lowercased(member))
                if names.count > mostNames { return nil }
            }
        }
        return names.sorted()
    }

    /// What to keep in `StoredResponse.selecting`: for every name in the response's `Vary` the request's normalised
    /// value, nil for an absent field. Returns nil as a whole for `Vary: *`.
    package static func selectingFields(
        of responseFields: [HeaderField], requestFields: [HeaderField]
    ) -> [String: String?]? {
        guard let names = names(in: responseFields) else { return nil }
        var selecting: [String: String?] = [:]
        for name in names { selecting.updateValue(normalised(name, in: requestFields), forKey: name) }
        return selecting
    }

    /// Whether a request with these fields selects the stored response: each field its `Vary` names has the value it
    /// had when the response was stored, or is absent as it was then.
    ///
    /// Values are compared in normalised form, as §4.1 permits: lines of one name are combined, and space around list
    /// commas is ignored; for `Accept`, `Accept-Charset`, `Accept-Encoding` and `Accept-Language` so are order, letter
    /// case and the spelling of weights. Everything else compares exactly, including letter case.
    package static func selects(_ stored: StoredResponse, requestFields: [HeaderField]) -> Bool {
        guard let names = names(in: stored.fields) else { return false }
        return names.allSatisfy { isAsThen($0, stored, requestFields) }
    }

    /// Whether the request has the field value, or its absence, that the response was stored under.
    static func isAsThen(_ name: String, _ stored: StoredResponse, _ requestFields: [HeaderField]) -> Bool {
        switch (stored.selecting[name] ?? nil, normalised(name, in: requestFields)) {
        case (nil, nil): true
        case (let then?, let now?): FieldLines.isSame(then, now) || FieldLines.isSame(normalised(name, then), now)
        default: false
        }
    }

    /// The index in `stored` of the response to use among those stored for a URL; nil if none is selected.
    ///
    /// Among several that are selected, those with a `Vary` come before those without, since some origins omit it from
    /// their default response; after that the most recent by `Date`, then by arrival, is chosen (§4.1).
    package static func select(among stored: [StoredResponse], requestFields: [HeaderField]) -> Int? {
        stored.indices.filter { Redirects.selects(stored[$0], requestFields: requestFields) }
            .max { rank(stored[$0]) < rank(stored[$1]) }
    }

    /// Orders the selected responses: the greatest is used.
    private static func rank(_ response: StoredResponse) -> (Int, Double, Double) {
        let isVarying = names(in: response.fields)?.isEmpty == false
        return (isVarying ? 1 : 0, Age.date(of: response), response.responseTime)
    }

    // MARK: Normalising

    /// Fields that are not lists: commas in them are text.
    private static let singletons: Set<String> = [
        "authorization", "cookie", "date", "from", "host", "if-modified-since", "if-unmodified-since", "origin",
        "proxy-authorization", "range", "referer", "user-agent",
    ]
    /// Fields whose members are preferences: unordered, case-insensitive, with weights (RFC 9110 §12.5).
    private static let preferences: Set<String> = ["accept", "accept-charset", "accept-encoding", "accept-language"]

    private static func normalised(_ name: String, in fields: [HeaderField]) -> String? {
        fields.combined(name).map { normalised(name, $0) }
    }

    /// A value in normalised form; a normalised value stays as it is.
    private static func normalised(_ name: String, _ value: String) -> String {
        if singletons.contains(name) { return FieldLines.trimmed(value) }
        let members = FieldLines.members(of: value)
        guard preferences.contains(name) else { return members.joined(separator: ", ") }
        return members.map(preference).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined(separator: ", ")
    }

    /// One preference: no space around its parameters, the range in lower case, the weight last and shortest.
    private static func preference(_ member: String) -> String {
        let parts = member.split(separator: ";", omittingEmptySubsequences: false).map {
            FieldLines.trimmed(String($0))
        }
        // A quoted parameter may contain a semicolon, so such a member is left as it is.
        guard !member.utf8.contains(UInt8(ascii: "\"")) else { return member }
        var result = FieldLines.lowercased(parts[0])
        var weight: String?
        for part in parts.dropFirst() where !part.isEmpty {
            if FieldLines.isSameName(String(part.prefix(2)), "q="), let short = shortWeight(String(part.dropFirst(2))) {
                weight = short
            } else {
                result += ";" + part
            }
        }
        if let weight, weight != "1" { result += ";q=" + weight }
        return result
    }

    /// A weight of RFC 9110 §12.4.2 without unnecessary zeros; nil for anything else.
    private static func shortWeight(_ text: String) -> String? {
        var bytes = Array(text.utf8)
        guard let first = bytes.first, first == 0x30 || first == 0x31, bytes.count <= 5 else { return nil }
        guard bytes.count > 1 else { return text }
        guard bytes[1] == UInt8(ascii: "."), bytes[2...].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        if first == 0x31, bytes[2...].contains(where: { $0 != 0x30 }) { return nil }
        while let last = bytes.last, last == 0x30 || last == UInt8(ascii: "."), bytes.count > 1 {
            bytes.removeLast()
            if last == UInt8(ascii: ".") { break }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
