/// Selects one of the responses stored for a URL, according to `Vary` (RFC 9111 §4.1).
package enum Variation {
    /// The maximum number of names in `Vary`. Real origins need no more, and a hostile origin must not make look-ups
    /// expensive.
    static let maxNames = 100

    /// Returns the field names listed in `Vary`, in lowercase, sorted and without duplicates. Returns nil if `*` is
    /// among them, or if there are more than a hundred. Such a response matches no request.
    package static func names(in fields: [HeaderField]) -> [String]? {
        var names: Set<String> = []
        for value in fields.values(of: "vary") {
            for member in FieldLines.members(of: value) {
                if member == "*" { return nil }
                names.insert(FieldLines.lowercased(member))
                if names.count > maxNames { return nil }
            }
        }
        return names.sorted()
    }

    /// Returns the value for `StoredResponse.selecting`: the normalized value of every request field listed in the
    /// response's `Vary`. The value of an absent field is nil. Returns nil if `names(in:)` returns nil.
    package static func selectingFields(
        of responseFields: [HeaderField], requestFields: [HeaderField]
    ) -> [String: String?]? {
        guard let names = names(in: responseFields) else { return nil }
        var selecting: [String: String?] = [:]
        for name in names { selecting.updateValue(normalized(name, in: requestFields), forKey: name) }
        return selecting
    }

    /// Whether a request with these fields selects the stored response. Each field listed in its `Vary` must have the
    /// same value as when the response was stored, or be absent from both requests.
    ///
    /// Values are compared in normalized form, as permitted by §4.1: lines with the same name are combined, and
    /// whitespace around commas in lists is ignored. For `Accept`, `Accept-Charset`, `Accept-Encoding` and
    /// `Accept-Language`, the order of members, letter case and the spelling of weights are also ignored. All other
    /// values are compared exactly, including letter case.
    package static func selects(_ stored: StoredResponse, requestFields: [HeaderField]) -> Bool {
        guard let names = names(in: stored.fields) else { return false }
        return names.allSatisfy { isAsThen($0, stored, requestFields) }
    }

    /// Whether a request field has the same value as when the response was stored, or is absent from both requests.
    static func isAsThen(_ name: String, _ stored: StoredResponse, _ requestFields: [HeaderField]) -> Bool {
        switch (stored.selecting[name] ?? nil, normalized(name, in: requestFields)) {
        case (nil, nil): true
        case (let then?, let now?): FieldLines.isSame(then, now) || FieldLines.isSame(normalized(name, then), now)
        default: false
        }
    }

    /// Returns the index in `stored` of the response to use for a request, or nil if the request selects none of them.
    ///
    /// Among several selected responses, responses with `Vary` take precedence over responses without `Vary`, because
    /// some origins omit the field from their default response. The most recent of them is used, first by `Date` and
    /// then by arrival (§4.1).
    package static func select(among stored: [StoredResponse], requestFields: [HeaderField]) -> Int? {
        stored.indices.filter { Redirects.selects(stored[$0], requestFields: requestFields) }
            .max { rank(stored[$0]) < rank(stored[$1]) }
    }

    /// Returns the rank of a selected response. The response with the highest rank is used.
    private static func rank(_ response: StoredResponse) -> (Int, Double, Double) {
        let isVarying = names(in: response.fields)?.isEmpty == false
        return (isVarying ? 1 : 0, Age.date(of: response), response.responseTime)
    }

    // MARK: Normalizing

    /// The fields that are not lists, so that commas are part of the value.
    private static let singletons: Set<String> = [
        "authorization", "cookie", "date", "from", "host", "if-modified-since", "if-unmodified-since", "origin",
        "proxy-authorization", "range", "referer", "user-agent",
    ]
    /// The fields whose members are preferences, which are unordered, case-insensitive and weighted (RFC 9110 §12.5).
    private static let preferences: Set<String> = ["accept", "accept-charset", "accept-encoding", "accept-language"]

    private static func normalized(_ name: String, in fields: [HeaderField]) -> String? {
        fields.combined(name).map { normalized(name, $0) }
    }

    /// Returns a value in normalized form. Normalizing it again has no effect.
    private static func normalized(_ name: String, _ value: String) -> String {
        if singletons.contains(name) { return FieldLines.trimmed(value) }
        let members = FieldLines.members(of: value)
        guard preferences.contains(name) else { return members.joined(separator: ", ") }
        return members.map(preference).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined(separator: ", ")
    }

    /// Normalizes a preference. The result has no whitespace around parameters. Its range is in lowercase, and its
    /// weight comes last and in its shortest form.
    private static func preference(_ member: String) -> String {
        let parts = member.split(separator: ";", omittingEmptySubsequences: false).map {
            FieldLines.trimmed(String($0))
        }
        // A quoted parameter may contain a semicolon, so such a member is left unchanged.
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

    /// Returns a weight (RFC 9110 §12.4.2) without unnecessary zeros, or nil if the string is not a weight.
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
