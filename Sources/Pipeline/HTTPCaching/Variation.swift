/// Selecting among the responses stored for one URL by `Vary` (RFC 9111 §4.1).
public enum Variation {
    /// Names that `Vary` may list. No origin varies on more; what each look-up would cost, a hostile one decides.
    static let mostNames = 100

    /// The field names `Vary` lists, in lower case, sorted, each once; nil when `*` is anywhere among them, or
    /// more than a hundred, which match no request either.
    public static func names(in fields: [HeaderField]) -> [String]? {
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

    /// What to keep in `StoredResponse.selecting`: for every name in the response's `Vary` the request's value,
    /// normalised, nil for a field that was absent. nil as a whole for `Vary: *`.
    public static func selectingFields(
        of responseFields: [HeaderField], requestFields: [HeaderField]
    ) -> [String: String?]? {
        guard let names = names(in: responseFields) else { return nil }
        var selecting: [String: String?] = [:]
        for name in names { selecting.updateValue(normalised(name, in: requestFields), forKey: name) }
        return selecting
    }

    /// Whether a request with these fields selects the stored response: each field its `Vary` names has the value it had
    /// then, or is absent as it was then.
    ///
    /// Values compare normalised, as §4.1 permits: lines of one name combined, space around the commas of lists gone;
    /// for `Accept`, `Accept-Charset`, `Accept-Encoding` and `Accept-Language` also order, letter case and ways to write
    /// the same weight. Everything else compares exactly, letter case included.
    public static func selects(_ stored: StoredResponse, requestFields: [HeaderField]) -> Bool {
        guard let names = names(in: stored.fields) else { return false }
        return names.allSatisfy { isAsThen($0, stored, requestFields) }
    }

    /// Whether a request has the value of a field, or its absence, that the response was stored under.
    static func isAsThen(_ name: String, _ stored: StoredResponse, _ requestFields: [HeaderField]) -> Bool {
        switch (stored.selecting[name] ?? nil, normalised(name, in: requestFields)) {
        case (nil, nil): true
        case (let then?, let now?): FieldLines.isSame(then, now) || FieldLines.isSame(normalised(name, then), now)
        default: false
        }
    }

    /// The response to use of those stored for a URL: its place in `stored`; nil where none is selected.
    ///
    /// Among several that are selected, those with a `Vary` come before those without, since some origins forget it in
    /// their default answer; then the most recent by `Date`, then by arrival, counts (§4.1).
    public static func select(among stored: [StoredResponse], requestFields: [HeaderField]) -> Int? {
        stored.indices.filter { Redirects.selects(stored[$0], requestFields: requestFields) }
            .max { rank(stored[$0]) < rank(stored[$1]) }
    }

    /// Orders responses that are equally selected: the greatest is used.
    private static func rank(_ response: StoredResponse) -> (Int, Double, Double) {
        let isVarying = names(in: response.fields)?.isEmpty == false
        return (isVarying ? 1 : 0, Age.date(of: response), response.responseTime)
    }

    // MARK: Normalising

    /// Fields that are no lists: commas in them are text.
    private static let singletons: Set<String> = [
        "authorization", "cookie", "date", "from", "host", "if-modified-since", "if-unmodified-since", "origin",
        "proxy-authorization", "range", "referer", "user-agent",
    ]
    /// Fields whose members are preferences: without order, in any letter case, with weights (RFC 9110 §12.5).
    private static let preferences: Set<String> = ["accept", "accept-charset", "accept-encoding", "accept-language"]

    private static func normalised(_ name: String, in fields: [HeaderField]) -> String? {
        fields.combined(name).map { normalised(name, $0) }
    }

    /// A value in the form in which it is compared; a value in that form stays as it is.
    private static func normalised(_ name: String, _ value: String) -> String {
        if singletons.contains(name) { return FieldLines.trimmed(value) }
        let members = FieldLines.members(of: value)
        guard preferences.contains(name) else { return members.joined(separator: ", ") }
        return members.map(preference).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.joined(separator: ", ")
    }

    /// One preference: space around its parameters gone, the range in lower case, the weight last and short.
    private static func preference(_ member: String) -> String {
        let parts = member.split(separator: ";", omittingEmptySubsequences: false).map {
            FieldLines.trimmed(String($0))
        }
        // A quoted parameter may hold a semicolon: leave such a member as it is.
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

    /// A weight of RFC 9110 §12.4.2 without needless zeros; nil for anything else.
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
